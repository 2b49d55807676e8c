//! From the model's normalised prediction to physical actions.

mod error;
mod normalization;
mod se3;
mod single;

use std::collections::BTreeMap;

use crate::contract::{
    ActionGroup, ActionGroupSpec, ActionReference, Embodiment, PoseFormat, Representation,
    StateGroupSpec, state_group,
};

pub use error::{DecodeError, PoseError};
pub use se3::Pose;

/// Decodes `prediction`, `[rows, cols]`, into the embodiment's action groups, each `[embodiment.horizon, dim]`.
///
/// Relative groups are composed onto `state`, the raw state of the observation that was predicted from, rounded to
/// f32 (spec N1.6, section 6.2). Every step is relative to that state, none to the step before.
///
/// # Errors
/// A value that is not finite anywhere in the prediction or in the result; a prediction smaller than the embodiment's
/// actions; statistics or reference groups that do not fit; numbers that are no pose. Then there is no chunk at all.
pub fn decode(
    embodiment: &Embodiment,
    prediction: &[f32],
    rows: usize,
    cols: usize,
    state: &BTreeMap<String, Vec<f64>>,
) -> Result<Vec<ActionGroup>, DecodeError> {
    check_shape(embodiment, prediction, rows, cols)?;
    check_finite(embodiment, prediction, cols)?;

    let mut groups = Vec::with_capacity(embodiment.action.len());
    let mut first_column = 0;
    for spec in &embodiment.action {
        let columns = first_column..first_column + spec.dim;
        let normalized = prediction
            .chunks_exact(cols)
            .take(embodiment.horizon)
            .flat_map(|row| &row[columns.clone()]);
        let mut values = normalization::denormalize(spec, embodiment.horizon, normalized)?;
        make_absolute(embodiment, spec, state, &mut values)?;
        groups.push(ActionGroup {
            name: spec.name.clone(),
            representation: representation(spec),
            dim: spec.dim,
            values: to_f32(spec, &values)?,
        });
        first_column = columns.end;
    }
    Ok(groups)
}

/// That every relative group can be composed onto `state`, which is known before anything is predicted.
///
/// # Errors
/// As [`decode`], for the state.
pub fn check_state(
    embodiment: &Embodiment,
    state: &BTreeMap<String, Vec<f64>>,
) -> Result<(), DecodeError> {
    for spec in &embodiment.action {
        match &spec.reference {
            ActionReference::Absolute | ActionReference::Delta => {}
            ActionReference::RelativeJoint { state_group } => {
                reference_values(embodiment, spec, state_group, state)?;
            }
            ActionReference::RelativePose { state_group, format } => {
                reference_pose(embodiment, spec, state_group, *format, state)?;
            }
        }
    }
    Ok(())
}

fn check_shape(
    embodiment: &Embodiment,
    prediction: &[f32],
    rows: usize,
    cols: usize,
) -> Result<(), DecodeError> {
    if rows.checked_mul(cols) != Some(prediction.len()) {
        return Err(DecodeError::Length { rows, cols, found: prediction.len() });
    }
    let need_rows = embodiment.horizon;
    let need_cols =
        embodiment.action.iter().fold(0usize, |columns, group| columns.saturating_add(group.dim));
    let fits = (1..=rows).contains(&need_rows) && (1..=cols).contains(&need_cols);
    if fits {
        return Ok(());
    }
    let embodiment = embodiment.tag.clone();
    Err(DecodeError::Shape { embodiment, need_rows, need_cols, rows, cols })
}

/// Refuses a prediction with any value that is not finite, outside the embodiment's columns as well: the network is
/// then not to be trusted anywhere.
fn check_finite(
    embodiment: &Embodiment,
    prediction: &[f32],
    cols: usize,
) -> Result<(), DecodeError> {
    let Some(at) = prediction.iter().position(|value| !value.is_finite()) else {
        return Ok(());
    };
    let (row, column, value) = (at / cols, at % cols, prediction[at]);
    let mut first_column = 0;
    for spec in &embodiment.action {
        if row < embodiment.horizon && column < first_column + spec.dim {
            let (group, column) = (spec.name.clone(), column - first_column);
            return Err(DecodeError::PredictionNotFinite { group, step: row, column, value });
        }
        first_column += spec.dim;
    }
    Err(DecodeError::PaddingNotFinite { row, column, value })
}

