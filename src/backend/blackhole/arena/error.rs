//! Why there is no arena.

use std::io;
use std::path::PathBuf;

use super::file::FileProblem;
use super::{BANK_BYTES, BANKS};
use crate::backend::blackhole::numerics::NumericsError;
use crate::checkpoint::CheckpointError;

/// Something is wrong with what an arena was asked to hold, with the weights, or with a file.
#[derive(Debug, thiserror::Error)]
pub enum ArenaError {
    #[error(
        "part '{part}', consumer {consumer}: there is no weight {id}, the program has {weights}"
    )]
    Weight { part: String, consumer: u32, id: usize, weights: usize },
    #[error(
        "part '{part}', consumer {consumer}: '{tensor}' has {columns} columns of tiles, there is no column \
         {column_tile}"
    )]
    Column { part: String, consumer: u32, tensor: String, column_tile: usize, columns: usize },
    #[error("{what}: there is no bank {bank}, the card has {BANKS}")]
    Bank { what: String, bank: u8 },
    #[error(
        "part '{part}', consumer {consumer}: a shard of instruction {order} stands behind one of instruction \
         {before}; shards are read in the order in which they are used"
    )]
    Order { part: String, consumer: u32, before: u32, order: u32 },
    #[error("{what} is empty; leave it out")]
    Empty { what: String },
    #[error("there are two of {what}; give each a name of its own")]
    SameName { what: String },
    #[error(
        "bank {bank} would have to hold {bytes} bytes, it has {BANK_BYTES}; spread the streams over the banks"
    )]
    TooLarge { bank: u8, bytes: u64 },
    #[error(
        "part '{part}' holds '{tensor}', but nothing that the part is read for changes its product: {fix}"
    )]
    NotHoisted { tensor: String, part: String, fix: &'static str },
    #[error(
        "the program reads values {first} to {end} of '{tensor}', which has {found}; the checkpoint is not the one \
         that the program was built for"
    )]
    WeightValues { tensor: String, first: usize, end: usize, found: usize },
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Numerics(#[from] NumericsError),
    #[error(
        "the disk of {} has {free} bytes free, the arena needs {needed}; make room, or name another place",
        path.display()
    )]
    DiskFull { path: PathBuf, needed: u64, free: u64 },
    #[error("cannot write {}: {error}; name a place that can be written to", path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("{} {problem}; delete it, it is made again", path.display())]
    File { path: PathBuf, problem: FileProblem },
}
