//! What a policy answers: a chunk of actions in physical units.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Version;

/// How the values of an action group are to be read by a controller.
///
/// RELATIVE outputs of a checkpoint are composed onto the observation's state before they get here, so what leaves
/// a policy is absolute, or a command that the checkpoint itself declares absolute or a per-step delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Representation {
    /// Absolute values of the group, one column per dimension: joint positions for a joint group.
    Absolute,
    /// Absolute pose: x, y, z in metres, then the first two rows of the rotation matrix.
    PoseRot6d,
    /// Absolute pose: x, y, z in metres, then axis times angle in radians.
    PoseRotvec,
    /// Absolute pose: the 4x4 homogeneous matrix, row-major.
    PoseMatrix,
    /// Change per step, as the checkpoint declares it (`DELTA`).
    Delta,
}

/// The actions of one group over the horizon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionGroup {
    pub name: String,
    pub representation: Representation,
    /// Number of columns.
    pub dim: usize,
    /// `[horizon, dim]`, row-major, physical units.
    pub values: Vec<f32>,
}

/// Time spent in each stage of one prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StageTimings {
    pub encode: Duration,
    pub vision: Duration,
    pub llm: Duration,
    pub adapter: Duration,
    pub denoise: Duration,
    pub decode: Duration,
}

impl StageTimings {
    /// How many stages there are.
    pub const COUNT: usize = 6;

    /// Name and time of every stage, in order.
    pub fn stages(&self) -> [(&'static str, Duration); Self::COUNT] {
        [
            ("encode", self.encode),
            ("vision", self.vision),
            ("llm", self.llm),
            ("adapter", self.adapter),
            ("denoise", self.denoise),
            ("decode", self.decode),
        ]
    }

    pub fn total(&self) -> Duration {
        self.stages().iter().map(|(_, time)| *time).sum()
    }
}

/// One answer of a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionChunk {
    pub version: Version,
    pub embodiment: String,
    pub instruction: String,
    /// `None` when the noise was given explicitly.
    pub seed: Option<u64>,
    /// Stamp of the observation that the chunk answers, nanoseconds.
    pub stamp_ns: i64,
    /// Rows of every group.
    pub horizon: usize,
    /// In the order of the checkpoint's action keys.
    pub groups: Vec<ActionGroup>,
    /// What the network answered before decoding, `[action rows, action width]` of the model.
    pub normalized: Vec<f32>,
    pub timings: StageTimings,
}
