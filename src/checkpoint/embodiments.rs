//! From modality configuration, statistics and slot to [`Embodiment`]s, or to the reason why a tag cannot be served.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::json;
use super::modality::{ActionDeclaration, Declared, Format, Modalities, Modality};
use super::n15;
use super::processor::Processor;
use super::statistics::{GroupStatistics, RELATIVE_TABLE, StatisticPair};
use crate::contract::{
    ActionGroupSpec, ActionNormalization, ActionReference, Embodiment, PoseFormat, StateEncoding,
    StateGroupSpec,
};

/// Most pictures, cameras times frames, that one observation may have.
pub const MAX_PICTURES: usize = 64;

/// Why a tag that a checkpoint mentions cannot be served. Tables and keys are those of its JSON files.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EmbodimentProblem {
    #[error("processor_config.json has no modality_configs for it")]
    NoModalities,
    #[error("statistics.json has no entry for it")]
    NoStatistics,
    #[error("embodiment_id.json has no slot for it")]
    NoSlot,
    #[error("its slot in embodiment_id.json is {found}; the model has slots 0 to {}", slots - 1)]
    Slot { found: String, slots: usize },
    #[error("its modality_configs have no '{modality}'")]
    NoModality { modality: &'static str },
    #[error("'{key}' is {found}; accepted: {accepted}")]
    Field { key: String, found: String, accepted: String },
    #[error("{modality}.modality_keys is empty")]
    NoKeys { modality: &'static str },
    #[error("{modality}.modality_keys names '{key}' twice")]
    RepeatedKey { modality: &'static str, key: String },
    #[error("{modality}.{list} names '{key}', which is not in {modality}.modality_keys")]
    UnknownEmbeddingKey { modality: &'static str, list: &'static str, key: String },
    #[error("{modality}.delta_indices is {found:?}; accepted: {accepted}")]
    Deltas { modality: &'static str, found: Vec<i32>, accepted: String },
    #[error("language.modality_keys has {found} entries; an instruction is one string")]
    Languages { found: usize },
    #[error("{cameras} cameras with {frames} frames each are more than {MAX_PICTURES} pictures")]
    Pictures { cameras: usize, frames: usize },
    #[error("action.action_configs has {configs} entries for {keys} action groups")]
    ActionConfigs { keys: usize, configs: usize },
    #[error("its statistics have no '{table}.{group}'")]
    NoGroup { table: &'static str, group: String },
    #[error("its statistics have no '{table}.{group}.{key}'")]
    NoStatistic { table: &'static str, group: String, key: &'static str },
    #[error("'{table}.{group}.{key}' of its statistics is empty")]
    EmptyStatistic { table: &'static str, group: String, key: &'static str },
    #[error(
        "'{table}.{group}.{key}' of its statistics has {found} values; the group has {expected}"
    )]
    Length { table: &'static str, group: String, key: &'static str, found: usize, expected: usize },
    #[error(
        "'{RELATIVE_TABLE}.{group}.{key}' of its statistics has {found} rows; a chunk has {horizon} steps"
    )]
    Rows { group: String, key: &'static str, found: usize, horizon: usize },
    #[error("'{table}.{group}' of its statistics has rows per step for only one of {} and {}", keys[0], keys[1])]
    MixedRows { table: &'static str, group: String, keys: [&'static str; 2] },
    #[error(
        "'{table}.{group}.{key}' of its statistics has {found} where a finite number is needed"
    )]
    NotANumber { table: &'static str, group: String, key: &'static str, found: String },
    #[error(
        "'{table}.{group}' of its statistics has {} {low} and {} {high} in dimension {dimension}",
        keys[0], keys[1]
    )]
    Bounds {
        table: &'static str,
        group: String,
        keys: [&'static str; 2],
        dimension: usize,
        low: f64,
        high: f64,
    },
    #[error("'{table}.{group}.std' of its statistics is {found} in dimension {dimension}")]
    NegativeStd { table: &'static str, group: String, dimension: usize, found: f64 },
    #[error("action group '{group}' has {found} values; its pose format {format:?} takes {}", format.dim())]
    PoseWidth { group: String, format: PoseFormat, found: usize },
    #[error(
        "action group '{group}' is RELATIVE to state group '{state_group}', which does not exist"
    )]
    NoReference { group: String, state_group: String },
    #[error(
        "action group '{group}' has {dim} values but is RELATIVE to state group '{state_group}' with {state_dim}"
    )]
    ReferenceWidth { group: String, dim: usize, state_group: String, state_dim: usize },
    #[error("its encoded state has {found} values; the model takes {max}")]
    StateWidth { found: usize, max: usize },
    #[error("its actions have {found} values; the model gives {max}")]
    ActionWidth { found: usize, max: usize },
    #[error(transparent)]
    DataConfig(#[from] n15::DataConfigProblem),
}

