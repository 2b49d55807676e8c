//! From raw state values to the state vector that the action head reads.

use std::collections::BTreeMap;

use crate::contract::{
    Embodiment, RotationFormat, StateEncoding, StateError, StateGroupSpec, StateScaling,
    checked_state_group, has_no_range,
};
use crate::rotation;
use crate::words::{Number, numbers};

/// Why a state cannot be encoded.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StateEncodeError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error("statistics of state group '{group}' have {found} values; the group has {expected}")]
    Statistics { group: String, expected: usize, found: usize },
    #[error(
        "the state groups of embodiment '{embodiment}' need {needed} columns; the model's state vector has {width}"
    )]
    TooWide { embodiment: String, needed: usize, width: usize },
    #[error(
        "state group '{group}' value {index} is {}, which the checkpoint's statistics turn into {}; check the \
         value's unit",
        Number(*.raw), Number(*.encoded)
    )]
    Overflow { group: String, index: usize, raw: f64, encoded: f32 },
    #[error("state group '{group}' is [{}], from which no rotation follows", numbers(.values))]
    Rotation { group: String, values: Vec<f64> },
}

impl StateEncodeError {
    /// The state group that it is about; `None` for all of them together.
    pub fn group(&self) -> Option<&str> {
        match self {
            StateEncodeError::State(error) => Some(error.group()),
            StateEncodeError::Statistics { group, .. }
            | StateEncodeError::Overflow { group, .. }
            | StateEncodeError::Rotation { group, .. } => Some(group),
            StateEncodeError::TooWide { .. } => None,
        }
    }
}

/// Encodes `state` for the model: `[width]`, the groups in the embodiment's order, zeros behind them.
///
/// Raw values are rounded to f32 first, as the data sets hold them (spec N1.6, section 6.1); N1.5 takes them as they are.
///
/// # Errors
/// A group that is missing, unknown, of another width or not finite; statistics that do not fit their group; more
/// columns than `width`; values that are no rotation where one is needed; a value so far off that its encoding leaves
/// the range of f32.
pub fn encode_state(
    embodiment: &Embodiment,
    state: &BTreeMap<String, Vec<f64>>,
    width: usize,
) -> Result<Vec<f32>, StateEncodeError> {
    refuse_unknown_groups(embodiment, state)?;
    let mut encoded = Vec::with_capacity(width);
    for spec in &embodiment.state {
        let values = checked_state_group(state, spec)?;
        let first = encoded.len();
        encode_group(spec, values, &mut encoded)?;
        if let Some(column) = encoded[first..].iter().position(|value| !value.is_finite()) {
            let index = column % spec.dim;
            let group = spec.name.clone();
            let (raw, encoded) = (values[index], encoded[first + column]);
            return Err(StateEncodeError::Overflow { group, index, raw, encoded });
        }
    }
    if encoded.len() > width {
        let embodiment = embodiment.tag.clone();
        return Err(StateEncodeError::TooWide { embodiment, needed: encoded.len(), width });
    }
    encoded.resize(width, 0.0);
    Ok(encoded)
}

fn refuse_unknown_groups(
    embodiment: &Embodiment,
    state: &BTreeMap<String, Vec<f64>>,
) -> Result<(), StateError> {
    let known = |name: &String| embodiment.state.iter().any(|spec| spec.name == *name);
    match state.keys().find(|name| !known(name)) {
        None => Ok(()),
        Some(group) => Err(StateError::Unknown {
            group: group.clone(),
            expected: embodiment.state.iter().map(|spec| spec.name.clone()).collect(),
        }),
    }
}

fn encode_group(
    spec: &StateGroupSpec,
    values: &[f64],
    encoded: &mut Vec<f32>,
) -> Result<(), StateEncodeError> {
    let rounded = || values.iter().map(|&value| value as f32);
    match &spec.encoding {
        StateEncoding::SinCos => {
            encoded.extend(rounded().map(|value| f64::from(value).sin() as f32));
            encoded.extend(rounded().map(|value| f64::from(value).cos() as f32));
        }
        StateEncoding::MeanStd { mean, std } => {
            check_statistics(spec, mean, spec.dim)?;
            check_statistics(spec, std, spec.dim)?;
            let dimensions = rounded().zip(mean).zip(std);
            encoded.extend(dimensions.map(|((value, &mean), &std)| standardize(value, mean, std)));
        }
        StateEncoding::MinMax { min, max, clip } => {
            check_statistics(spec, min, spec.dim)?;
            check_statistics(spec, max, spec.dim)?;
            let dimensions = rounded().zip(min).zip(max);
            encoded.extend(dimensions.map(|((value, &min), &max)| {
                let scaled = scale_to_range(value, min, max);
                if *clip { scaled.clamp(-1.0, 1.0) } else { scaled }
            }));
        }
        StateEncoding::Double { rotation: None, scaling } => {
            encode_double(spec, scaling, values, encoded)?;
        }
        StateEncoding::Double { rotation: Some(format), scaling } => {
            encode_double(spec, scaling, &to_6d(spec, *format, values)?, encoded)?;
        }
    }
    Ok(())
}

/// Encoding of N1.5, f64 up to the last step (spec N1.5, section 6).
fn encode_double(
    spec: &StateGroupSpec,
    scaling: &StateScaling,
    values: &[f64],
    encoded: &mut Vec<f32>,
) -> Result<(), StateEncodeError> {
    match scaling {
        StateScaling::None => encoded.extend(values.iter().map(|&value| value as f32)),
        StateScaling::SinCos => {
            encoded.extend(values.iter().map(|value| value.sin() as f32));
            encoded.extend(values.iter().map(|value| value.cos() as f32));
        }
        StateScaling::MinMax { min, max } => {
            check_statistics(spec, min, values.len())?;
            check_statistics(spec, max, values.len())?;
            let dimensions = values.iter().zip(min).zip(max);
            encoded.extend(dimensions.map(|((value, min), max)| {
                if min == max { 0.0 } else { (2.0 * ((value - min) / (max - min)) - 1.0) as f32 }
            }));
        }
    }
    Ok(())
}

/// The first two rows of the rotation that a group's values stand for.
fn to_6d(
    spec: &StateGroupSpec,
    format: RotationFormat,
    values: &[f64],
) -> Result<[f64; 6], StateEncodeError> {
    let matrix =
        if values.len() == format.dim() { rotation::to_matrix(format, values) } else { None };
    matrix.map(|matrix| rotation::to_6d(&matrix)).ok_or_else(|| StateEncodeError::Rotation {
        group: spec.name.clone(),
        values: values.to_vec(),
    })
}

fn check_statistics(
    spec: &StateGroupSpec,
    statistics: &[f64],
    expected: usize,
) -> Result<(), StateEncodeError> {
    if statistics.len() == expected {
        return Ok(());
    }
    let group = spec.name.clone();
    Err(StateEncodeError::Statistics { group, expected, found: statistics.len() })
}

fn standardize(value: f32, mean: f64, std: f64) -> f32 {
    if std == 0.0 { value } else { ((f64::from(value) - mean) / std) as f32 }
}

/// `[min, max]` to [-1, 1]. The quotient is rounded to f32 before it is doubled, as the reference does.
fn scale_to_range(value: f32, min: f64, max: f64) -> f32 {
    if has_no_range(min, max) {
        return 0.0;
    }
    let fraction = ((f64::from(value) - min) / (max - min)) as f32;
    2.0 * fraction - 1.0
}

#[cfg(test)]
mod tests;
