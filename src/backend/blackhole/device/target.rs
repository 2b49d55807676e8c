//! What a session is for: the program of a layout, lowered, with all that it needs.

use std::sync::{Arc, Mutex};

use super::DeviceError;
use crate::backend::blackhole::arena::ArenaPlan;
use crate::backend::blackhole::trace::{
    Contents, DramMap, TracePlan, TraceProgram, TraceSource, at_load, lower_each,
};
use crate::backend::cpu::card::CardNumerics;
use crate::checkpoint::Checkpoint;
use crate::locked::locked;
use crate::prepared::Values;
use crate::program::Program;

/// The programs of a stage, in their order.
pub type StagePrograms = Vec<TraceProgram>;

/// See the module.
pub struct Target {
    pub program: Program,
    pub checkpoint: Arc<Checkpoint>,
    pub numerics: CardNumerics,
    constants: Arc<Values>,
    /// What stands in DRAM besides the arena.
    pub dram: DramMap,
    pub arena: ArenaPlan,
    /// L1 that the largest program takes of a core.
    pub l1_bytes: u32,
    /// By stage. They are large, and nobody needs them once a session has them on the device.
    programs: Mutex<Option<Vec<StagePrograms>>>,
}

impl Target {
    /// Lowers a program.
    ///
    /// # Errors
    /// An instruction has no program, or one that the card has no room for.
    pub fn new(
        program: Program,
        checkpoint: Arc<Checkpoint>,
        constants: Arc<Values>,
        numerics: CardNumerics,
    ) -> Result<Self, DeviceError> {
        let (plan, programs) = lower(&program, &checkpoint, numerics)?;
        let stages = plan.report().stages.iter();
        let l1_bytes = stages.map(|stage| stage.l1_bytes).max().unwrap_or_default();
        let (arena, dram) = plan.into_memory();
        let programs = Mutex::new(Some(programs));
        Ok(Self { program, checkpoint, numerics, constants, dram, arena, l1_bytes, programs })
    }

    /// The programs of every stage. The first session takes those that there are; for a later one they are made again.
    pub fn take_programs(&self) -> Result<Vec<StagePrograms>, DeviceError> {
        match locked(&self.programs).take() {
            Some(programs) => Ok(programs),
            None => Ok(lower(&self.program, &self.checkpoint, self.numerics)?.1),
        }
    }

    /// What no request changes.
    pub fn at_load(&self) -> Result<Vec<Contents<'_>>, DeviceError> {
        Ok(at_load(&self.program, &self.dram, &self.checkpoint, &self.constants)?)
    }
}

fn lower<'a>(
    program: &'a Program,
    checkpoint: &'a Checkpoint,
    numerics: CardNumerics,
) -> Result<(TracePlan<'a>, Vec<StagePrograms>), DeviceError> {
    let mut programs: Vec<StagePrograms> = program.stages.iter().map(|_| Vec::new()).collect();
    let source = TraceSource { program, checkpoint, policy: numerics.policy };
    let plan = lower_each(&source, |stage, mut made| {
        // Every program names all buffers and tables, which are the plan's.
        made.lowered.buffers = Vec::new();
        made.lowered.tables = Vec::new();
        programs[stage].push(made);
    })?;
    Ok((plan, programs))
}
