//! From metadata and a data config to an [`Embodiment`], or to the reason why they do not fit.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::data_configs::{
    ACTION_WIDTH, ActionMode, DATA_CONFIGS, DataConfig, HORIZON, STATE_WIDTH, StateMode, TAGS, Tag,
};
use super::metadata::{Group, Metadata, Rotation};
use super::problem::{DataConfigProblem, Misfit};
use crate::checkpoint::EmbodimentProblem;
use crate::checkpoint::statistics::GroupStatistics;
use crate::contract::{
    ActionGroupSpec, ActionNormalization, ActionReference, ActionScaling, Embodiment, EulerOrder,
    RotationFormat, StateEncoding, StateGroupSpec, StateScaling,
};

/// Every data config by name, with the embodiment that it makes of one tag's metadata.
pub(in crate::checkpoint) type Choices =
    BTreeMap<&'static str, Result<Embodiment, DataConfigProblem>>;

/// What a snapshot says about its embodiments.
pub(in crate::checkpoint) struct Sources<'a> {
    /// Tag -> metadata.
    pub metadata: &'a Map<String, Value>,
    /// Slots of the model.
    pub slot_count: usize,
}

impl Sources<'_> {
    /// Every tag of the metadata or the reference, with what each data config makes of it.
    pub(in crate::checkpoint) fn build_all(&self) -> BTreeMap<String, Choices> {
        let known = TAGS.iter().map(|tag| tag.name);
        let tags: BTreeSet<&str> = self.metadata.keys().map(String::as_str).chain(known).collect();
        tags.into_iter().map(|tag| (tag.to_owned(), self.choices(tag))).collect()
    }

    fn choices(&self, tag: &str) -> Choices {
        let build = |config: &'static DataConfig| {
            let (slot, metadata) = self.find(tag)?;
            build(tag, slot, metadata, config)
                .map_err(|misfit| DataConfigProblem::Misfit { name: config.name, misfit })
        };
        DATA_CONFIGS.iter().map(|config| (config.name, build(config))).collect()
    }

    /// Slot and metadata of a tag.
    fn find(&self, tag: &str) -> Result<(usize, Metadata<'_>), DataConfigProblem> {
        let Some(Tag { slot, .. }) = TAGS.iter().find(|known| known.name == tag) else {
            let tags = TAGS.iter().map(|tag| tag.name).collect();
            return Err(DataConfigProblem::NoSlot { tags });
        };
        let entry = self.metadata.get(tag).ok_or(DataConfigProblem::NoEntry)?;
        if *slot >= self.slot_count {
            return Err(DataConfigProblem::Slot { slot: *slot, slots: self.slot_count });
        }
        Ok((*slot, Metadata::new(entry)))
    }
}

