//! Why a prediction does not become a chunk.

use crate::contract::{PoseFormat, StateError};
use crate::words::{Number, numbers};

/// Why a prediction is refused. A chunk is refused as a whole: a part of one never moves a robot.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DecodeError {
    #[error("the prediction has {found} values; {rows} x {cols} were announced")]
    Length { rows: usize, cols: usize, found: usize },
    #[error(
        "embodiment '{embodiment}' needs {need_rows} x {need_cols} of the prediction, which is {rows} x {cols}; \
         at least one row and column are needed"
    )]
    Shape { embodiment: String, need_rows: usize, need_cols: usize, rows: usize, cols: usize },
    #[error(
        "the model predicted {value} for action group '{group}', step {step}, column {column}; the chunk is dropped"
    )]
    PredictionNotFinite { group: String, step: usize, column: usize, value: f32 },
    #[error(
        "the model predicted {value} at row {row}, column {column}, outside the embodiment's groups; the chunk is dropped"
    )]
    PaddingNotFinite { row: usize, column: usize, value: f32 },
    #[error(
        "action group '{group}', step {step}, column {column} decodes to {}, which f32 cannot hold; the chunk \
         is dropped",
        Number(*.value)
    )]
    ActionNotFinite { group: String, step: usize, column: usize, value: f64 },
    #[error("statistics of action group '{group}' have {found} values; {expected} are needed")]
    Statistics { group: String, expected: usize, found: usize },
    #[error(
        "action group '{group}' has {action} columns and state group '{state_group}', which it is relative to, has \
         {state}"
    )]
    ReferenceWidth { group: String, action: usize, state_group: String, state: usize },
    #[error(
        "action group '{group}' is relative to state group '{state_group}', which embodiment '{embodiment}' does not have"
    )]
    ReferenceGroup { group: String, state_group: String, embodiment: String },
    #[error("action group '{group}' has {dim} columns; a pose in format {format:?} has {}", format.dim())]
    PoseWidth { group: String, format: PoseFormat, dim: usize },
    #[error("action group '{group}', step {step}: {problem}; the chunk is dropped")]
    ActionPose { group: String, step: usize, problem: PoseError },
    #[error(
        "state group '{state_group}': {problem}; action group '{group}' cannot be composed onto it"
    )]
    StatePose { group: String, state_group: String, problem: PoseError },
    #[error("action group '{group}' has {dim} columns; axis times angle has 3")]
    RotationWidth { group: String, dim: usize },
    #[error(
        "action group '{group}', step {step}: [{}] is no axis times angle; the chunk is dropped",
        numbers(.values)
    )]
    Rotation { group: String, step: usize, values: Vec<f64> },
    #[error(transparent)]
    State(#[from] StateError),
}

impl DecodeError {
    /// The state group that is to blame; `None` where it is not the state.
    pub fn state_group(&self) -> Option<&str> {
        match self {
            DecodeError::StatePose { state_group, .. } => Some(state_group),
            DecodeError::State(error) => Some(error.group()),
            _ => None,
        }
    }
}

/// Why numbers are not a pose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoseError {
    #[error(
        "the two rows of the rotation are zero, parallel or not finite, so that no orientation follows from them"
    )]
    Rows,
    #[error("the rotation matrix is singular, mirrored or not finite")]
    Matrix,
    #[error("the last row of the matrix is not 0, 0, 0, 1; matrices are row-major")]
    LastRow,
}
