//! One process at a time downloads a blob.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::FetchError;
use super::pool::Stop;

/// How often it is tried whether the other process has finished.
const PERIOD: Duration = Duration::from_millis(200);

/// A lock on a file, which ends with the value, or with the process.
#[derive(Debug)]
pub struct Claim {
    _file: File,
}

impl Claim {
    /// Waits for the lock on `path`. `waiting` is called once if another process holds it.
    ///
    /// The file stays: to remove it would let a third process lock a new one while the second holds the old.
    ///
    /// # Errors
    /// The file cannot be made, or the work was stopped meanwhile.
    pub fn wait(path: &Path, stop: &Stop, waiting: &dyn Fn()) -> Result<Self, FetchError> {
        let failed = |error| FetchError::io(path.to_owned(), error);
        let file = open(path).map_err(failed)?;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if !told => {
                    told = true;
                    waiting();
                }
                Err(TryLockError::WouldBlock) => stop.sleep(PERIOD)?,
                // Some network file systems have no locks; then two processes may do the same work, and the blob is put to
                // its place by a rename all the same.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(Self { _file: file });
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // Not truncated: Python's library may hold the same file.
    OpenOptions::new().create(true).append(true).open(PathBuf::from(path))
}
