//! Whether a snapshot on disk is whole: sizes and hashes against the lock file and the names of the blobs, index against headers,
//! every tensor of the network with its shape.

mod files;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use files::{Checked, FileFault};

use super::lock::{FileEntry, Release};
use crate::checkpoint::{self, CheckpointError};
use crate::contract::Version;

/// Hears how many bytes have been read, and of how many, from several threads.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Something that is not as it should be, in one line.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    File(#[from] FileFault),
    #[error("{}: the checkpoint is of {found}, expected {expected}", dir.display())]
    Version { dir: PathBuf, expected: Version, found: Version },
    #[error("{}: {found} tensors are stored, expected {expected}", dir.display())]
    Tensors { dir: PathBuf, expected: usize, found: usize },
    #[error("{}: the tensors have {found} bytes, expected {expected}", dir.display())]
    Bytes { dir: PathBuf, expected: u64, found: u64 },
}

/// What a snapshot consists of, and what is wrong with it.
#[derive(Debug)]
pub struct Report {
    pub dir: PathBuf,
    /// `None` if the files that say it are damaged.
    pub version: Option<Version>,
    /// Tensors that are stored.
    pub tensors: usize,
    /// Tensors that the release has; `None` if it is not compared with one.
    pub expected_tensors: Option<usize>,
    /// Bytes of all tensors.
    pub bytes: u64,
    /// Stored tensors that inference never reads.
    pub unused: Vec<String>,
    /// The files that were hashed.
    pub files: Vec<Checked>,
    pub faults: Vec<Fault>,
}

/// Verifies the snapshot directory `dir`. With a release it has to be that one, file by file; without, for example where it was
/// fine-tuned, it has to be whole, and files of a hub cache are compared with the hashes that name their blobs.
pub fn verify(dir: &Path, released: Option<(Version, &Release)>, progress: Progress<'_>) -> Report {
    // Both fail by themselves where the folder does not exist.
    let dir = checkpoint::resolve_hub_cache(dir).unwrap_or_else(|_| dir.to_owned());
    let survey = checkpoint::survey(&dir);
    let mut faults: Vec<Fault> = survey.faults.into_iter().map(Fault::from).collect();
    let (files, file_faults) = match released {
        Some((_, release)) => files::check_listed(&dir, &release.weights.files, progress),
        None => files::check_blobs(&dir, progress),
    };
    faults.extend(file_faults.into_iter().map(Fault::from));
    if let Some((expected, release)) = released {
        faults.extend(
            survey.version.filter(|found| *found != expected).map(|found| Fault::Version {
                dir: dir.clone(),
                expected,
                found,
            }),
        );
        if survey.tensors != release.tensors {
            let (expected, found) = (release.tensors, survey.tensors);
            faults.push(Fault::Tensors { dir: dir.clone(), expected, found });
        }
        if survey.bytes != release.tensor_bytes {
            let (expected, found) = (release.tensor_bytes, survey.bytes);
            faults.push(Fault::Bytes { dir: dir.clone(), expected, found });
        }
    }
    Report {
        dir,
        version: survey.version,
        tensors: survey.tensors,
        expected_tensors: released.map(|(_, release)| release.tensors),
        bytes: survey.bytes,
        unused: survey.unused,
        files,
        faults,
    }
}

/// Compares the files of a tokenizer's folder with what is known of them.
pub fn verify_tokenizer(
    dir: &Path,
    files: &BTreeMap<String, FileEntry>,
    progress: Progress<'_>,
) -> (Vec<Checked>, Vec<FileFault>) {
    files::check_listed(dir, files, progress)
}
