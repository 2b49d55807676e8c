//! The CPU backend: interprets a program in f32 on all cores, with weights read as bf16 from the mapped checkpoint.

mod ahead;
pub mod attention;
pub mod elementwise;
mod executable;
mod interpreter;
pub mod linear;
pub mod mat;
pub mod math;
mod memory;
pub mod norm;
mod panel;
mod parallel;
#[cfg(test)]
mod testing;
mod tile;

use std::sync::Arc;
use std::time::Instant;

use executable::{Constants, Executable};

use pulp::Arch;
use tracing::debug;

use super::{Backend, BackendError, ModelOutput};
use crate::checkpoint::Checkpoint;
use crate::contract::{PredictOptions, TapSink};
use crate::encode::ModelInput;
use crate::prepared::{self, Cache};
use crate::program::{ACTIONS, Layout, ModelPrograms, Program};

/// Programs of this many layouts are kept ready; an instruction of another length makes another layout.
const KEPT_LAYOUTS: usize = 4;

/// A model loaded for the CPU.
pub struct CpuBackend {
    checkpoint: Arc<Checkpoint>,
    model: Box<dyn ModelPrograms>,
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
        let constants = prepare(model.as_ref(), &checkpoint, &threads, cache, taps)?;
        Ok(Self { checkpoint, model, threads, constants, ready: Vec::new() })
    }

    /// Builds the program of a layout ahead of the first request that needs it.
    pub fn prepare_layout(&mut self, layout: Layout) -> Result<(), BackendError> {
        self.executable(layout).map(|_| ())
    }

    fn executable(&mut self, layout: Layout) -> Result<usize, BackendError> {
        let entry = match self.ready.iter().position(|(ready, _)| *ready == layout) {
            Some(position) => self.ready.remove(position),
            None => {
                let program = self.model.request(&self.checkpoint, layout)?;
                if self.ready.len() == KEPT_LAYOUTS {
                    self.ready.remove(0);
                }
                (layout, Executable::new(program, &self.constants)?)
            }
        };
        self.ready.push(entry);
        Ok(self.ready.len() - 1)
    }
}

/// What the prepare program of `model` exports.
fn prepare(
    model: &dyn ModelPrograms,
    checkpoint: &Checkpoint,
    threads: &rayon::ThreadPool,
    cache: &Cache,
    taps: Option<&mut dyn TapSink>,
) -> Result<Constants, BackendError> {
    let start = Instant::now();
    let program = model.prepare(checkpoint)?;
    // Who listens to values wants them computed.
    if taps.is_some() || !cache.is_on() {
        return run_prepare(program, checkpoint, threads, taps);
    }
    let vectors = format!("{:?}", Arch::new());
    let key = threads.install(|| prepared::key(&program, checkpoint, &vectors))?;
    let (constants, warm) =
        cache.get_or(&key, || run_prepare(program, checkpoint, threads, None))?;
    let seconds = start.elapsed().as_secs_f64();
    let how = if warm { "read from the cache" } else { "computed" };
    debug!("what no input changes was {how} in {seconds:.3} s");
    Ok(constants)
}

fn run_prepare(
    program: Program,
    checkpoint: &Checkpoint,
    threads: &rayon::ThreadPool,
    taps: Option<&mut dyn TapSink>,
) -> Result<Constants, BackendError> {
    let mut prepare = Executable::new(program, &Constants::default())?;
    prepare.run_all(checkpoint, threads, taps)?;
    Ok(prepare.into_exports())
}

impl Backend for CpuBackend {
    fn describe(&self) -> String {
        format!("cpu ({} threads, f32)", self.threads.current_num_threads())
    }

    fn is_reference(&self) -> bool {
        true
    }

    fn run(
        &mut self,
        input: &ModelInput,
        options: &PredictOptions,
        mut taps: Option<&mut dyn TapSink>,
    ) -> Result<ModelOutput, BackendError> {
        let position = self.executable(input.layout())?;
        let (_, executable) = &mut self.ready[position];
        executable.bind(input)?;
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
            executable.run_stage(stage, &self.checkpoint, &self.threads, cancel, &mut taps)?;
            timings.push((kind, start.elapsed()));
        }
        Ok(ModelOutput { actions: executable.export(ACTIONS).to_vec(), timings })
    }
}
