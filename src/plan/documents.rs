//! What the serving documents measured on a p150, and the goals of this project.
//!
//! The documents are `SERVING.md` and `tt-model.yaml` of the model repositories `changh95/GR00T-N1.5-3B-p150` (N1.6 and N1.7
//! likewise): a Python system on tt-metal.

use crate::backend::blackhole::numerics::DtypePolicy;
use crate::contract::Version;
use crate::program::StageKind;

/// Numbers of one version, milliseconds.
pub struct Documents {
    /// Medians of the Python system's four stages, in their order.
    pub stages_ms: [f64; 4],
    /// What a plan is to show at the documents' streaming rates and half of HiFi2.
    pub goal_ms: f64,
    /// The same with the frames of before kept.
    pub goal_with_history_ms: Option<f64>,
    /// All weights once per use at the nominal rate of DRAM, as bf16 and as bfp8_b.
    pub floors_ms: [f64; 2],
}

/// The weights that they measured with.
pub const MEASURED_POLICY: DtypePolicy = DtypePolicy::MixedDit;

/// Nominal rate of a p150's DRAM, bytes a second.
pub const NOMINAL_DRAM: f64 = 512e9;

impl Documents {
    pub const fn of(version: Version) -> Self {
        match version {
            Version::N15 => Self {
                stages_ms: [8.7, 8.7, 4.5, 16.0],
                goal_ms: 11.5,
                goal_with_history_ms: None,
                floors_ms: [13.2, 7.0],
            },
            Version::N16 => Self {
                stages_ms: [10.8, 9.6, 2.2, 15.3],
                goal_ms: 15.6,
                goal_with_history_ms: None,
                floors_ms: [22.5, 12.0],
            },
            Version::N17 => Self {
                stages_ms: [17.5, 12.4, 6.2, 16.5],
                goal_ms: 24.7,
                goal_with_history_ms: Some(20.6),
                floors_ms: [22.4, 11.9],
            },
        }
    }

    /// Measured time of a stage, seconds.
    pub fn stage_s(&self, kind: StageKind) -> f64 {
        let at = StageKind::ALL.iter().position(|of| *of == kind);
        at.map_or(0.0, |at| self.stages_ms[at] / 1e3)
    }

    /// Measured time of all stages, seconds.
    pub fn total_s(&self) -> f64 {
        self.stages_ms.iter().sum::<f64>() / 1e3
    }
}
