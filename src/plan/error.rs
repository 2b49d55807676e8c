//! Why there is no plan.

use std::io;
use std::path::PathBuf;

use crate::backend::blackhole::cost::RateError;
use crate::checkpoint::CheckpointError;
use crate::contract::Version;
use crate::encode::prompt::MAX_PROMPT_TOKENS;

use super::layout::{MAX_IMAGES, MOST_PATCHES};

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("{images} pictures cannot be planned; accepted: 1 to {MAX_IMAGES}")]
    Images { images: usize },
    #[error(
        "an instruction of {text} tokens cannot be planned; accepted: 1 to {MAX_PROMPT_TOKENS}"
    )]
    Text { text: usize },
    #[error("the pictures of {version} have {} x {} patches, and no other grid is served; leave out the grid", served[0], served[1])]
    GridIsFixed { version: Version, served: [usize; 2] },
    #[error("a grid of {} x {} patches cannot be planned; accepted: multiples of {merge} up to {MOST_PATCHES}, as rows x columns, such as 16x28", grid[0], grid[1])]
    Grid { grid: [usize; 2], merge: usize },
    #[error(
        "the prompt would have {tokens} tokens; at most {MAX_PROMPT_TOKENS} are accepted: fewer pictures, patches or tokens of the instruction"
    )]
    Tokens { tokens: usize },
    #[error("{version} sees no frame twice, so that there is no history to keep; accepted: n17")]
    NoHistory { version: Version },
    #[error("of {images} pictures, half cannot be frames of before; accepted: an even number")]
    OddHistory { images: usize },
    #[error(transparent)]
    Rate(#[from] RateError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error("{} is not a folder; name another one with --out", path.display())]
    NotAFolder { path: PathBuf },
    #[error("cannot write {}: {error}; name another folder with --out", path.display())]
    Write { path: PathBuf, error: io::Error },
}

impl PlanError {
    /// Whether the arguments are at fault.
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Checkpoint(_) | Self::NotAFolder { .. } | Self::Write { .. })
    }
}
