//! How many cores and banks share the work.

/// DRAM banks of a card.
pub const BANKS: usize = 8;

/// Columns and rows of a p150's usable cores.
pub const GRID: [usize; 2] = [11, 10];

/// How the operations of a stage run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// A program for each operation, replayed from a trace, on all cores.
    Traced,
    /// One program for the whole stage. Eight cores do nothing but read weights and six hand them on.
    Persistent,
}

impl Execution {
    /// Cores that multiply matrices.
    pub const fn cores(self) -> usize {
        match self {
            Self::Traced => GRID[0] * GRID[1],
            Self::Persistent => PERSISTENT_CORES,
        }
    }

    /// Cores that keep the sums that every block adds to, and work on them value by value.
    pub const fn owners(self) -> usize {
        match self {
            Self::Traced => self.cores(),
            Self::Persistent => PERSISTENT_OWNERS,
        }
    }

    /// Cores that work on heads of an attention.
    pub const fn heads(self) -> usize {
        match self {
            Self::Traced => self.cores(),
            Self::Persistent => PERSISTENT_CORES - PERSISTENT_OWNERS,
        }
    }
}

/// Cores of the persistent program that compute: the owners first, then those that work on heads.
const PERSISTENT_CORES: usize = 96;
/// One for each column of tiles of a DiT 1536 wide.
const PERSISTENT_OWNERS: usize = 48;
