//! Shared by the golden tests: where the reference data lies, and comparing against it.
#![allow(dead_code, reason = "every test file uses its own part")]

pub mod drawn;
pub mod full_size;
pub mod golden;
pub mod n15;
pub mod n16;
pub mod n17;
pub mod pattern;
pub mod stored_network;
pub mod tokenizer;

use std::path::{Path, PathBuf};

/// A folder of the reference data beside the repository, or `None` with a line that says so.
pub fn shared(path: &str) -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared").join(path);
    if dir.exists() {
        return Some(dir);
    }
    println!("skipped: ../shared/{path} is not here");
    None
}

/// A file of the repository's own test data.
pub fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(path)
}
