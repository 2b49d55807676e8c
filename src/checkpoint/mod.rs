//! Checkpoints as they lie on disk: shards, configuration, statistics; and synthetic ones.

mod embodiments;
mod error;
mod fingerprint;
mod hub;
mod json;
mod layout;
mod modality;
pub mod n15;
pub mod n16;
pub mod n17;
pub mod network;
mod processor;
mod shard;
mod slots;
mod snapshot;
mod statistics;
mod survey;
pub mod synth;
mod tensors;

pub use embodiments::{EmbodimentProblem, MAX_PICTURES};
pub use error::CheckpointError;
pub use fingerprint::fingerprint;
pub use hub::resolve as resolve_hub_cache;
pub use json::MAX_JSON_BYTES;
pub use layout::{TIMESTEP_CHANNELS, TensorSpec};
pub use processor::{ImageChain, PROCESSOR_FILE, Processor};
pub use shard::{MAX_HEADER_BYTES, ShardProblem};
pub use slots::SLOTS_FILE;
pub use snapshot::{CONFIG_FILE, Network, Snapshot};
pub use statistics::STATISTICS_FILE;
pub use survey::{Survey, survey};
pub use tensors::{Checkpoint, INDEX_FILE, SINGLE_FILE, Tensor};
