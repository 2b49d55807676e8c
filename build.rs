//! Gives the crate a name for the code that computes: a hash of its sources.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// What values computed at load depend on, besides the checkpoint and the processor. They are computed in f32 whatever the
/// numbers of requests, so that the card's formats are not among it.
const SOURCES: [&str; 4] = ["src/program", "src/backend/cpu", "Cargo.lock", "Cargo.toml"];

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        collect(Path::new(source), &mut files)?;
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.hash(&mut hasher);
        fs::read(&file)?.hash(&mut hasher);
    }
    println!("cargo::rustc-env=GR00T_PROGRAM_HASH={:016x}", hasher.finish());
    Ok(())
}

/// Every file at or below `path`.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}