/// The embodiment of a tag where no data config is named: the tag's own data config if that fits, else the only one that
/// does.
pub(in crate::checkpoint) fn choose(
    tag: &str,
    choices: &Choices,
) -> Result<Embodiment, DataConfigProblem> {
    let known = TAGS.iter().find(|known| known.name == tag);
    let default = known.and_then(|tag| tag.default).and_then(|name| choices.get(name));
    if let Some(Ok(embodiment)) = default {
        return Ok(embodiment.clone());
    }
    let fitting: Vec<(&'static str, &Embodiment)> =
        choices.iter().filter_map(|(name, choice)| Some((*name, choice.as_ref().ok()?))).collect();
    match (fitting.as_slice(), default) {
        ([(_, only)], _) => Ok((*only).clone()),
        ([], Some(Err(problem))) => Err(problem.clone()),
        ([], _) => Err(nothing_fits(choices)),
        _ => Err(DataConfigProblem::Several {
            fitting: fitting.iter().map(|(name, _)| *name).collect(),
        }),
    }
}

/// Why none of the data configs fits: what is wrong with the tag, or what is wrong with each of them.
fn nothing_fits(choices: &Choices) -> DataConfigProblem {
    let mut misfits = vec![];
    for problem in choices.values().filter_map(|choice| choice.as_ref().err()) {
        match problem {
            DataConfigProblem::Misfit { name, misfit } => misfits.push(format!("{name}: {misfit}")),
            of_the_tag => return of_the_tag.clone(),
        }
    }
    DataConfigProblem::None { misfits }
}

fn build(
    tag: &str,
    slot: usize,
    metadata: Metadata<'_>,
    config: &DataConfig,
) -> Result<Embodiment, Misfit> {
    for camera in config.cameras {
        metadata.check_camera(camera)?;
    }
    let state: Vec<StateGroupSpec> = config
        .state
        .iter()
        .map(|(name, mode)| state_group(metadata, name, *mode))
        .collect::<Result<_, _>>()?;
    let found = state.iter().map(|group| group.encoding.encoded_dim(group.dim)).sum();
    if found > STATE_WIDTH {
        return Err(EmbodimentProblem::StateWidth { found, max: STATE_WIDTH }.into());
    }
    let action: Vec<ActionGroupSpec> = config
        .action
        .iter()
        .map(|(name, mode)| action_group(metadata, name, *mode))
        .collect::<Result<_, _>>()?;
    let found = action.iter().map(|group| group.dim).sum();
    if found > ACTION_WIDTH {
        return Err(EmbodimentProblem::ActionWidth { found, max: ACTION_WIDTH }.into());
    }
    Ok(Embodiment {
        tag: tag.to_owned(),
        slot,
        cameras: config.cameras.iter().map(|camera| (*camera).to_owned()).collect(),
        frame_deltas: vec![0],
        state,
        action,
        horizon: HORIZON,
        language_key: config.language_key.to_owned(),
    })
}

fn state_group(
    metadata: Metadata<'_>,
    name: &str,
    mode: StateMode,
) -> Result<StateGroupSpec, Misfit> {
    const TABLE: &str = "state";
    let group = metadata.group(TABLE, name)?;
    let rotation = match mode {
        StateMode::SinCos | StateMode::MinMax => None,
        StateMode::RawAs6d | StateMode::MinMaxAs6d => rotation_to_convert(TABLE, name, &group)?,
    };
    let scaling = match mode {
        StateMode::SinCos => StateScaling::SinCos,
        StateMode::RawAs6d => StateScaling::None,
        StateMode::MinMaxAs6d if rotation.is_some() => {
            if !group.absolute {
                return Err(Misfit::NotAbsolute { group: name.to_owned() });
            }
            let dim = RotationFormat::Rotation6d.dim();
            StateScaling::MinMax { min: vec![-1.0; dim], max: vec![1.0; dim] }
        }
        StateMode::MinMax | StateMode::MinMaxAs6d => {
            let (min, max) = bounds(metadata, TABLE, name, group.dim)?;
            StateScaling::MinMax { min, max }
        }
    };
    let encoding = StateEncoding::Double { rotation, scaling };
    Ok(StateGroupSpec { name: name.to_owned(), dim: group.dim, encoding })
}

/// The format of a rotation that is to become two rows; `None` where it is that already.
fn rotation_to_convert(
    table: &'static str,
    name: &str,
    group: &Group,
) -> Result<Option<RotationFormat>, Misfit> {
    match group.rotation {
        Some(Rotation::Format(RotationFormat::Rotation6d)) => Ok(None),
        Some(Rotation::Format(format)) if format.dim() == group.dim => Ok(Some(format)),
        Some(Rotation::Format(format)) => Err(rotation_width(table, name, group, format)),
        Some(Rotation::Matrix) | None => Err(rotation_type(
            table,
            name,
            group,
            "quaternion, axis_angle, euler_angles_*, rotation_6d",
        )),
    }
}

fn action_group(
    metadata: Metadata<'_>,
    name: &str,
    mode: ActionMode,
) -> Result<ActionGroupSpec, Misfit> {
    const TABLE: &str = "action";
    let group = metadata.group(TABLE, name)?;
    let scaling = match mode {
        ActionMode::Raw | ActionMode::RawAsAxisAngle => ActionScaling::None,
        ActionMode::Binary => ActionScaling::Binary,
        ActionMode::MinMax => {
            let (min, max) = bounds(metadata, TABLE, name, group.dim)?;
            ActionScaling::MinMax { min, max }
        }
        ActionMode::MeanStd => {
            let statistics = statistics(metadata, TABLE, name, "mean", group.dim)?;
            let (mean, std) = statistics.moments(group.dim, HORIZON)?.into_values();
            ActionScaling::MeanStd { mean, std }
        }
    };
    let euler = match mode {
        ActionMode::RawAsAxisAngle => euler_from_axis_angle(TABLE, name, &group)?,
        _ => None,
    };
    Ok(ActionGroupSpec {
        name: name.to_owned(),
        dim: group.dim,
        normalization: ActionNormalization::Single { scaling, euler },
        reference: if group.absolute { ActionReference::Absolute } else { ActionReference::Delta },
        pose: None,
    })
}

/// The Euler angles that axis times angle is to become; `None` where it stays.
///
/// The reference cuts its output up by the width of the data set's format, so that only formats of three values work.
fn euler_from_axis_angle(
    table: &'static str,
    name: &str,
    group: &Group,
) -> Result<Option<EulerOrder>, Misfit> {
    let (format, order) = match group.rotation {
        Some(Rotation::Format(format @ RotationFormat::Euler(order))) => (format, Some(order)),
        Some(Rotation::Format(format @ RotationFormat::AxisAngle)) => (format, None),
        _ => return Err(rotation_type(table, name, group, "axis_angle, euler_angles_*")),
    };
    if format.dim() != group.dim {
        return Err(rotation_width(table, name, group, format));
    }
    Ok(order)
}

fn rotation_type(table: &'static str, name: &str, group: &Group, accepted: &'static str) -> Misfit {
    let found = match group.rotation {
        None => "null".to_owned(),
        Some(rotation) => format!("{rotation:?}"),
    };
    Misfit::RotationType { table, group: name.to_owned(), found, accepted }
}

fn rotation_width(
    table: &'static str,
    name: &str,
    group: &Group,
    format: RotationFormat,
) -> Misfit {
    let (group, dim) = (name.to_owned(), group.dim);
    Misfit::RotationWidth { table, group, dim, expected: format.dim() }
}

/// Minimum and maximum of a group, `[dim]`.
fn bounds(
    metadata: Metadata<'_>,
    table: &'static str,
    name: &str,
    dim: usize,
) -> Result<(Vec<f64>, Vec<f64>), Misfit> {
    let statistics = statistics(metadata, table, name, "min", dim)?;
    Ok(statistics.bounds(["min", "max"], dim, HORIZON)?.into_values())
}

/// The statistics of a group, which all have as many values as the group.
fn statistics<'a>(
    metadata: Metadata<'a>,
    table: &'static str,
    name: &'a str,
    key: &'static str,
    dim: usize,
) -> Result<GroupStatistics<'a>, Misfit> {
    let statistics = GroupStatistics::find(metadata.statistics(), table, name)?;
    let found = statistics.dim(key)?;
    if found != dim {
        let group = name.to_owned();
        return Err(EmbodimentProblem::Length { table, group, key, found, expected: dim }.into());
    }
    Ok(statistics)
}
