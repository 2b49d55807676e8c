//! Directories that grow beside their place and are renamed when they are complete.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// An empty directory beside `target`, with `suffix` behind its name; what a run that was killed has left there is removed.
///
/// # Errors
/// What the file system reports, with the directory.
pub fn fresh(target: &Path, suffix: &str) -> Result<PathBuf, (PathBuf, io::Error)> {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    let partial = target.with_file_name(name);
    let cleared = if partial.exists() { fs::remove_dir_all(&partial) } else { Ok(()) };
    match cleared.and_then(|()| fs::create_dir_all(&partial)) {
        Ok(()) => Ok(partial),
        Err(error) => Err((partial, error)),
    }
}
