//! How many cores share the work of a stage.

use crate::backend::blackhole::core_map::{HEADS, OWNERS};
use crate::backend::blackhole::grid;

/// DRAM banks of a card.
pub const BANKS: usize = grid::BANKS as usize;

/// How the operations of a stage run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// A program for each operation, replayed from a trace, on all cores.
    Traced,
    /// One program for the whole stage: some cores do nothing but read weights, others hand them on.
    Persistent,
}

impl Execution {
    /// Cores that multiply matrices; of a persistent program the owners first, then those that work on heads.
    pub const fn cores(self) -> usize {
        match self {
            Self::Traced => grid::COLUMNS as usize * grid::ROWS as usize,
            Self::Persistent => OWNERS + HEADS,
        }
    }

    /// Cores that keep the sums that every block adds to, and work on them value by value.
    pub const fn owners(self) -> usize {
        match self {
            Self::Traced => self.cores(),
            Self::Persistent => OWNERS,
        }
    }

    /// Cores that work on heads of an attention.
    pub const fn heads(self) -> usize {
        match self {
            Self::Traced => self.cores(),
            Self::Persistent => HEADS,
        }
    }

    /// Of [`Self::cores`], the first that works on heads.
    pub const fn first_head(self) -> usize {
        self.cores() - self.heads()
    }
}
