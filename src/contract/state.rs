//! The observation's state, checked group by group before anything is computed from it.

use std::collections::BTreeMap;

use super::StateGroupSpec;
use crate::words::{Number, names};

/// Why a state group is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StateError {
    #[error("state group '{group}' is missing; the observation has {}", names(.found))]
    Missing { group: String, found: Vec<String> },
    #[error(
        "state group '{group}' is not one of the embodiment's, which are {}; \
         leave it out or give it the right name",
        names(.expected)
    )]
    Unknown { group: String, expected: Vec<String> },
    #[error(
        "state group '{group}' has {found} values; the checkpoint's statistics have {expected}"
    )]
    Width { group: String, expected: usize, found: usize },
    #[error(
        "state group '{group}' has {} at index {index}; it must be a finite number of f32's range",
        Number(*.value)
    )]
    NotFinite { group: String, index: usize, value: f64 },
}

impl StateError {
    /// The group that it is about.
    pub fn group(&self) -> &str {
        match self {
            StateError::Missing { group, .. }
            | StateError::Unknown { group, .. }
            | StateError::Width { group, .. }
            | StateError::NotFinite { group, .. } => group,
        }
    }
}

/// The values of one state group as they were observed, `[spec.dim]`.
///
/// # Errors
/// The group is missing, has another width, or holds a value that is no finite f32.
pub fn checked_state_group<'a>(
    state: &'a BTreeMap<String, Vec<f64>>,
    spec: &StateGroupSpec,
) -> Result<&'a [f64], StateError> {
    let group = || spec.name.clone();
    let values = state.get(&spec.name).ok_or_else(|| StateError::Missing {
        group: group(),
        found: state.keys().cloned().collect(),
    })?;
    if values.len() != spec.dim {
        return Err(StateError::Width { group: group(), expected: spec.dim, found: values.len() });
    }
    if let Some(index) = values.iter().position(|&value| !(value as f32).is_finite()) {
        return Err(StateError::NotFinite { group: group(), index, value: values[index] });
    }
    Ok(values)
}

/// As [`checked_state_group`], rounded to the f32 that most models were trained on.
///
/// # Errors
/// As [`checked_state_group`].
pub fn state_group(
    state: &BTreeMap<String, Vec<f64>>,
    spec: &StateGroupSpec,
) -> Result<Vec<f32>, StateError> {
    Ok(checked_state_group(state, spec)?.iter().map(|&value| value as f32).collect())
}
