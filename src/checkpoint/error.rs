//! Why a checkpoint is refused.

use std::path::PathBuf;

/// Why a checkpoint is refused. Every text names the file, and the tensor or field, that is at fault.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("tensor '{tensor}' is not in the checkpoint {}", dir.display())]
    MissingTensor { dir: PathBuf, tensor: String },
    #[error("tensor '{tensor}' in {} has shape {found:?}; the model needs {expected:?}", path.display())]
    Shape { path: PathBuf, tensor: String, expected: Vec<usize>, found: Vec<usize> },
}
