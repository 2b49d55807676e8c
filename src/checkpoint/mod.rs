//! Checkpoints as they lie on disk: shards, configuration, statistics; and synthetic ones.

mod error;
pub mod n16;
mod tensors;

pub use error::CheckpointError;
pub use tensors::{Checkpoint, Tensor};
