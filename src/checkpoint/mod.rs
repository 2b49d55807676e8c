//! Checkpoints as they lie on disk: shards, configuration, statistics; and synthetic ones.

mod error;
pub mod n15;
pub mod n16;
pub mod n17;
pub mod network;
mod tensors;

pub use error::CheckpointError;
pub use tensors::{Checkpoint, Tensor};