/// Composes relative values, `[horizon, spec.dim]`, onto the observed state; others stay as they are.
fn make_absolute(
    embodiment: &Embodiment,
    spec: &ActionGroupSpec,
    state: &BTreeMap<String, Vec<f64>>,
    values: &mut [f64],
) -> Result<(), DecodeError> {
    match &spec.reference {
        ActionReference::Absolute | ActionReference::Delta => Ok(()),
        ActionReference::RelativeJoint { state_group } => {
            let reference = reference_values(embodiment, spec, state_group, state)?;
            for step in values.chunks_exact_mut(spec.dim.max(1)) {
                for (value, &offset) in step.iter_mut().zip(&reference) {
                    *value += f64::from(offset);
                }
            }
            Ok(())
        }
        ActionReference::RelativePose { state_group, format } => {
            if spec.dim != format.dim() {
                let (group, format, dim) = (spec.name.clone(), *format, spec.dim);
                return Err(DecodeError::PoseWidth { group, format, dim });
            }
            let reference = reference_pose(embodiment, spec, state_group, *format, state)?;
            for (step, columns) in values.chunks_exact_mut(spec.dim).enumerate() {
                let relative = Pose::from_action(*format, columns).map_err(|problem| {
                    DecodeError::ActionPose { group: spec.name.clone(), step, problem }
                })?;
                reference.compose(&relative).write(*format, columns);
            }
            Ok(())
        }
    }
}

/// The observed pose that a relative group refers to.
fn reference_pose(
    embodiment: &Embodiment,
    spec: &ActionGroupSpec,
    name: &str,
    format: PoseFormat,
    state: &BTreeMap<String, Vec<f64>>,
) -> Result<Pose, DecodeError> {
    let values = reference_values(embodiment, spec, name, state)?;
    Pose::from_state(format, &values).map_err(|problem| {
        let (group, state_group) = (spec.name.clone(), name.to_owned());
        DecodeError::StatePose { group, state_group, problem }
    })
}

/// The observed values that a relative group refers to, `[spec.dim]`.
fn reference_values(
    embodiment: &Embodiment,
    spec: &ActionGroupSpec,
    name: &str,
    state: &BTreeMap<String, Vec<f64>>,
) -> Result<Vec<f32>, DecodeError> {
    let reference: &StateGroupSpec =
        embodiment.state.iter().find(|group| group.name == name).ok_or_else(|| {
            DecodeError::ReferenceGroup {
                group: spec.name.clone(),
                state_group: name.to_string(),
                embodiment: embodiment.tag.clone(),
            }
        })?;
    if reference.dim != spec.dim {
        return Err(DecodeError::ReferenceWidth {
            group: spec.name.clone(),
            action: spec.dim,
            state_group: name.to_string(),
            state: reference.dim,
        });
    }
    Ok(state_group(state, reference)?)
}

/// How the decoded values of a group are to be read.
pub fn representation(spec: &ActionGroupSpec) -> Representation {
    let pose = match &spec.reference {
        ActionReference::Delta => return Representation::Delta,
        ActionReference::RelativePose { format, .. } => Some(*format),
        ActionReference::Absolute | ActionReference::RelativeJoint { .. } => spec.pose,
    };
    match pose {
        None => Representation::Absolute,
        Some(PoseFormat::Rot6d) => Representation::PoseRot6d,
        Some(PoseFormat::Rotvec) => Representation::PoseRotvec,
        Some(PoseFormat::Matrix) => Representation::PoseMatrix,
    }
}

fn to_f32(spec: &ActionGroupSpec, values: &[f64]) -> Result<Vec<f32>, DecodeError> {
    let rounded: Vec<f32> = values.iter().map(|&value| value as f32).collect();
    match rounded.iter().position(|value| !value.is_finite()) {
        None => Ok(rounded),
        Some(at) => {
            let (step, column) = (at / spec.dim, at % spec.dim);
            let (group, value) = (spec.name.clone(), values[at]);
            Err(DecodeError::ActionNotFinite { group, step, column, value })
        }
    }
}

#[cfg(test)]
mod tests;
