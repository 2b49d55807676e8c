//! What an arena is asked to hold.

use crate::program::WeightId;

/// A column of tiles of a matrix that rows are multiplied by: 32 of its outputs, all of its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shard {
    pub weight: WeightId,
    /// Outputs from `32 * column_tile` on.
    pub column_tile: usize,
}

/// What one core reads in one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSpec {
    /// The caller's number of the core.
    pub consumer: u32,
    /// Where the stream lies.
    pub bank: u8,
    /// In the order of their use, each with the number of the instruction that uses it, never descending. A shard may
    /// stand in several streams, and in one several times.
    pub shards: Vec<(u32, Shard)>,
}

/// Streams that are used together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartSpec {
    pub name: String,
    /// Whether the last packet of each stream ends with its tiles, or is as long as all others.
    pub short_last: bool,
    pub streams: Vec<StreamSpec>,
}

/// Bytes that lie behind the parts of a bank as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    pub name: String,
    pub bank: u8,
    pub bytes: Vec<u8>,
}