/// What the files of a snapshot say about its embodiments.
pub(super) struct Sources<'a> {
    pub processor: &'a Processor,
    /// Tag -> modalities.
    pub modalities: &'a Map<String, Value>,
    /// Tag -> tables of statistics.
    pub statistics: &'a Map<String, Value>,
    /// Tag -> slot.
    pub slots: &'a Map<String, Value>,
    /// Slots of the model.
    pub slot_count: usize,
    /// Rows of the model's prediction.
    pub action_rows: usize,
}

impl Sources<'_> {
    /// Every tag that any of the files mentions, with its embodiment or the reason why there is none.
    pub(super) fn build_all(&self) -> BTreeMap<String, Result<Embodiment, EmbodimentProblem>> {
        let files = [self.modalities, self.statistics, self.slots];
        let tags: BTreeSet<&String> = files.into_iter().flat_map(Map::keys).collect();
        tags.into_iter().map(|tag| (tag.clone(), self.build(tag))).collect()
    }

    fn build(&self, tag: &str) -> Result<Embodiment, EmbodimentProblem> {
        let config = self.modalities.get(tag).ok_or(EmbodimentProblem::NoModalities)?;
        let statistics = self.statistics.get(tag).ok_or(EmbodimentProblem::NoStatistics)?;
        let slot = self.slot(tag)?;
        let modalities = Modalities::parse(config)?;

        let frame_deltas = frame_deltas(&modalities.video)?;
        let language_key = language_key(&modalities.language)?;
        let horizon = self.horizon(&modalities.action)?;
        let state = self.state_groups(&modalities.state, statistics)?;
        let action = self.action_groups(&modalities.action, statistics, horizon, &state)?;
        Ok(Embodiment {
            tag: tag.to_owned(),
            slot,
            cameras: modalities.video.keys.iter().map(|key| (*key).to_owned()).collect(),
            frame_deltas,
            state,
            action,
            horizon,
            language_key,
        })
    }

    fn slot(&self, tag: &str) -> Result<usize, EmbodimentProblem> {
        let value = self.slots.get(tag).ok_or(EmbodimentProblem::NoSlot)?;
        value
            .as_u64()
            .and_then(|slot| usize::try_from(slot).ok())
            .filter(|slot| *slot < self.slot_count)
            .ok_or_else(|| EmbodimentProblem::Slot {
                found: json::brief(value),
                slots: self.slot_count,
            })
    }

    fn horizon(&self, action: &Modality<'_>) -> Result<usize, EmbodimentProblem> {
        let rows = self.action_rows.min(self.processor.max_action_horizon);
        let consecutive = action.deltas.iter().copied().eq(0..action.deltas.len() as i32);
        if !consecutive || !(1..=rows).contains(&action.deltas.len()) {
            return Err(EmbodimentProblem::Deltas {
                modality: "action",
                found: action.deltas.clone(),
                accepted: format!("0, 1, 2, ... up to {rows} steps"),
            });
        }
        Ok(action.deltas.len())
    }

    /// Statistics that bound a group of state or of absolute actions.
    fn bound_keys(&self) -> [&'static str; 2] {
        if self.processor.use_percentiles { ["q01", "q99"] } else { ["min", "max"] }
    }

    fn state_groups(
        &self,
        state: &Modality<'_>,
        statistics: &Value,
    ) -> Result<Vec<StateGroupSpec>, EmbodimentProblem> {
        if state.deltas != [0] {
            return Err(EmbodimentProblem::Deltas {
                modality: "state",
                found: state.deltas.clone(),
                accepted: "[0], the state of the observation".to_owned(),
            });
        }
        let groups: Vec<StateGroupSpec> = state
            .keys
            .iter()
            .map(|name| self.state_group(name, state, statistics))
            .collect::<Result<_, _>>()?;
        let found = groups.iter().map(|group| group.encoding.encoded_dim(group.dim)).sum();
        let max = self.processor.max_state_dim;
        if found > max {
            return Err(EmbodimentProblem::StateWidth { found, max });
        }
        Ok(groups)
    }

    /// First match wins: sin/cos, mean and deviation, bounds (spec section 6.1).
    fn state_group(
        &self,
        name: &str,
        state: &Modality<'_>,
        statistics: &Value,
    ) -> Result<StateGroupSpec, EmbodimentProblem> {
        let statistics = GroupStatistics::find(statistics, "state", name)?;
        let bound_keys = self.bound_keys();
        let dim = statistics.dim(bound_keys[0])?;
        let encoding =
            if self.processor.apply_sincos_state_encoding && state.sin_cos.contains(&name) {
                StateEncoding::SinCos
            } else if state.mean_std.contains(&name) {
                let (mean, std) = statistics.moments(dim, 1)?.into_values();
                StateEncoding::MeanStd { mean, std }
            } else {
                let (min, max) = statistics.bounds(bound_keys, dim, 1)?.into_values();
                StateEncoding::MinMax { min, max, clip: self.processor.clip_outliers }
            };
        Ok(StateGroupSpec { name: name.to_owned(), dim, encoding })
    }

    fn action_groups(
        &self,
        action: &Modality<'_>,
        statistics: &Value,
        horizon: usize,
        state: &[StateGroupSpec],
    ) -> Result<Vec<ActionGroupSpec>, EmbodimentProblem> {
        let mut groups = Vec::with_capacity(action.keys.len());
        for (position, name) in action.keys.iter().enumerate() {
            let declared = action.actions.as_ref().map(|declared| &declared[position]);
            let composed = self.processor.use_relative_action
                && declared.is_some_and(|declared| declared.representation == Declared::Relative);

            let absolute = GroupStatistics::find(statistics, "action", name)?;
            let dim = absolute.dim(self.bound_keys()[0])?;
            // The statistics of relative actions are bounded by min and max even where percentiles are in force.
            let (source, bound_keys) = if composed {
                (GroupStatistics::find(statistics, RELATIVE_TABLE, name)?, ["min", "max"])
            } else {
                (absolute, self.bound_keys())
            };
            let normalization = if action.mean_std.contains(name) {
                match source.moments(dim, horizon)? {
                    StatisticPair::Constant(mean, std) => {
                        ActionNormalization::MeanStd { mean, std }
                    }
                    StatisticPair::PerStep(mean, std) => {
                        ActionNormalization::MeanStdPerStep { mean, std }
                    }
                }
            } else {
                match source.bounds(bound_keys, dim, horizon)? {
                    StatisticPair::Constant(min, max) => ActionNormalization::MinMax { min, max },
                    StatisticPair::PerStep(min, max) => {
                        ActionNormalization::MinMaxPerStep { min, max }
                    }
                }
            };
            let pose = declared.map_or(Ok(None), |declared| pose(name, dim, declared, composed))?;
            let reference = match declared {
                Some(declared) if composed => relative_to(name, dim, declared, pose, state)?,
                Some(declared) if declared.representation == Declared::Delta => {
                    ActionReference::Delta
                }
                _ => ActionReference::Absolute,
            };
            groups.push(ActionGroupSpec {
                name: (*name).to_owned(),
                dim,
                normalization,
                pose: pose.filter(|_| reference != ActionReference::Delta),
                reference,
            });
        }
        let found = groups.iter().map(|group| group.dim).sum();
        let max = self.processor.max_action_dim;
        if found > max {
            return Err(EmbodimentProblem::ActionWidth { found, max });
        }
        Ok(groups)
    }
}

