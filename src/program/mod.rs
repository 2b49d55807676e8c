//! The network as an instruction list.
//!
//! Each model version is written once, as a builder of a [`Program`]: buffers, weights and four stages of
//! instructions over them. The CPU backend interprets the list; other backends compile the same list. A program
//! is made for one [`Layout`], so every shape in it is a number.
//!
//! Work that no input changes stands in a program of its own, the *prepare* program: it runs once at load and what
//! it [exports](Program::exports) is what the request programs [import](Program::imports) by name.

mod adapter;
mod builder;
pub mod dataflow;
mod dit;
pub mod mrope;
pub mod n15;
pub mod n16;
pub mod n17;
mod op;
mod position_table;
mod qwen3;
mod qwen3_vision;
mod siglip;
mod sinusoid;

pub use builder::ProgramBuilder;
use half::bf16;
pub use op::{Activation, AttentionShape, Modulation, Op, PatchGrid, PatchOrder};

use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::contract::Version;

/// The programs of one checkpoint.
pub trait ModelPrograms: Send {
    /// Runs once at load; its exports are what the request programs import.
    fn prepare(&self, checkpoint: &Checkpoint) -> Result<Program, CheckpointError>;

    /// One request of the given layout; exports [`ACTIONS`].
    fn request(&self, checkpoint: &Checkpoint, layout: Layout) -> Result<Program, CheckpointError>;
}

/// Everything about a request that changes the shapes of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Length of the token sequence, image tokens included.
    pub tokens: usize,
    /// Tokens before the first image token.
    pub leading_tokens: usize,
    /// Pictures: cameras times frames per camera.
    pub images: usize,
    /// Rows and columns of patches of every picture.
    pub grid: [usize; 2],
}

/// The parts of a request, in order; each backend times and, on a card, traces them separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StageKind {
    Vision,
    Llm,
    Adapter,
    Denoise,
}

impl StageKind {
    pub const ALL: [StageKind; 4] =
        [StageKind::Vision, StageKind::Llm, StageKind::Adapter, StageKind::Denoise];

    pub fn name(self) -> &'static str {
        match self {
            StageKind::Vision => "vision",
            StageKind::Llm => "llm",
            StageKind::Adapter => "adapter",
            StageKind::Denoise => "denoise",
        }
    }
}

/// A matrix of f32 that instructions read and write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId(pub usize);

/// A list of row numbers or token ids, part of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IndexId(pub usize);

/// A matrix or vector of the checkpoint, bf16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WeightId(pub usize);

/// Name and shape of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferSpec {
    pub name: String,
    pub rows: usize,
    pub cols: usize,
    pub source: BufferSource,
}

/// Where the first contents of a buffer come from.
#[derive(Clone, Debug, PartialEq)]
pub enum BufferSource {
    /// Written by an instruction before any reads it.
    Scratch,
    /// Filled from the request before the first stage.
    Input(Input),
    /// Known when the program is built.
    Constant(Vec<f32>),
    /// Exported under this name by the prepare program.
    Import(String),
}

/// The f32 inputs of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// Normalised pixels, one picture a row, channel first (`[images, 3 * side * side]`), or one patch a row.
    Pixels,
    /// Encoded state, `[1, max_state_dim]`.
    State,
    /// Initial noise, `[action rows, action width]`.
    Noise,
}

/// The index inputs of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IndexInput {
    /// Token ids of the whole prompt.
    TokenIds,
    /// Positions of the image tokens in the sequence, ascending.
    ImageRows,
    /// Positions of all other tokens, ascending.
    TextRows,
}

impl IndexInput {
    /// As in messages.
    pub const fn name(self) -> &'static str {
        match self {
            IndexInput::TokenIds => "token ids",
            IndexInput::ImageRows => "image rows",
            IndexInput::TextRows => "text rows",
        }
    }
}

/// Length and meaning of an index list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSpec {
    pub input: IndexInput,
    /// First entry of the input that is in the list.
    pub first: usize,
    pub len: usize,
}

/// How a weight matrix is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Orientation {
    /// `[out, in]`: the product is `x W^T` (a Linear).
    OutIn,
    /// `[in, out]`: the product is `x W` (a matrix per embodiment slot).
    InOut,
}

/// A contiguous block of a checkpoint tensor, seen as a matrix; a vector has one row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WeightSpec {
    /// Full name in the checkpoint.
    pub tensor: String,
    /// First element of the block in the tensor.
    pub offset: usize,
    pub rows: usize,
    pub cols: usize,
    pub orientation: Orientation,
}

impl WeightSpec {
    pub fn inputs(&self) -> usize {
        match self.orientation {
            Orientation::OutIn => self.cols,
            Orientation::InOut => self.rows,
        }
    }

    pub fn outputs(&self) -> usize {
        match self.orientation {
            Orientation::OutIn => self.rows,
            Orientation::InOut => self.cols,
        }
    }

    /// Its values as they lie in the checkpoint that the program was built for.
    pub fn values<'a>(&self, checkpoint: &'a Checkpoint) -> Result<&'a [bf16], CheckpointError> {
        let tensor = checkpoint.tensor(&self.tensor)?;
        Ok(&tensor.values[self.offset..][..self.rows * self.cols])
    }
}

/// A rectangle of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct View {
    pub buffer: BufferId,
    pub row: usize,
    pub rows: usize,
    pub col: usize,
    pub cols: usize,
}

impl View {
    /// Rows `first .. first + count` of this view.
    pub fn slice_rows(self, first: usize, count: usize) -> View {
        assert!(first + count <= self.rows, "rows {first}+{count} of {self:?}");
        View { row: self.row + first, rows: count, ..self }
    }

    /// Columns `first .. first + count` of this view.
    pub fn slice_cols(self, first: usize, count: usize) -> View {
        assert!(first + count <= self.cols, "columns {first}+{count} of {self:?}");
        View { col: self.col + first, cols: count, ..self }
    }
}

/// The instructions of one stage.
#[derive(Clone, Debug)]
pub struct Stage {
    pub kind: StageKind,
    /// Set when nothing of the request but so many token ids at its start changes what the stage does: then it need not
    /// run again while they stay the same. What it writes is written by no other stage.
    pub leading_tokens: Option<usize>,
    pub ops: Vec<Op>,
}

/// An instruction list with everything it refers to.
#[derive(Clone, Debug)]
pub struct Program {
    pub version: Version,
    pub buffers: Vec<BufferSpec>,
    pub indices: Vec<IndexSpec>,
    pub weights: Vec<WeightSpec>,
    pub stages: Vec<Stage>,
    /// Buffers whose last contents are the program's result, by name.
    pub exports: Vec<(String, BufferId)>,
}

impl Program {
    /// Names that this program needs from the prepare program.
    pub fn imports(&self) -> impl Iterator<Item = &str> {
        self.buffers.iter().filter_map(|buffer| match &buffer.source {
            BufferSource::Import(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The whole of a buffer as a view.
    pub fn view(&self, buffer: BufferId) -> View {
        let spec = &self.buffers[buffer.0];
        View { buffer, row: 0, rows: spec.rows, col: 0, cols: spec.cols }
    }
}

/// Name under which every request program exports its normalised chunk.
pub const ACTIONS: &str = "actions";
