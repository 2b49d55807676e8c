//! The layout of a Hugging Face hub cache: `models--org--name/{blobs,refs,snapshots/<revision>}`.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::CheckpointError;

/// The snapshot directory that `dir` stands for: `dir` itself, or where it is the folder of a model in a hub cache, the
/// snapshot that `refs/main` names, else its only one. Nothing is written and no network is used.
///
/// # Errors
/// The cache folder holds several snapshots, or none, and no `refs/main` that chooses one.
pub fn resolve(dir: &Path) -> Result<PathBuf, CheckpointError> {
    let snapshots = dir.join("snapshots");
    if !snapshots.is_dir() || dir.join("config.json").exists() {
        return Ok(dir.to_owned());
    }
    if let Ok(revision) = fs::read_to_string(dir.join("refs").join("main")) {
        let revision = Path::new(revision.trim());
        let plain = matches!(revision.components().next(), Some(Component::Normal(_)))
            && revision.components().count() == 1;
        let chosen = snapshots.join(revision);
        if plain && chosen.is_dir() {
            return Ok(chosen);
        }
    }
    let io = |error| CheckpointError::Io { path: snapshots.clone(), error };
    let mut found = Vec::new();
    for entry in fs::read_dir(&snapshots).map_err(io)? {
        let entry = entry.map_err(io)?;
        if entry.path().is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    match found.as_slice() {
        [only] => Ok(only.clone()),
        several => {
            let name = |path: &PathBuf| {
                path.file_name().unwrap_or_default().to_string_lossy().into_owned()
            };
            let snapshots = several.iter().map(name).collect();
            Err(CheckpointError::HubCache { dir: dir.to_owned(), snapshots })
        }
    }
}
