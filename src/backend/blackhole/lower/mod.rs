//! From the instruction list to the streams of the cores.
//!
//! [`denoise`] lowers the denoise stage to one persistent program for 108 cores (see [`super::core_map`]): the columns of
//! tiles of every weight are dealt out to the compute cores, which the readers send their weights to in packets, step
//! after step. The residual stays on its owners, as f32. What a product reads is gathered by the hubs and multicast;
//! queries, keys and values go to the cores of their heads. Everything happens in the order of the instruction list, and
//! the sums are taken in the order of the CPU's card numerics: the numbers are the same, bit for bit.

mod attention;
mod chip;
mod frames;
mod memory;
mod multicast;
mod products;
mod ragged;
mod resident;
mod steps;
mod streaming;
mod summary;
mod sums;
mod uses;
mod values;
mod writer;

pub use summary::{RoleSummary, Summary};
pub use values::{Block, Place};

use chip::{Chip, hub};
use half::bf16;
use products::{Bias, Product};
use resident::Sources;
use steps::Steps;
use writer::Writer;

use super::arena::{ArenaError, ArenaPlan, HoistRules};
use super::core_map::{CoreMap, Layout};
use super::lowered::{Engine, Instruction, LayoutFault, Lowered};
use super::numerics::DtypePolicy;
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::prepared::Values;
use crate::program::{ACTIONS, BufferId, Op, Program, WeightId};

/// What a stage is lowered from.
pub struct Source<'a> {
    /// Of a request.
    pub program: &'a Program,
    /// What is computed once at load.
    pub prepare: &'a Program,
    pub checkpoint: &'a Checkpoint,
    /// Exports of the prepare program.
    pub constants: &'a Values,
    pub policy: DtypePolicy,
    pub layout: Layout,
}

/// A lowered denoise stage.
#[derive(Debug)]
pub struct Denoise {
    pub lowered: Lowered,
    /// Where the readers find the weights.
    pub arena: ArenaPlan,
    /// What has to stand in DRAM before: buffers of the program, numbers of [`Lowered::buffers`], and the row at which the
    /// buffer's row 0 stands there.
    pub inputs: Vec<StageInput>,
    /// Number of the DRAM buffer that the actions are written to, and the row at which they begin; none for a prefix.
    pub result: Option<(u32, u32)>,
    /// Where the buffers of the program stand in L1 at the end.
    pub places: Vec<(BufferId, Place)>,
}

/// An input of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageInput {
    pub buffer: BufferId,
    pub dram: u32,
    pub first_row: u32,
}

