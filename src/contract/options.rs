//! How one prediction is to be made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the initial noise of the flow-matching head comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Noise {
    /// Standard normal values from the reference's generator; the same seed gives the same bytes.
    Seed(u64),
    /// The values themselves, `[action rows, action width]` of the model, row-major.
    Explicit(Vec<f32>),
}

/// Options of one prediction.
#[derive(Clone, Debug, Default)]
pub struct PredictOptions {
    /// `None` means the version's default seed.
    pub noise: Option<Noise>,
    /// Raised by another thread to end the prediction early.
    pub cancel: CancelToken,
    /// Told about every stage as it begins.
    pub progress: Progress,
}

/// A flag shared between the thread that predicts and one that may stop it.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Asks the prediction to end at the next instruction.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Whoever wants to know which stage a prediction is in; nobody by default.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<dyn Fn(&'static str) + Send + Sync>>);

impl Progress {
    /// `listener` is called by the thread that predicts, with the names of [`StageTimings::stages`].
    ///
    /// [`StageTimings::stages`]: super::StageTimings::stages
    pub fn to(listener: impl Fn(&'static str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// A stage begins.
    pub fn begin(&self, stage: &'static str) {
        if let Some(listener) = &self.0 {
            listener(stage);
        }
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Progress(listener)" } else { "Progress(nobody)" })
    }
}

/// Receives intermediate values by name, for tests and fidelity reports.
///
/// A tap is a name of the golden files without their `tap.` prefix, such as `vit.block0.attn`.
pub trait TapSink: Send {
    /// `values` is `[rows, cols]`, row-major. A matrix that is computed in two parts comes as two, upper rows first; the
    /// upper part is left out when it is that of the request before.
    fn tap(&mut self, name: &str, rows: usize, cols: usize, values: &[f32]);
}
