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

use super::{Backend, BackendError, ModelOutput};
use crate::checkpoint::Checkpoint;
use crate::contract::{PredictOptions, TapSink};
use crate::encode::ModelInput;
use crate::program::{ACTIONS, Layout, ModelPrograms};

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
    /// Runs the prepare program of `model`. `threads` 0 means all cores; `taps` gets the values named in it.
    ///
    /// # Errors
    /// A tensor that the model needs is missing or has another shape, or no threads can be started.
    pub fn load(
        checkpoint: Arc<Checkpoint>,
        model: Box<dyn ModelPrograms>,
        threads: usize,
        taps: Option<&mut dyn TapSink>,
    ) -> Result<Self, BackendError> {
        let threads = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("cpu-backend-{number}"))
            .build()
            .map_err(|error| BackendError::Threads { reason: error.to_string() })?;
        let mut prepare = Executable::new(model.prepare(&checkpoint)?, &Constants::default())?;
        prepare.run_all(&checkpoint, &threads, taps)?;
        let constants = prepare.into_exports();
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

impl Backend for CpuBackend {
    fn describe(&self) -> String {
        format!("cpu ({} threads, f32)", self.threads.current_num_threads())
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
