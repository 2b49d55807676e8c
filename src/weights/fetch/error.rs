//! Why a file was not fetched, in words that say what to do.

use std::io;
use std::path::PathBuf;

use super::http_error::HttpError;
use crate::weights::hub::OFFLINE;

/// Why files were not fetched. What has arrived stays in the cache, and the next run goes on from there.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(
        "{OFFLINE} forbids the network, and {} of {repo} are not in the cache ({}): {}; unset it, or copy the cache of another machine",
        if missing.len() == 1 { "a file".to_owned() } else { format!("{} files", missing.len()) },
        dir.display(), missing.join(", ")
    )]
    Offline { repo: String, dir: PathBuf, missing: Vec<String> },

    #[error("{file} of {repo}: {error}")]
    Http { repo: String, file: String, error: Box<HttpError> },

    #[error("{file} of {repo}, given up after {attempts} attempts without progress: {error}")]
    GivenUp { repo: String, file: String, attempts: u32, error: Box<HttpError> },

    #[error(
        "{file} of {repo}: revision {wanted} was asked for, and the hub answers with {found}; the mirror or proxy in between is broken"
    )]
    OtherRevision { repo: String, file: String, wanted: String, found: String },

    #[error(
        "{file} of {repo} has {found} bytes on the hub, and {expected} in the lock file; the repository or the lock file is not what it should be"
    )]
    SizeNotLocked { repo: String, file: String, expected: u64, found: u64 },

    #[error(
        "{file} of {repo} has SHA-256 {found}, and {expected} in the lock file; it was not put into the cache"
    )]
    HashNotLocked { repo: String, file: String, expected: String, found: String },

    #[error(
        "{file} of {repo} arrived damaged: its hash is {found}, the hub says {expected}; it was thrown away, try again"
    )]
    Damaged { repo: String, file: String, expected: String, found: String },

    #[error(
        "the disk of {} has {:.3} GB free, and {:.3} GB are still to come; make room, or set HF_HOME to a folder on another disk",
        path.display(), *free as f64 / 1e9, *needed as f64 / 1e9
    )]
    NoRoom { path: PathBuf, needed: u64, free: u64 },

    #[error(
        "the disk of {} is full; make room and run it again, or set HF_HOME to a folder on another disk", path.display()
    )]
    DiskFull { path: PathBuf },

    #[error(
        "cannot write {}: {error}; set HF_HOME to a folder that this user can write", path.display()
    )]
    Io { path: PathBuf, error: io::Error },

    /// Another file has failed, whose error is told.
    #[error("stopped")]
    Stopped,
}

impl FetchError {
    pub(super) fn io(path: PathBuf, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Io { path, error },
        }
    }
}
