//! The real vocabulary, which the repository does not contain, put together in a temporary folder.

use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::shared;

/// A folder with the real tokenizer of a version, or `None` when the reference data is not here.
pub fn real(version: &str) -> Option<TempDir> {
    let source = shared("tokenizer")?.canonicalize().unwrap();
    let dir = TempDir::new().unwrap();
    for file in ["vocab.json", "merges.txt"] {
        symlink(source.join(file), dir.path().join(file)).unwrap();
    }
    for entry in source.join(version).read_dir().unwrap() {
        let entry = entry.unwrap();
        symlink(entry.path(), dir.path().join(entry.file_name())).unwrap();
    }
    Some(dir)
}