/// Frame times must run from the oldest to now.
fn frame_deltas(video: &Modality<'_>) -> Result<Vec<i32>, EmbodimentProblem> {
    let ascending = video.deltas.windows(2).all(|pair| pair[0] < pair[1]);
    if !ascending || video.deltas.last().is_none_or(|last| *last > 0) {
        return Err(EmbodimentProblem::Deltas {
            modality: "video",
            found: video.deltas.clone(),
            accepted: "ascending steps, none above 0".to_owned(),
        });
    }
    let (cameras, frames) = (video.keys.len(), video.deltas.len());
    if cameras.saturating_mul(frames) > MAX_PICTURES {
        return Err(EmbodimentProblem::Pictures { cameras, frames });
    }
    Ok(video.deltas.clone())
}

fn language_key(language: &Modality<'_>) -> Result<String, EmbodimentProblem> {
    if language.deltas != [0] {
        return Err(EmbodimentProblem::Deltas {
            modality: "language",
            found: language.deltas.clone(),
            accepted: "[0], the instruction of the observation".to_owned(),
        });
    }
    match language.keys.as_slice() {
        [key] => Ok((*key).to_owned()),
        keys => Err(EmbodimentProblem::Languages { found: keys.len() }),
    }
}

/// The pose layout of a group, if its values are poses.
///
/// DEFAULT stands for a 4x4 matrix where poses have to be composed. Where they are passed on, it only means that no layout
/// is declared, and the group is a list of numbers unless it has a matrix's width.
fn pose(
    group: &str,
    dim: usize,
    declared: &ActionDeclaration<'_>,
    composed: bool,
) -> Result<Option<PoseFormat>, EmbodimentProblem> {
    if !declared.end_effector {
        return Ok(None);
    }
    let format = match declared.format {
        Format::XyzRot6d => PoseFormat::Rot6d,
        Format::XyzRotvec => PoseFormat::Rotvec,
        Format::Default => PoseFormat::Matrix,
    };
    if dim == format.dim() {
        Ok(Some(format))
    } else if declared.format == Format::Default && !composed {
        Ok(None)
    } else {
        Err(EmbodimentProblem::PoseWidth { group: group.to_owned(), format, found: dim })
    }
}

/// The state group that a RELATIVE group is composed onto: the named one, or the one with the group's own name.
fn relative_to(
    group: &str,
    dim: usize,
    declared: &ActionDeclaration<'_>,
    pose: Option<PoseFormat>,
    state: &[StateGroupSpec],
) -> Result<ActionReference, EmbodimentProblem> {
    // The reference treats an empty name as none.
    let state_group = declared.state_key.filter(|key| !key.is_empty()).unwrap_or(group).to_owned();
    let group = group.to_owned();
    let Some(found) = state.iter().find(|candidate| candidate.name == state_group) else {
        return Err(EmbodimentProblem::NoReference { group, state_group });
    };
    if found.dim != dim {
        let state_dim = found.dim;
        return Err(EmbodimentProblem::ReferenceWidth { group, dim, state_group, state_dim });
    }
    Ok(match pose {
        Some(format) => ActionReference::RelativePose { state_group, format },
        None => ActionReference::RelativeJoint { state_group },
    })
}
