//! The lowered form of a program: streams of instructions for the cores of the card, and what they work on.

mod field;
mod instruction;
mod l1;
mod scratch;

pub use instruction::{INSTRUCTION_BYTES, Instruction, WORDS};
pub use l1::{L1Map, Region, STREAMS};
pub use scratch::{COMPUTE_SCRATCH, NORM_SCRATCH, SCRATCH, matmul_scratch};
use serde::Serialize;

use super::grid::Core;
use super::numerics::tile;

/// Most bytes of a packet of the arena; a slot of a ring has room for as many.
pub const PACKET_BYTES: u32 = 16 * 1024;

/// How the values of a block in L1, or of a buffer in DRAM, are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BlockFormat {
    Bf16,
    F32,
}

impl BlockFormat {
    /// Bytes of a value.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Bf16 => 2,
            Self::F32 => 4,
        }
    }

    /// Bytes of a tile.
    pub const fn tile_bytes(self) -> u32 {
        self.bytes() * tile::VALUES as u32
    }
}

/// What a layer norm does to the values that it has normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NormScaling {
    None,
    /// `gain * n + shift`
    Affine,
    /// `(1 + gain) * n + shift`
    Modulated,
}

/// Which rows go where when a list names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowMotion {
    /// `out[i] = x[list[i]]`
    Gather,
    /// `out[list[i]] = x[i]`
    Scatter,
    /// `out[list[i]] += x[i]`
    ScatterAdd,
}

/// The engines of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    Mover,
    Feeder,
    Compute,
}

impl Engine {
    pub const ALL: [Self; 3] = [Self::Mover, Self::Feeder, Self::Compute];

    /// As in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mover => "mover",
            Self::Feeder => "feeder",
            Self::Compute => "compute",
        }
    }
}

/// An instruction with the number of the program's instruction that it is part of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub op: u32,
    pub instruction: Instruction,
}

/// What one core does in one pass of a segment, by [`Engine`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Streams(pub [Vec<Step>; 3]);

impl Streams {
    pub fn of(&self, engine: Engine) -> &[Step] {
        &self.0[engine as usize]
    }

    pub fn push(&mut self, engine: Engine, op: u32, instruction: Instruction) {
        self.0[engine as usize].push(Step { op, instruction });
    }

    pub fn bytes(&self) -> u32 {
        self.0.iter().map(|stream| stream.len() as u32 * INSTRUCTION_BYTES).sum()
    }
}

/// A part of the program that every core runs `passes` times, one after the other; a core that is done with it goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    pub name: String,
    /// Number of the first pass, which vectors in L1 are addressed by.
    pub first_pass: u32,
    pub passes: u32,
    /// In the order of [`Lowered::cores`].
    pub streams: Vec<Streams>,
}

/// A counter of a core, and its value before the program and after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Semaphore {
    pub name: String,
    pub initial: u32,
}

/// A core with its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreProgram {
    pub core: Core,
    pub map: L1Map,
    pub semaphores: Vec<Semaphore>,
    pub ring: Option<PacketRing>,
    /// The bank that it streams packets of, if it is a reader.
    pub bank: Option<u8>,
}

/// Where a consumer takes packets of weights from, in the order in which they came.
///
/// Tiles follow one another in a packet, and one that would not fit whole into [`PACKET_BYTES`] begins the next packet. A
/// packet is given back when the first tile of the next one is asked for, or by an `EndStream`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PacketRing {
    pub address: u32,
    pub slots: u32,
    /// Semaphore that counts packets that have come.
    pub packets: u32,
    /// Semaphore that counts slots that have become free.
    pub freed: u32,
}

/// A matrix in DRAM as tiles, row by row of tiles; tile `t` lies in bank `t % 8`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DramBuffer {
    pub name: String,
    pub rows: u32,
    pub columns: u32,
    pub format: BlockFormat,
}

impl DramBuffer {
    /// Columns of tiles.
    pub fn column_tiles(&self) -> u32 {
        self.columns.div_ceil(tile::SIDE as u32)
    }

    pub fn tiles(&self) -> u32 {
        self.rows.div_ceil(tile::SIDE as u32) * self.column_tiles()
    }
}

/// Rows in DRAM, one after the other as the host has them: what is looked up by row, or not cut into tiles. Row `r` lies in
/// bank `r % 8`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DramTable {
    pub name: String,
    pub rows: u32,
    /// Of each row; a multiple of 64.
    pub row_bytes: u32,
}

/// A lowered stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    pub cores: Vec<CoreProgram>,
    pub segments: Vec<Segment>,
    pub buffers: Vec<DramBuffer>,
    pub tables: Vec<DramTable>,
}

/// Words that are no instruction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("there is no instruction with the code {code}")]
    Code { code: u32 },
    #[error("{name}: {word:#x} is no {field}")]
    Operand { name: &'static str, field: &'static str, word: u32 },
    #[error("{name}: a word behind its operands is {word:#x} and not zero")]
    Rest { name: &'static str, word: u32 },
}

/// Memory of a core that does not work out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutFault {
    #[error(
        "core {core} would need {end} bytes of L1 and has {limit}; its largest region is '{largest}' with {bytes}"
    )]
    BeyondL1 { core: Core, end: u64, limit: u32, largest: String, bytes: u32 },
    #[error("core {core}: region '{name}' begins at {address}, which is no multiple of 16")]
    Unaligned { core: Core, name: String, address: u32 },
    #[error("core {core}: regions '{}' and '{}' overlap at {address}", names[0], names[1])]
    Overlap { core: Core, names: [String; 2], address: u32 },
}
