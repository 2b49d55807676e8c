//! The limits of what a chunk may command: joint positions, joint speeds, and the steps of poses.
//!
//! Values of a chunk are f32, so a value that is beyond its limit by no more than its own rounding keeps it.

mod joints;
mod poses;

use std::collections::BTreeMap;

use crate::contract::ActionChunk;
use crate::decode::PoseError;
use crate::words::Number;

pub use joints::{JointLimits, LimitedJoint, ObservedJoint};
pub use poses::PoseLimits;

/// The raw state of an observation, by group.
pub type ObservedState = BTreeMap<String, Vec<f64>>;

/// The limits of all action groups that have any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Guard {
    pub joints: Vec<JointLimits>,
    pub poses: Vec<PoseLimits>,
    /// Length of a control step, seconds.
    pub step_s: f64,
}

/// What is done with a chunk that goes beyond a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnViolation {
    /// The whole chunk is dropped.
    Refuse,
    /// The values are brought to the limit, one row after the other.
    Clamp,
}

/// The first limit that a chunk does not keep. Rows count from 0.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Violation {
    #[error("group '{group}': row {row}, column {column} is {value}, not a finite number")]
    NotFinite { group: String, row: usize, column: usize, value: f32 },
    #[error(
        "joint '{joint}' (group '{group}'): row {row} commands position {:.6}, below its limit {} (`action.{group}.position_min`)",
        Number(*.value), Number(*.limit)
    )]
    BelowMinimum { group: String, joint: String, row: usize, value: f64, limit: f64 },
    #[error(
        "joint '{joint}' (group '{group}'): row {row} commands position {:.6}, above its limit {} (`action.{group}.position_max`)",
        Number(*.value), Number(*.limit)
    )]
    AboveMaximum { group: String, joint: String, row: usize, value: f64, limit: f64 },
    #[error(
        "joint '{joint}' (group '{group}'): the step to row {row} has a speed of {:.6} per second, above its limit {} \
         (`action.{group}.velocity_max`)",
        Number(*.value), Number(*.limit)
    )]
    Speed { group: String, joint: String, row: usize, value: f64, limit: f64 },
    #[error(
        "joint '{joint}' (group '{group}') is observed at {:.6}, from where it cannot be brought within {} to {} \
         in one step at its velocity_max",
        Number(*.observed), Number(*.minimum), Number(*.maximum)
    )]
    OutOfReach { group: String, joint: String, observed: f64, minimum: f64, maximum: f64 },
    #[error(
        "group '{group}': the step to row {row} is {:.6} m long, above its limit {} m \
         (`action.{group}.translation_step_max_m`)",
        Number(*.value), Number(*.limit)
    )]
    Translation { group: String, row: usize, value: f64, limit: f64 },
    #[error(
        "group '{group}': the step to row {row} turns by {:.6} rad, above its limit {} rad \
         (`action.{group}.rotation_step_max_rad`)",
        Number(*.value), Number(*.limit)
    )]
    Rotation { group: String, row: usize, value: f64, limit: f64 },
    #[error("group '{group}': row {row} is no pose: {problem}")]
    NoPose { group: String, row: usize, problem: PoseError },
}

impl Guard {
    /// Checks every row of a chunk against the row before it, and the first against the state of the observation that
    /// the chunk answers. Gives back how many limits were not kept and then were; a chunk that keeps all is untouched.
    ///
    /// # Errors
    /// The first limit that is not kept; with [`OnViolation::Clamp`] only what no clamping mends: numbers that are not
    /// finite, rows that are no pose, a joint that is observed out of reach of its limits. The chunk is not to be used
    /// then.
    pub fn check(
        &self,
        chunk: &mut ActionChunk,
        observed: &ObservedState,
        on_violation: OnViolation,
    ) -> Result<usize, Violation> {
        let mut limited = 0;
        for group in &mut chunk.groups {
            if let Some(at) = group.values.iter().position(|value| !value.is_finite()) {
                let (row, column) = (at / group.dim.max(1), at % group.dim.max(1));
                let (group, value) = (group.name.clone(), group.values[at]);
                return Err(Violation::NotFinite { group, row, column, value });
            }
            if let Some(limits) = self.joints.iter().find(|limits| limits.group == group.name) {
                limited += limits.check(&mut group.values, observed, self.step_s, on_violation)?;
            }
            if let Some(limits) = self.poses.iter().find(|limits| limits.group == group.name) {
                limited += limits.check(&mut group.values, observed, on_violation)?;
            }
        }
        Ok(limited)
    }
}

#[cfg(test)]
mod tests;
