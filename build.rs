//! Gives the crate names for the code that computes and for the code that packs: hashes of their sources.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// What values computed at load depend on, besides the checkpoint and the processor. They are computed in f32 whatever the
/// numbers of requests, so that the card's formats are not among it.
const PROGRAM: [&str; 4] = ["src/program", "src/backend/cpu", "Cargo.lock", "Cargo.toml"];
/// What the bytes of an arena depend on, besides the checkpoint and its plan.
const ARENA: [&str; 3] =
    ["src/backend/blackhole/arena", "src/backend/blackhole/numerics", "Cargo.lock"];

fn main() -> io::Result<()> {
    name("GR00T_PROGRAM_HASH", &PROGRAM)?;
    name("GR00T_ARENA_HASH", &ARENA)
}

/// Hands the hash of all files at or below `sources` to the crate, as an environment variable.
fn name(variable: &str, sources: &[&str]) -> io::Result<()> {
    let mut files = Vec::new();
    for source in sources {
        println!("cargo::rerun-if-changed={source}");
        collect(Path::new(source), &mut files)?;
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        file.hash(&mut hasher);
        fs::read(&file)?.hash(&mut hasher);
    }
    println!("cargo::rustc-env={variable}={:016x}", hasher.finish());
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
