//! Where a policy's files lie: in the folders that are named, or by `weights.lock` in the hub cache.

use std::path::PathBuf;

use super::{PolicyError, PolicyOptions};
use crate::checkpoint::Snapshot;
use crate::encode::tokenizer::VOCABULARY_FILE;
use crate::weights::cache::Cache;
use crate::weights::locate::{self, LocateError};
use crate::weights::lock::Lock;

/// Folder of a snapshot where tokenizer files are looked for first.
pub const TOKENIZER_FOLDER: &str = "tokenizer";

/// The snapshot directory: that of the options, or the released checkpoint of their version. No network is used.
pub fn snapshot_dir(options: &PolicyOptions) -> Result<PathBuf, PolicyError> {
    if !options.snapshot.as_os_str().is_empty() {
        return Ok(options.snapshot.clone());
    }
    let version = options.version.ok_or(PolicyError::NoSnapshot)?;
    let lock = Lock::find(None).map_err(LocateError::from)?;
    Ok(locate::snapshot(&lock, &Cache::from_env(), version)?)
}

/// The folder of the tokenizer files: that of the options, the snapshot's own, the snapshot itself, or the one in the hub cache
/// that belongs to the version.
///
/// # Errors
/// There is none; the text says where they come from.
pub fn tokenizer_dir(options: &PolicyOptions, snapshot: &Snapshot) -> Result<PathBuf, PolicyError> {
    let dir = snapshot.dir();
    let inside = dir.join(TOKENIZER_FOLDER);
    if let Some(named) = &options.tokenizer {
        return Ok(named.clone());
    }
    if inside.is_dir() {
        return Ok(inside);
    }
    if dir.join(VOCABULARY_FILE).exists() {
        return Ok(dir.to_owned());
    }
    let lock = Lock::find(None).map_err(LocateError::from)?;
    let version = snapshot.version();
    match locate::tokenizer(&lock, &Cache::from_env(), version).map_err(LocateError::from)? {
        Some(dir) => Ok(dir),
        None => {
            let hint = locate::tokenizer_hint(&lock, version).map_err(LocateError::from)?;
            Err(PolicyError::NoTokenizer { dir: dir.to_owned(), hint })
        }
    }
}
