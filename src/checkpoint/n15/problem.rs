//! Why an embodiment of N1.5 cannot be served.

use super::METADATA_FILE;
use crate::checkpoint::EmbodimentProblem;
use crate::words::names;

/// Why an embodiment tag cannot be served.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DataConfigProblem {
    #[error("{METADATA_FILE} has no entry for it")]
    NoEntry,
    #[error("the reference has no slot for it, only for {}", tags.join(", "))]
    NoSlot { tags: Vec<&'static str> },
    #[error("its slot is {slot}; the model has slots 0 to {}", slots - 1)]
    Slot { slot: usize, slots: usize },
    #[error("several data configs fit its metadata; name one of {}", fitting.join(", "))]
    Several { fitting: Vec<&'static str> },
    #[error("no data config fits its metadata; {}", misfits.join("; "))]
    None { misfits: Vec<String> },
    #[error("data config '{name}' does not fit: {misfit}")]
    Misfit { name: &'static str, misfit: Misfit },
}

/// Why a data config does not fit the metadata of an embodiment.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Misfit {
    #[error("there is no camera '{camera}' in the metadata, which has {}", names(.found))]
    NoCamera { camera: String, found: Vec<String> },
    #[error("there is no {table} group '{group}' in the metadata, which has {}", names(.found))]
    NoGroup { table: &'static str, group: String, found: Vec<String> },
    #[error(
        "{table} group '{group}' is converted as a rotation and has rotation_type {found}; accepted: {accepted}"
    )]
    RotationType { table: &'static str, group: String, found: String, accepted: &'static str },
    #[error("{table} group '{group}' has {dim} values; its rotation_type takes {expected}")]
    RotationWidth { table: &'static str, group: String, dim: usize, expected: usize },
    #[error("state group '{group}' is scaled as a rotation but is not absolute")]
    NotAbsolute { group: String },
    #[error(transparent)]
    Declared(Box<EmbodimentProblem>),
}

impl From<EmbodimentProblem> for Misfit {
    fn from(problem: EmbodimentProblem) -> Self {
        Misfit::Declared(Box::new(problem))
    }
}
