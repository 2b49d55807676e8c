//! What the tests of full-size networks share.

use std::os::unix::fs::symlink;
use std::path::Path;

use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::Version;
use tempfile::TempDir;

/// A snapshot with generated weights, in the folder `snapshot`, and these files of the reference's own.
pub fn with_generated_weights(
    version: Version,
    size: Size,
    golden: &Path,
    files: &[&str],
) -> TempDir {
    let dir = TempDir::new().unwrap();
    let snapshot = dir.path().join("snapshot");
    synth::write(version, size, &snapshot, &|_, _| {}).unwrap();
    for file in files {
        link(&golden.join("snapshot").join(file), &snapshot, file);
    }
    dir
}

/// Puts a link to `source` at `path` inside `dir`, whatever was there.
pub fn link(source: &Path, dir: &Path, path: &str) {
    let target = dir.join(path);
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    if target.exists() {
        std::fs::remove_file(&target).unwrap();
    }
    symlink(source.canonicalize().unwrap(), target).unwrap();
}

/// Prints the most memory that this process has had, and checks that it is below the 9 GB that a robot host has for it.
pub fn check_peak_memory() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    let bytes = kilobytes * 1024;
    println!("peak resident memory: {:.2} GB", bytes as f64 / 1e9);
    assert!(bytes < 9_000_000_000);
}
