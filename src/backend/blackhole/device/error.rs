//! What can go wrong with a device.

use std::io;
use std::path::PathBuf;

use tt_metal_sys::NotReady;

use crate::backend::blackhole::arena::ArenaError;
use crate::backend::blackhole::trace::TraceError;
use crate::checkpoint::CheckpointError;

use super::options::SIMULATOR;

#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    #[error(
        "no simulator: set {SIMULATOR} to the library of one (libttsim_bh.so), or choose another backend"
    )]
    NoSimulator,
    #[error("{SIMULATOR} names '{}', which is not there", path.display())]
    SimulatorMissing { path: PathBuf },
    #[error(
        "{SIMULATOR} is set ('{}'), so tt-metal would open a simulator; unset it, or choose the backend 'sim'",
        path.display()
    )]
    SimulatorForCard { path: PathBuf },
    #[error("the kernels cannot be put into '{}': {error}; set GR00T_CACHE_DIR, or the node's parameter cache_dir, to a directory that can be written", dir.display())]
    Unpack { dir: PathBuf, error: io::Error },
    /// A request that the card cannot run, or a program that has no lowered form.
    #[error(transparent)]
    Lower(#[from] TraceError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The worker was lost in a stage, or is not back yet.
    #[error("device, stage '{stage}': {source}")]
    Device { stage: String, source: NotReady },
    #[error(
        "the device has a grid of {columns} x {rows} cores and {banks} banks of DRAM; programs are made for {expected}"
    )]
    OtherChip { columns: u32, rows: u32, banks: u32, expected: String },
    #[error(
        "the card keeps sums of products in f32 alone; leave --accumulation out, or choose the CPU"
    )]
    Accumulation,
    #[error(transparent)]
    Arena(#[from] ArenaError),
}
