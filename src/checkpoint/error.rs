//! Why a checkpoint is refused.

use std::path::PathBuf;

use super::embodiments::EmbodimentProblem;
use super::shard::ShardProblem;
use super::tensors::INDEX_FILE;
use crate::contract::Version;

/// Why a checkpoint is refused. Every text names the file, and the tensor or field, that is at fault.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: std::io::Error },

    /// The path is no directory.
    #[error(
        "{} is not a directory; a checkpoint is a folder with config.json and *.safetensors files",
        dir.display()
    )]
    NotADirectory { dir: PathBuf },

    /// A hub cache folder that does not say which snapshot is meant.
    #[error(
        "{} is a hub cache folder with {} snapshots ({}) and no refs/main; name one of its snapshots/* folders",
        dir.display(), snapshots.len(), snapshots.join(", ")
    )]
    HubCache { dir: PathBuf, snapshots: Vec<String> },

    /// Neither an index nor a single file.
    #[error(
        "{} has neither model.safetensors.index.json nor model.safetensors; it holds no weights",
        dir.display()
    )]
    NoWeights { dir: PathBuf },

    /// The index names shards that are not there.
    #[error(
        "{} names {named} shards, {present} of them are present; missing: {}",
        index.display(), missing.join(", ")
    )]
    MissingShards { index: PathBuf, named: usize, present: usize, missing: Vec<String> },

    /// The index names a file outside its directory.
    #[error(
        "{} puts tensor '{tensor}' into '{shard}'; a shard must be a plain file name in the same directory",
        index.display()
    )]
    ShardName { index: PathBuf, tensor: String, shard: String },

    /// A shard lacks a tensor that the index puts there.
    #[error(
        "{} puts tensor '{tensor}' into {shard}, which {}",
        index.display(),
        match found_in {
            Some(other) => format!("does not have it: it is in {other}"),
            None => "does not have it, nor does any other shard".to_owned(),
        }
    )]
    StaleIndex { index: PathBuf, tensor: String, shard: String, found_in: Option<String> },

    /// A shard has a tensor that the index does not put there.
    #[error("{} has tensor '{tensor}', which the index {INDEX_FILE} does not put there", path.display())]
    NotIndexed { path: PathBuf, tensor: String },

    /// A shard is damaged.
    #[error("{}: {problem}", path.display())]
    Shard { path: PathBuf, problem: ShardProblem },

    /// The model needs a tensor that no shard has.
    #[error("tensor '{tensor}' is not in the checkpoint {}", dir.display())]
    MissingTensor { dir: PathBuf, tensor: String },

    /// A tensor that the network has no place for.
    #[error(
        "tensor '{tensor}' in the checkpoint {} is not part of the network; \
         unmerged adapters and other networks are not served",
        dir.display()
    )]
    UnknownTensor { dir: PathBuf, tensor: String },

    /// A tensor is not of the size that the configuration asks for.
    #[error("tensor '{tensor}' in {} has shape {found:?}; the model needs {expected:?}", path.display())]
    Shape { path: PathBuf, tensor: String, expected: Vec<usize>, found: Vec<usize> },

    /// A tensor is not stored as bf16.
    #[error("tensor '{tensor}' in {} is stored as {found}; only BF16 is served", path.display())]
    Dtype { path: PathBuf, tensor: String, found: String },

    /// A file is not the JSON that it should be.
    #[error("{}: {message}", path.display())]
    Json { path: PathBuf, message: String },

    /// A field has a value that is not served.
    #[error("{}: '{key}' is {found}; accepted: {accepted}", path.display())]
    Field { path: PathBuf, key: String, found: String, accepted: String },

    /// No file of the checkpoint knows the tag.
    #[error("{} knows no embodiment '{tag}'; it serves: {}", dir.display(), list(served))]
    UnknownEmbodiment { dir: PathBuf, tag: String, served: Vec<String> },

    /// A data config that the checkpoint's version does not have.
    #[error(
        "{version} knows no data config '{data_config}'; {}",
        if known.is_empty() { "only n15 has data configs".to_owned() } else { format!("it has: {}", known.join(", ")) }
    )]
    UnknownDataConfig { version: Version, data_config: String, known: Vec<&'static str> },

    /// The checkpoint knows the tag but cannot serve it.
    #[error(
        "embodiment '{tag}' of {} cannot be served: {problem}; it serves: {}",
        dir.display(), list(served)
    )]
    Embodiment { dir: PathBuf, tag: String, problem: Box<EmbodimentProblem>, served: Vec<String> },
}

fn list(tags: &[String]) -> String {
    if tags.is_empty() { "none".to_owned() } else { tags.join(", ") }
}
