//! From the instruction list to a program for each instruction, which traces of the card replay one after the other.
//!
//! Between two programs everything lies in DRAM: every buffer of the instruction list has its place there. Within a program
//! the tiles of the result are dealt out over all cores of the grid, and no core has to know of another: it reads what its
//! tiles are made from, computes, and writes them. A tile is written by one core alone; where a result begins or ends within
//! a tile, that core reads the tile first and writes it back with what stays of it. Mover and compute engine of a core take
//! turns; only weights are fetched ahead, by the feeder.
//!
//! The sums are those of the CPU's card numerics, so that after every program the buffers hold the same bits.

mod checks;
mod contents;
mod core;
mod error;
mod geometry;
mod memory;
mod ops;
mod program;
mod report;
mod runner;
mod weights;
mod written;

pub use checks::TileFault;
pub use contents::{Contents, at_load, of_request};
pub use error::{OpPlace, TraceError};
pub use memory::{DramMap, Origin};
pub use report::{StageReport, TraceReport};
pub use runner::{RunError, Runner};

use super::arena::ArenaPlan;
use super::lowered::{DramBuffer, Lowered};
use super::numerics::DtypePolicy;
use crate::checkpoint::Checkpoint;
use crate::program::{BufferSource, Op, Program, View};
use geometry::{Area, TileRange};
use program::{ProgramWriter, Tables};
use weights::Weights;
use written::Written;

/// What programs are made from.
#[derive(Clone, Copy)]
pub struct TraceSource<'a> {
    /// Of a request.
    pub program: &'a Program,
    pub checkpoint: &'a Checkpoint,
    pub policy: DtypePolicy,
}

/// The program of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceProgram {
    /// Number of the instruction in its stage, taps included.
    pub op: u32,
    pub name: String,
    pub lowered: Lowered,
}

/// All that the programs of a request have in common. Their streams are written when they are asked for: together they are
/// larger than what they work on.
pub struct TracePlan<'a> {
    tables: Tables<'a>,
    report: TraceReport,
}

/// Lowers every instruction of every stage, to know that each has a program.
pub fn lower<'a>(source: &TraceSource<'a>) -> Result<TracePlan<'a>, TraceError> {
    lower_each(source, |_, _| {})
}

/// As [`lower`]; `keep` is handed every program with the number of its stage.
pub fn lower_each<'a>(
    source: &TraceSource<'a>,
    mut keep: impl FnMut(usize, TraceProgram),
) -> Result<TracePlan<'a>, TraceError> {
    let TraceSource { program, checkpoint, policy } = *source;
    let dram = DramMap::of(program);
    let weights = Weights::plan(program, checkpoint, policy)?;
    let written = writers(program, &dram);
    let tables = Tables { program, dram, weights, written };
    let mut plan = TracePlan { tables, report: TraceReport::default() };
    for (number, stage) in program.stages.iter().enumerate() {
        let mut report = StageReport::new(stage);
        for lowered in plan.programs(number)? {
            let lowered = lowered?;
            plan.check(number, &lowered)?;
            report.add(&lowered.lowered);
            keep(number, lowered);
        }
        plan.report.stages.push(report);
    }
    Ok(plan)
}

impl TracePlan<'_> {
    /// The arena that the programs find their weights in.
    pub fn arena(&self) -> &ArenaPlan {
        &self.tables.weights.arena
    }

    /// What has to stand in DRAM besides: the same buffers and tables for all programs.
    pub fn dram(&self) -> &DramMap {
        &self.tables.dram
    }

    /// DRAM buffer of a view's buffer, unless its values lie in a table.
    pub fn buffer(&self, view: View) -> Option<(u32, &DramBuffer)> {
        let number = self.dram().buffer(Origin::Buffer(view.buffer))?;
        Some((number, &self.dram().buffers[number as usize]))
    }

    /// That a program of a stage writes each tile of its result once, and reads none that another core writes.
    ///
    /// # Errors
    /// It does not, or the stage has no such instruction.
    pub fn check(&self, stage: usize, program: &TraceProgram) -> Result<(), TraceError> {
        let place = self.place(stage, program.op)?;
        let op = self.tables.program.stages[stage].ops.get(program.op as usize);
        let out = op.and_then(|op| ops::result(self.tables.program, op));
        let buffer = out.and_then(|out| self.dram().buffer(Origin::Buffer(out.buffer)));
        let area = out.zip(buffer).map(|(out, buffer)| Area::of(buffer, out));
        checks::check(&program.lowered, area).map_err(|fault| TraceError::Tiles { place, fault })
    }

    /// The arena, and what else has to stand in DRAM.
    pub fn into_memory(self) -> (ArenaPlan, DramMap) {
        (self.tables.weights.arena, self.tables.dram)
    }

    /// What the programs take.
    pub fn report(&self) -> &TraceReport {
        &self.report
    }

    /// The programs of a stage, in their order; taps have none.
    pub fn programs(
        &self,
        stage: usize,
    ) -> Result<impl Iterator<Item = Result<TraceProgram, TraceError>>, TraceError> {
        let place = self.place(stage, 0)?;
        let stages = &self.tables.program.stages;
        let before: usize = stages[..stage].iter().map(|stage| stage.ops.len()).sum();
        let ops = stages[stage].ops.iter().enumerate();
        let ops = ops.filter(|(_, op)| !matches!(op, Op::Tap { .. }));
        Ok(ops.map(move |(op, instruction)| {
            self.program(OpPlace { op: op as u32, ..place }, before + op, instruction)
        }))
    }

    fn place(&self, stage: usize, op: u32) -> Result<OpPlace, TraceError> {
        let stages = &self.tables.program.stages;
        let known = stages.get(stage);
        let kind = known.ok_or(TraceError::Stage { stage, stages: stages.len() })?.kind;
        Ok(OpPlace { stage, kind, op })
    }

    fn program(&self, place: OpPlace, number: usize, op: &Op) -> Result<TraceProgram, TraceError> {
        let mut writer = ProgramWriter::new(&self.tables, place, number);
        ops::lower(&mut writer, op)?;
        let (op, name) = (place.op, ops::name(self.tables.program, op));
        Ok(TraceProgram { op, name, lowered: writer.finish()? })
    }
}

/// Which instruction writes which tile first.
fn writers(program: &Program, dram: &DramMap) -> Written {
    let by_host = |number: usize| match dram.buffer_origins[number] {
        Origin::Buffer(buffer) => program.buffers[buffer.0].source != BufferSource::Scratch,
        Origin::Weight(_) | Origin::Index(_) => true,
    };
    let mut written = Written::new(&dram.buffers, by_host);
    let ops = program.stages.iter().flat_map(|stage| &stage.ops).enumerate();
    for (number, out) in ops.filter_map(|(number, op)| Some((number, op.written()?))) {
        let Some(buffer) = dram.buffer(Origin::Buffer(out.buffer)) else { continue };
        let across = dram.buffers[buffer as usize].column_tiles() as usize;
        written.note(number, buffer, across, TileRange::covering(Area::of(buffer, out)));
    }
    written
}
