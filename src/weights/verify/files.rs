//! Sizes and hashes of files, read in parallel.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use rustix::fs::Advice;

use super::Progress;
use crate::weights::hash::{Content, Hasher, Hashes};
use crate::weights::lock::FileEntry;

/// Bytes that are read at once: few enough to be hashed out of the second-level cache.
const PIECE_BYTES: usize = 256 << 10;

/// A file that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Path inside the snapshot.
    pub path: String,
    pub size: u64,
    /// Lower-case hexadecimal.
    pub sha256: String,
    /// Whether its hash was known beforehand, from the lock file or from the name of its blob.
    pub known: bool,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    #[error("{}: is missing", path.display())]
    Missing { path: PathBuf },
    #[error("{}: cannot be read: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("{}: has {found} bytes, expected {expected}", path.display())]
    Size { path: PathBuf, expected: u64, found: u64 },
    #[error("{}: has SHA-256 {found}, expected {expected} (lock file)", path.display())]
    Locked { path: PathBuf, expected: String, found: String },
    #[error("{}: has hash {found}, expected {expected} (name of its blob)", path.display())]
    Blob { path: PathBuf, expected: String, found: String },
}

/// A file and what is known of it.
struct Expected {
    path: String,
    file: PathBuf,
    entry: FileEntry,
    blob: Option<Content>,
    size: u64,
}

/// Checks the files that a lock file lists.
pub fn check_listed(
    dir: &Path,
    files: &BTreeMap<String, FileEntry>,
    progress: Progress<'_>,
) -> (Vec<Checked>, Vec<FileFault>) {
    let mut faults = Vec::new();
    let mut expected = Vec::new();
    for (path, entry) in files {
        let file = dir.join(path);
        match fs::metadata(&file) {
            Ok(metadata) => {
                let blob = blob_of(&file);
                let (path, entry) = (path.clone(), entry.clone());
                expected.push(Expected { path, file, entry, blob, size: metadata.len() });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                faults.push(FileFault::Missing { path: file });
            }
            Err(error) => faults.push(FileFault::Io { path: file, error }),
        }
    }
    check_all(expected, faults, progress)
}

/// Checks the files of a folder that are links to blobs.
pub fn check_blobs(dir: &Path, progress: Progress<'_>) -> (Vec<Checked>, Vec<FileFault>) {
    let mut expected = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let file = entry.path();
        let (Some(blob), Ok(metadata)) = (blob_of(&file), fs::metadata(&file)) else { continue };
        let path = entry.file_name().to_string_lossy().into_owned();
        let entry = FileEntry::default();
        expected.push(Expected { path, file, entry, blob: Some(blob), size: metadata.len() });
    }
    check_all(expected, Vec::new(), progress)
}

/// The content that the link of a hub cache stands for.
fn blob_of(file: &Path) -> Option<Content> {
    let target = fs::read_link(file).ok()?;
    if target.parent()?.file_name()? != "blobs" {
        return None;
    }
    Content::of_tag(target.file_name()?.to_str()?)
}

fn check_all(
    mut files: Vec<Expected>,
    mut faults: Vec<FileFault>,
    progress: Progress<'_>,
) -> (Vec<Checked>, Vec<FileFault>) {
    // Of two threads, none is to begin the longest file last.
    files.sort_by_key(|file| std::cmp::Reverse(file.size));
    let total = files.iter().map(|file| file.size).sum();
    let done = AtomicU64::new(0);
    let read = |count| {
        progress(done.fetch_add(count, Ordering::Relaxed) + count, total);
    };
    let results: Vec<_> =
        files.into_par_iter().with_max_len(1).map(|file| check(&file, &read)).collect();
    let mut checked = Vec::new();
    for result in results {
        match result {
            Ok(file) => checked.push(file),
            Err(fault) => faults.push(fault),
        }
    }
    checked.sort_by(|one, other| one.path.cmp(&other.path));
    (checked, faults)
}

fn check(expected: &Expected, read: &(dyn Fn(u64) + Sync)) -> Result<Checked, FileFault> {
    let Expected { file, entry, blob, .. } = expected;
    let path = || file.clone();
    // Of the wrong size, the hash is wrong too, and what it is interests nobody.
    if let Some(size) = entry.size.filter(|size| *size != expected.size) {
        return Err(FileFault::Size { path: path(), expected: size, found: expected.size });
    }
    let (size, hashes) = hash_file(file, blob.as_ref(), expected.size, read)
        .map_err(|error| FileFault::Io { path: path(), error })?;
    if let Some(locked) = entry.sha256.clone().filter(|locked| *locked != hashes.sha256) {
        let found = hashes.sha256;
        return Err(FileFault::Locked { path: path(), expected: locked, found });
    }
    if let Some([expected, found]) = blob.as_ref().and_then(|blob| hashes.mismatch(blob)) {
        return Err(FileFault::Blob { path: path(), expected, found });
    }
    let known = entry.sha256.is_some() || blob.is_some();
    Ok(Checked { path: expected.path.clone(), size, sha256: hashes.sha256, known })
}

/// Reads a file to its end. It is read, not mapped: an unreadable sector of a map ends the process.
fn hash_file(
    path: &Path,
    content: Option<&Content>,
    size: u64,
    read: &(dyn Fn(u64) + Sync),
) -> io::Result<(u64, Hashes)> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut file = File::open(path)?;
    // The kernel reads further ahead; where it cannot, it is only slower.
    let _ = rustix::fs::fadvise(&file, 0, None, Advice::Sequential);
    let mut hasher = Hasher::new(content, size);
    let mut buffer = vec![0; PIECE_BYTES];
    let mut total = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((total, hasher.finish())),
            Ok(count) => {
                hasher.update(&buffer[..count]);
                total += count as u64;
                read(count as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
