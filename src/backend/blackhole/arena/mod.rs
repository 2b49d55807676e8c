//! The weights as they lie in the card's memory: in eight banks, in packets, in the order in which cores want them.
//!
//! The weights of a product are cut into *shards*, each a column of tiles: all tiles along the inputs, for 32
//! outputs. A core of the card, a *consumer*, gets whole shards; what it reads in one pass is its *stream*, tile
//! after tile in packets of [`PACKET_BYTES`]. A tile never lies in two packets. Streams that are used together make
//! up a *part*:
//!
//! | part | read |
//! |---|---|
//! | [`PER_STEP`] | once in every Euler step |
//! | [`PER_REQUEST`] | once in a request: keys and values of cross-attention, the state encoder |
//! | others, named by the caller | once in a request |
//!
//! The reader core of a bank reads a part from its first byte to its last. So packets lie in the order in which they
//! are needed, whichever core they are for: by the instruction that uses the first tile, then by the packet's number
//! in its stream, then by consumer. Behind the parts of a bank lie *blobs*: biases, tables computed at load.
//!
//! [`ArenaPlan::new`] says where everything lies, [`ArenaPlan::image`] packs it in memory, [`Arena::write`] into a
//! file that [`Arena::open`] maps and checks; [`Arena::upload`] hands it over piece by piece.

mod cut;
mod error;
mod file;
mod hoist;
mod key;
mod pack;
mod plan;
mod report;
mod spec;
mod stored;
mod write;

pub use cut::{Packet, TileRun};
pub use error::ArenaError;
pub use file::FileProblem;
pub use hoist::HoistRules;
pub(super) use pack::values as weight_values;
pub use plan::{ArenaPlan, PlannedBlob, PlannedPart, PlannedShard, PlannedStream};
pub use report::{ArenaReport, Banks, FormatReport, PartReport};
pub use spec::{Blob, PartSpec, Shard, StreamSpec};
pub use stored::Arena;

/// Bytes of a packet: the largest transfer of the networks between cores, and what the DRAM is read with at its best.
pub const PACKET_BYTES: u64 = 16_384;
/// Bytes of a bank.
pub const BANK_BYTES: u64 = 4 << 30;
/// Whatever lies in a bank begins at a multiple of this, and is as long.
pub const ALIGNMENT: u64 = 64;
/// The most that is handed over at once when an arena is brought to the card.
pub const STAGING_BYTES: usize = 64 << 20;

/// Name of the part that is read in every Euler step.
pub const PER_STEP: &str = "per_step";
/// Name of the part that is read once in a request, for the action head.
pub const PER_REQUEST: &str = "per_request";

/// Gets the bytes that are done and those that there will be.
pub type Progress<'a> = &'a dyn Fn(u64, u64);

const BANKS: usize = super::grid::BANKS as usize;
