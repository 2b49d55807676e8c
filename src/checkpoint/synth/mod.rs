//! Synthetic checkpoints: complete snapshot directories with made-up weights that anyone can make again.
//!
//! Names, shapes and files are those of a released checkpoint; weights are a hash of name and position, statistics and
//! tokenizer are our own. They know nothing about robots.

mod generator;
mod n15;
mod n16;
mod n17;
mod robots;
mod shards;
mod tokenizer;

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde_json::Value;

use super::TensorSpec;
use crate::contract::Version;
use crate::partial;

/// Folder of the tokenizer's files in a synthetic snapshot.
pub const TOKENIZER_FOLDER: &str = "tokenizer";

/// Behind the name of a snapshot that grows.
const PARTIAL_SUFFIX: &str = ".synth-partial";

/// How large a synthetic checkpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Small widths and few layers: a few megabytes.
    Tiny,
    /// Real widths, few layers: a few gigabytes.
    Mid,
    /// The released 3B network.
    Full,
}

impl Size {
    pub const ALL: [Size; 3] = [Size::Tiny, Size::Mid, Size::Full];

    pub fn name(self) -> &'static str {
        match self {
            Size::Tiny => "tiny",
            Size::Mid => "mid",
            Size::Full => "full",
        }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let known = Size::ALL.into_iter().find(|size| size.name() == text);
        known.ok_or_else(|| format!("size '{text}' is not one of tiny, mid, full"))
    }
}

/// What one version's snapshot of one size consists of, apart from the tokenizer.
struct Recipe {
    /// In the order in which they are split over shards.
    tensors: Vec<TensorSpec>,
    /// Bytes of tensors in a shard, at most.
    shard_limit: u64,
    /// Paths inside the snapshot, and what they hold.
    files: Vec<(&'static str, Value)>,
}

/// Why no synthetic checkpoint was written.
#[derive(Debug, thiserror::Error)]
pub enum SynthError {
    #[error("{} exists and is not an empty directory; name another one or remove it", path.display())]
    Occupied { path: PathBuf },
    #[error(
        "the disk of {} has {:.1} GB free; the checkpoint needs {:.1} GB",
        path.display(), *free as f64 / 1e9, *needed as f64 / 1e9
    )]
    DiskFull { path: PathBuf, needed: u64, free: u64 },
    #[error("cannot write {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// Writes a snapshot to `out`, which must not exist or be empty. `progress` hears how many bytes of weights are done,
/// and of how many, from several threads.
///
/// Everything is written beside `out` and renamed at the end, so that `out` is complete whenever it is there.
///
/// # Errors
/// An occupied target, too little space, or whatever the file system reports.
pub fn write(
    version: Version,
    size: Size,
    out: &Path,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Result<(), SynthError> {
    let recipe = recipe(version, size);
    refuse_occupied(out)?;
    let partial = partial::fresh(out, PARTIAL_SUFFIX)
        .map_err(|(path, error)| SynthError::Io { path, error })?;
    shards::write(&partial, &recipe.tensors, recipe.shard_limit, progress)?;
    for (file, value) in &recipe.files {
        write_json(&partial.join(file), value)?;
    }
    write_tokenizer(&partial.join(TOKENIZER_FOLDER), version)?;
    if out.exists() {
        fs::remove_dir(out).map_err(|error| io_error(out, error))?;
    }
    fs::rename(&partial, out).map_err(|error| io_error(out, error))
}

/// Bytes of weights that [`write()`] writes.
pub fn weight_bytes(version: Version, size: Size) -> u64 {
    shards::total(&recipe(version, size).tensors)
}

fn recipe(version: Version, size: Size) -> Recipe {
    match version {
        Version::N15 => n15::recipe(size),
        Version::N16 => n16::recipe(size),
        Version::N17 => n17::recipe(size),
    }
}

fn io_error(path: &Path, error: io::Error) -> SynthError {
    SynthError::Io { path: path.to_owned(), error }
}

fn refuse_occupied(out: &Path) -> Result<(), SynthError> {
    let occupied = match fs::read_dir(out) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(_) => true,
    };
    if occupied { Err(SynthError::Occupied { path: out.to_owned() }) } else { Ok(()) }
}

fn write_tokenizer(dir: &Path, version: Version) -> Result<(), SynthError> {
    let files = tokenizer::build(version);
    write_json(&dir.join("vocab.json"), &files.vocab)?;
    write_json(&dir.join("added_tokens.json"), &files.added_tokens)?;
    let path = dir.join("merges.txt");
    fs::write(&path, files.merges).map_err(|error| io_error(&path, error))
}

/// Writes a file, and the folders above it.
fn write_json(path: &Path, value: &Value) -> Result<(), SynthError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| io_error(folder, error))?;
    }
    fs::write(path, format!("{value:#}\n")).map_err(|error| io_error(path, error))
}
