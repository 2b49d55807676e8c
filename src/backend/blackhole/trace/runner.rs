//! Runs programs one after the other in the interpreter, on one image of DRAM.

use super::contents::Contents;
use super::{TraceError, TracePlan, TraceProgram};
use crate::backend::blackhole::interpreter::{ArenaBytes, Dram, Fault, Machine, Report, Schedule};
use crate::backend::blackhole::lowered::Lowered;
use crate::backend::cpu::card::CardNumerics;
use crate::program::View;

/// The memory that programs hand on to one another.
pub struct Runner<'a> {
    plan: &'a TracePlan<'a>,
    banks: &'a dyn ArenaBytes,
    numerics: CardNumerics,
    /// No program, but all buffers and tables.
    memory: Lowered,
    dram: Dram,
}

/// What went wrong in a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("a view of a picture is asked for, which lies in no tiles")]
    Table,
}

impl<'a> Runner<'a> {
    /// With nothing in DRAM; `banks` hold the plan's arena.
    pub fn new(plan: &'a TracePlan<'a>, banks: &'a dyn ArenaBytes, numerics: CardNumerics) -> Self {
        let (buffers, tables) = (plan.dram().buffers.clone(), plan.dram().tables.clone());
        let memory = Lowered { cores: Vec::new(), segments: Vec::new(), buffers, tables };
        let dram = Dram::new(&memory);
        Self { plan, banks, numerics, memory, dram }
    }

    /// Puts contents into DRAM.
    pub fn fill(&mut self, contents: &[Contents<'_>]) -> Result<(), RunError> {
        self.with_memory(|machine| {
            for contents in contents {
                match contents {
                    Contents::Buffer { number, values } => {
                        machine.write_buffer(*number as usize, values)?;
                    }
                    Contents::Table { number, bytes } => {
                        machine.write_table(*number as usize, bytes)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Runs one program to its end.
    pub fn run(
        &mut self,
        program: &TraceProgram,
        schedule: &mut Schedule,
    ) -> Result<Report, RunError> {
        let mut machine = Machine::on(&program.lowered, self.banks, self.numerics, &mut self.dram)?;
        let report = machine.run(schedule);
        self.dram = machine.into_dram();
        Ok(report?)
    }

    /// Runs the programs of a stage up to instruction `end` of it.
    pub fn run_to(
        &mut self,
        stage: usize,
        end: usize,
        schedule: &mut Schedule,
    ) -> Result<(), RunError> {
        for program in self.plan.programs(stage)? {
            let program = program?;
            if program.op as usize >= end {
                break;
            }
            self.run(&program, schedule)?;
        }
        Ok(())
    }

    /// What stands in a view, row by row.
    pub fn read(&mut self, view: View) -> Result<Vec<f32>, RunError> {
        let (number, _) = self.plan.buffer(view).ok_or(RunError::Table)?;
        let (first, columns) = (view.row, view.col..view.col + view.cols);
        let across = self.memory.buffers[number as usize].columns as usize;
        self.with_memory(|machine| {
            let rows = machine.read_buffer_rows(number as usize, first..first + view.rows)?;
            Ok(rows.chunks_exact(across).flat_map(|row| &row[columns.clone()]).copied().collect())
        })
    }

    /// Lets a machine without any core work on what stands in DRAM.
    fn with_memory<T>(
        &mut self,
        work: impl FnOnce(&mut Machine<'_>) -> Result<T, Fault>,
    ) -> Result<T, RunError> {
        let mut machine = Machine::on(&self.memory, self.banks, self.numerics, &mut self.dram)?;
        let result = work(&mut machine);
        self.dram = machine.into_dram();
        Ok(result?)
    }
}
