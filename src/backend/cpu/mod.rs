//! The CPU backend: interprets a program in f32 on all cores, with weights read as bf16 from the mapped checkpoint; or
//! with the numbers of the card.

mod ahead;
pub mod attention;
pub mod card;
pub mod elementwise;
mod executable;
mod interpreter;
pub mod linear;
pub mod mat;
pub mod math;
mod memory;
pub mod norm;
mod numerics;
mod panel;
mod parallel;
#[cfg(test)]
mod testing;
mod tile;
mod weights;

use std::sync::Arc;
use std::time::Instant;

pub use numerics::Numerics;
use pulp::Arch;
use tracing::debug;

use card::WeightBytes;
use executable::{Constants, Executable};
use weights::Weights;

use super::blackhole::numerics::DtypePolicy;
use super::{Backend, BackendError, ModelOutput};
use crate::checkpoint::Checkpoint;
use crate::contract::{PredictOptions, TapSink};
use crate::encode::ModelInput;
use crate::prepared::{self, Cache};
use crate::program::{ACTIONS, Layout, ModelPrograms, Program};
use crate::words::counted;

/// Programs of this many layouts are kept ready; an instruction of another length makes another layout.
const KEPT_LAYOUTS: usize = 4;

/// A model loaded for the CPU.
pub struct CpuBackend {
    weights: Weights,
    model: Box<dyn ModelPrograms>,
    numerics: Numerics,
    threads: rayon::ThreadPool,
    constants: Constants,
    /// Most recently used last.
    ready: Vec<(Layout, Executable)>,
}

impl CpuBackend {
    /// Runs the prepare program of `model`, or reads from `cache` what it has computed before. `threads` 0 means all
    /// cores; `taps` gets the values named in the program, which then runs in any case.
    ///
    /// # Errors
    /// A tensor that the model needs is missing or has another shape, or no threads can be started.
    pub fn load(
        checkpoint: Arc<Checkpoint>,
        model: Box<dyn ModelPrograms>,
        threads: usize,
        cache: &Cache,
        taps: Option<&mut dyn TapSink>,
    ) -> Result<Self, BackendError> {
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("cpu-backend-{number}"))
            .build()
            .map_err(|error| BackendError::Threads { reason: error.to_string() })?;
        let weights = Weights::new(checkpoint);
        let constants = prepare(model.as_ref(), &weights, &threads, cache, taps)?;
        let numerics = Numerics::F32;
        Ok(Self { weights, model, numerics, threads, constants, ready: Vec::new() })
    }

    /// The same model with other numbers for its requests.
    #[must_use]
    pub fn with_numerics(mut self, numerics: Numerics) -> Self {
        self.set_numerics(numerics);
        self
    }

    /// What the prepare program exports: the values of all [imports](Program::imports).
    pub fn constants(&self) -> &prepared::Values {
        &self.constants
    }

    /// Checkpoint and programs of the model, and its [constants](Self::constants), for another machine.
    pub fn into_parts(self) -> (Arc<Checkpoint>, Box<dyn ModelPrograms>, prepared::Values) {
        (Arc::clone(self.weights.checkpoint()), self.model, self.constants)
    }

    /// Builds the program of a layout ahead of the first request that needs it.
    pub fn prepare_layout(&mut self, layout: Layout) -> Result<(), BackendError> {
        self.executable(layout).map(|_| ())
    }

    fn executable(&mut self, layout: Layout) -> Result<usize, BackendError> {
        let entry = match self.ready.iter().position(|(ready, _)| *ready == layout) {
            Some(position) => self.ready.remove(position),
            None => {
                let program = self.model.request(self.weights.checkpoint(), layout)?;
                if self.ready.len() == KEPT_LAYOUTS {
                    self.ready.remove(0);
                }
                let executable = self.threads.install(|| {
                    self.weights.add(&program, self.numerics)?;
                    Executable::new(program, &self.constants, self.numerics)
                })?;
                (layout, executable)
            }
        };
        self.ready.push(entry);
        Ok(self.ready.len() - 1)
    }
}

/// What the prepare program of `model` exports.
fn prepare(
    model: &dyn ModelPrograms,
    weights: &Weights,
    threads: &rayon::ThreadPool,
    cache: &Cache,
    taps: Option<&mut dyn TapSink>,
) -> Result<Constants, BackendError> {
    let start = Instant::now();
    let program = model.prepare(weights.checkpoint())?;
    // Who listens to values wants them computed.
    if taps.is_some() || !cache.is_on() {
        return run_prepare(program, weights, threads, taps);
    }
    let vectors = format!("{:?}", Arch::new());
    let key = threads.install(|| prepared::key(&program, weights.checkpoint(), &vectors))?;
    let (constants, warm) = cache.get_or(&key, || run_prepare(program, weights, threads, None))?;
    let seconds = start.elapsed().as_secs_f64();
    let how = if warm { "read from the cache" } else { "computed" };
    debug!("what no input changes was {how} in {seconds:.3} s");
    Ok(constants)
}

fn run_prepare(
    program: Program,
    weights: &Weights,
    threads: &rayon::ThreadPool,
    taps: Option<&mut dyn TapSink>,
) -> Result<Constants, BackendError> {
    let mut prepare = Executable::new(program, &Constants::default(), Numerics::F32)?;
    prepare.run_all(weights, threads, taps)?;
    Ok(prepare.into_exports())
}

impl Backend for CpuBackend {
    fn describe(&self) -> String {
        let threads = counted(self.threads.current_num_threads() as u64, "thread");
        format!("cpu ({threads}, {})", self.numerics)
    }

    /// Weights that the card holds otherwise than the checkpoint are made with the first layout that needs them and kept,
    /// in two bytes each.
    fn set_numerics(&mut self, numerics: Numerics) {
        self.weights.forget_changed();
        self.ready.clear();
        self.numerics = numerics;
    }

    fn is_reference(&self) -> bool {
        self.numerics == Numerics::F32
    }

    fn weight_bytes(&self, policy: DtypePolicy) -> Option<WeightBytes> {
        let (_, executable) = self.ready.last()?;
        card::weight_bytes(executable.program(), policy).ok()
    }

    fn run(
        &mut self,
        input: &ModelInput,
        options: &PredictOptions,
        mut taps: Option<&mut dyn TapSink>,
    ) -> Result<ModelOutput, BackendError> {
        let position = self.executable(input.layout())?;
        let (_, executable) = &mut self.ready[position];
        self.threads.install(|| executable.bind(input))?;
        let mut timings = Vec::with_capacity(executable.stages());
        let mut begun = None;
        for stage in 0..executable.stages() {
            let kind = executable.stage_kind(stage);
            // A stage may run in two parts.
            if begun.replace(kind) != Some(kind) {
                options.progress.begin(kind.name());
            }
            let _span = tracing::debug_span!("stage", stage = kind.name()).entered();
            let (start, cancel) = (Instant::now(), &options.cancel);
            executable.run_stage(stage, &self.weights, &self.threads, cancel, &mut taps)?;
            timings.push((kind, start.elapsed()));
        }
        Ok(ModelOutput { actions: executable.export(ACTIONS).to_vec(), timings })
    }
}
