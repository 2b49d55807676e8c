//! Why there are no programs.

use std::fmt;

use super::checks::TileFault;
use crate::backend::blackhole::arena::ArenaError;
use crate::backend::blackhole::lowered::LayoutFault;
use crate::program::StageKind;

/// An instruction of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpPlace {
    /// Number of its stage; several stages may be of one kind.
    pub stage: usize,
    pub kind: StageKind,
    /// Its number in the stage, taps included.
    pub op: u32,
}

impl fmt::Display for OpPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "instruction {} of stage {} ({})", self.op, self.stage, self.kind.name())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("{place}: there is no program for {what}")]
    Unsupported { place: OpPlace, what: &'static str },
    #[error("{place}: one row of tiles needs {needed} bytes of L1, a core has {limit}")]
    TooLarge { place: OpPlace, needed: u64, limit: u32 },
    #[error(
        "{place}: it reads '{buffer}' from tiles that it writes; cores do not wait for each other within a program, so keep \
         what is read and what is written in buffers of their own"
    )]
    SharedTiles { place: OpPlace, buffer: String },
    #[error("{place}: {fault}")]
    Layout { place: OpPlace, fault: LayoutFault },
    #[error("{place}: {fault}")]
    Tiles { place: OpPlace, fault: TileFault },
    #[error(
        "'{name}' should have {expected} values and has {found}; a program is made for one layout, and for what its own prepare \
         program exports"
    )]
    Contents { name: String, expected: usize, found: usize },
    #[error("there is no stage {stage}, the program has {stages}")]
    Stage { stage: usize, stages: usize },
    #[error(transparent)]
    Arena(#[from] ArenaError),
}
