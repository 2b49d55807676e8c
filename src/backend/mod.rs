//! What runs a model: one interface, several machines.

pub mod blackhole;
pub mod cpu;
mod leading;

use std::time::Duration;

use blackhole::device::StatusBoard;
use blackhole::numerics::DtypePolicy;
use cpu::Numerics;
use cpu::card::WeightBytes;

use crate::contract::{PredictOptions, TapSink};
use crate::encode::ModelInput;
use crate::program::StageKind;

/// Runs the four stages of a loaded model.
pub trait Backend: Send {
    /// What it is, for logs: `cpu (2 threads)`.
    fn describe(&self) -> String;

    /// Computes the requests that follow with these numbers.
    fn set_numerics(&mut self, numerics: Numerics);

    /// Whether it computes what other backends are compared with: in f32, on the CPU.
    fn is_reference(&self) -> bool;

    /// Where the state of the device that computes can be read; `None` for the CPU.
    fn device(&self) -> Option<StatusBoard> {
        None
    }

    /// Looks, in milliseconds, after what computes, between two requests; `true` if it is lost and has to be brought back
    /// with [`Backend::recover`].
    fn look(&mut self) -> bool {
        false
    }

    /// Brings back what computes, if it is time to try; may take minutes. The next request would do the same.
    fn recover(&mut self) {}

    /// What the weights of the last request would take on a card under this policy; `None` where nobody knows.
    fn weight_bytes(&self, _policy: DtypePolicy) -> Option<WeightBytes> {
        None
    }

    /// One forward pass, from model input to the normalised chunk; of the options it heeds `cancel` and `progress`. `taps` gets every named intermediate value.
    fn run(
        &mut self,
        input: &ModelInput,
        options: &PredictOptions,
        taps: Option<&mut dyn TapSink>,
    ) -> Result<ModelOutput, BackendError>;
}

/// Answer of a backend.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelOutput {
    /// `[action rows, action width]` of the model, row-major.
    pub actions: Vec<f32>,
    pub timings: Vec<(StageKind, Duration)>,
}

/// Why a backend gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    #[error("the prediction was cancelled in stage '{}'", stage.name())]
    Cancelled { stage: StageKind },
    #[error("model input '{name}' has {found} values, the program needs {expected}")]
    InputLength { name: &'static str, expected: usize, found: usize },
    #[error("index {value} in '{name}' is outside 0..{limit}")]
    Index { name: &'static str, value: u32, limit: usize },
    #[error(
        "constant '{name}' should have {expected} values from the prepare program, found {found:?}"
    )]
    Import { name: String, expected: usize, found: Option<usize> },
    #[error("the threads of the CPU backend could not be started: {reason}")]
    Threads { reason: String },
    #[error(transparent)]
    Checkpoint(#[from] crate::checkpoint::CheckpointError),
    #[error(transparent)]
    Device(Box<blackhole::device::DeviceError>),
}

impl From<blackhole::device::DeviceError> for BackendError {
    fn from(error: blackhole::device::DeviceError) -> Self {
        Self::Device(Box::new(error))
    }
}