/// Why a stage cannot be lowered.
#[derive(Debug, thiserror::Error)]
pub enum LowerError {
    #[error("the program has no denoise stage that consists of Euler steps")]
    NoSteps,
    #[error(
        "instruction {op} of the denoise stage is not the one of the first Euler step; steps have to be alike"
    )]
    UnequalSteps { op: u32 },
    #[error("instruction {op}: its operands do not agree on the numbers of their rows")]
    Rows { op: u32 },
    #[error(
        "instruction {op}: the persistent program cannot do {what}; run the stage as a program for each instruction"
    )]
    Unsupported { op: u32, what: &'static str },
    #[error("instruction {op} reads a matrix that no instruction has made")]
    NotWritten { op: u32 },
    #[error("buffer '{buffer}' is used as a table, but is not imported from the prepare program")]
    NotImported { buffer: String },
    #[error("the prepare program has not exported '{name}' in the size that the stage imports")]
    Constant { name: String },
    #[error("a prefix of {asked} instructions is asked for; it can have 1 to {ops}")]
    Prefix { asked: usize, ops: usize },
    #[error(transparent)]
    Layout(#[from] LayoutFault),
    #[error(transparent)]
    Arena(Box<ArenaError>),
    #[error(transparent)]
    Checkpoint(Box<CheckpointError>),
}

impl From<ArenaError> for LowerError {
    fn from(error: ArenaError) -> Self {
        LowerError::Arena(Box::new(error))
    }
}

impl From<CheckpointError> for LowerError {
    fn from(error: CheckpointError) -> Self {
        LowerError::Checkpoint(Box::new(error))
    }
}

/// What prefixes of the denoise stage count: the numbers of its instructions, without taps and without those that go with
/// the one before them.
pub fn denoise_instructions(program: &Program) -> Result<Vec<u32>, LowerError> {
    Ok(steps::instructions(program)?.into_iter().map(|(number, _)| number).collect())
}

/// Lowers the denoise stage, or a prefix of so many of its [instructions](denoise_instructions).
pub fn denoise(source: &Source<'_>, prefix: Option<usize>) -> Result<Denoise, LowerError> {
    let steps = Steps::of(source.program)?;
    let (before, length) = (steps.before.len(), steps.step.len());
    let total = before + length * steps.count as usize;
    let asked = prefix.unwrap_or(total);
    if asked == 0 || asked > total {
        return Err(LowerError::Prefix { asked, ops: total });
    }
    let (whole, rest) = match asked.checked_sub(before) {
        Some(in_steps) => (in_steps / length, in_steps % length),
        None => (0, 0),
    };
    let sources = Sources {
        program: source.program,
        checkpoint: source.checkpoint,
        constants: source.constants,
    };
    let chip = Chip::new(CoreMap::new(source.layout), memory::OUT_SLOTS);
    let ops: Vec<(u32, Op)> = steps.before.iter().chain(&steps.step).cloned().collect();
    let mut writer = Writer::new(sources, source.policy, ops, steps.count, chip)?;

    writer.start();
    for place in 0..before.min(asked) {
        writer.op(place)?;
    }
    if asked < before {
        writer.drain()?;
    }
    writer.end_segment(super::arena::PER_REQUEST, 0, 1);
    if whole > 0 {
        for place in before..before + length {
            writer.op(place)?;
        }
        writer.end_segment(super::arena::PER_STEP, 0, whole as u32);
    }
    if rest > 0 {
        for place in before..before + rest {
            writer.op(place)?;
        }
        writer.drain()?;
        writer.end_segment("rest", whole as u32, 1);
    }
    let result = if asked == total { Some(writer.result()?) } else { None };
    let hoisted = HoistRules::of(source.prepare, source.program);
    let arena = writer.stream_weights(&hoisted)?;
    let places = values::places(&writer);
    let inputs = writer.inputs();
    let mut chip = writer.chip;
    chip.check()?;
    let (buffers, tables) = (writer.buffers, Vec::new());
    let lowered = Lowered { cores: chip.cores, segments: chip.segments, buffers, tables };
    Ok(Denoise { lowered, arena, inputs, result, places })
}

impl Writer<'_> {
    /// Every core clears its memory and reads what stays there; the first hub waits for all.
    fn start(&mut self) {
        let first_hub = self.chip.hub(0);
        let hubs = self.chip.hub(0)..self.chip.hub(self.chip.hubs());
        for core in (0..self.chip.compute_cores()).chain(hubs.clone()) {
            let regions = self.chip.cores[core].map.regions.clone();
            for region in regions.iter().filter(|region| region.bytes > 0) {
                // Weights come at once.
                if region.name != "packets" {
                    let zero = Instruction::Zero { address: region.address, bytes: region.bytes };
                    self.chip.mover(core, zero);
                }
            }
            if !hubs.contains(&core) {
                let load = Instruction::ReadArena {
                    bank: 0,
                    offset: 0,
                    bytes: 0,
                    address: self.memory.resident[core],
                };
                self.chip.mover(core, load);
                self.loaded(core);
            }
            if core != first_hub {
                self.chip.signal(core, Engine::Mover, first_hub, hub::STARTED);
            }
        }
        let others = self.chip.compute_cores() + self.chip.hubs() - 1;
        self.chip.wait(first_hub, Engine::Mover, hub::STARTED, others as u32);
        for number in 1..self.chip.hubs() {
            let hub = self.chip.hub(number);
            self.chip.signal(first_hub, Engine::Mover, hub, hub::GO);
            self.chip.wait(hub, Engine::Mover, hub::GO, 1);
        }
    }

    fn end_segment(&mut self, name: &str, first_pass: u32, passes: u32) {
        let shards = vec![Vec::new(); self.shards.len()];
        let shards = std::mem::replace(&mut self.shards, shards);
        for (core, shards) in shards.iter().enumerate() {
            if !shards.is_empty() {
                self.chip.compute(core, Instruction::EndStream {});
            }
        }
        self.parts.push((name.to_owned(), shards));
        self.empty_out();
        self.chip.end_segment(name, first_pass, passes);
    }

    /// Lowers the instruction at this place of the list.
    fn op(&mut self, place: usize) -> Result<(), LowerError> {
        let (number, op) = self.ops[place].clone();
        self.chip.op = number;
        match op {
            Op::Linear { x, weight, bias, activation, out } => {
                let bias = match bias {
                    Some(bias) => Bias::Vector(self.vector_of(bias)?),
                    None => Bias::None,
                };
                self.product(place, Product { x, weight, bias, activation, out })
            }
            Op::LinearBuffer { x, weight, bias, activation, out } => {
                let bias = Bias::Table(self.table(bias)?);
                self.product(place, Product { x, weight, bias, activation, out })
            }
            Op::LayerNorm { x, affine, modulation, eps, out } => {
                self.layer_norm(place, x, affine, modulation, eps, out)
            }
            Op::Attention { q, k, v, shape, out } => self.attention(place, [q, k, v], shape, out),
            Op::Copy { x, out } => self.copy(x, out),
            Op::CopyWeight { weight, out } => self.copy_weight(weight, out),
            Op::Add { x, out } => self.accumulate(x, 1.0, out),
            Op::AddScaled { x, factor, out } => self.accumulate(x, factor, out),
            Op::AddWeight { weight, out } => self.accumulate_weight(weight, out),
            _ => Err(self.unsupported("such an instruction")),
        }
    }

    fn vector_of(&self, weight: WeightId) -> Result<Vec<bf16>, LowerError> {
        Ok(self.sources.weight(weight)?.to_vec())
    }

    /// The owners write the actions to DRAM: the number of the buffer, and the row at which they begin.
    fn result(&mut self) -> Result<(u32, u32), LowerError> {
        let program = self.sources.program;
        let export = program.exports.iter().find(|(name, _)| name == ACTIONS);
        let Some((_, buffer)) = export else { return Err(LowerError::NoSteps) };
        let result = self.store(program.view(*buffer))?;
        self.end_segment("result", 0, 1);
        Ok((result, self.frames.of_buffer(*buffer)))
    }

    fn inputs(&self) -> Vec<StageInput> {
        let input = |(buffer, dram): (&BufferId, &u32)| StageInput {
            buffer: *buffer,
            dram: *dram,
            first_row: self.frames.of_buffer(*buffer),
        };
        let mut inputs: Vec<StageInput> = self.dram.iter().map(input).collect();
        inputs.sort_by_key(|input| input.dram);
        inputs
    }
}
