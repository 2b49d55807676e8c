//! What a disk has left.

use std::io;
use std::path::Path;

/// Bytes that this user can still write to the disk of `path`, which has to exist.
///
/// # Errors
/// What the file system reports.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(path)?;
    Ok(disk.f_bavail * disk.f_frsize)
}
