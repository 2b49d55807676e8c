//! Snapshots that a test may change.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::checkpoint::{CheckpointError, INDEX_FILE, Snapshot};
use gr00t_blackhole::contract::Version;
use serde_json::Value;
use tempfile::TempDir;

/// A folder or file of the shared golden files, or a line that says why the test is passed over.
pub fn golden(path: &str) -> Option<PathBuf> {
    shared(&format!("golden/{path}"))
}

/// As [`golden`], for anything that is shared.
pub fn shared(path: &str) -> Option<PathBuf> {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared").join(path);
    if found.exists() {
        return Some(found);
    }
    println!("skipped: ../shared/{path} is not here");
    None
}

pub fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A tiny synthetic snapshot in a directory of its own.
pub struct Tiny {
    dir: TempDir,
}

/// Name and content of every file beside the tokenizer.
type Files = Vec<(String, Vec<u8>)>;

static N16: LazyLock<Files> = LazyLock::new(|| template(Version::N16));
static N17: LazyLock<Files> = LazyLock::new(|| template(Version::N17));

fn template(version: Version) -> Files {
    let dir = tempfile::tempdir().unwrap();
    synth::write(version, Size::Tiny, dir.path(), &|_, _| {}).unwrap();
    let entries = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.is_file())
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())
        })
        .collect()
}

impl Tiny {
    /// Of N1.6.
    pub fn new() -> Self {
        Self::from_template(&N16)
    }

    pub fn n17() -> Self {
        Self::from_template(&N17)
    }

    fn from_template(files: &Files) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        Self { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The file that the index names for a tensor.
    pub fn shard_of(&self, tensor: &str) -> String {
        let index = read_json(&self.file(INDEX_FILE));
        index["weight_map"][tensor].as_str().unwrap().to_owned()
    }

    /// How many files the index names.
    pub fn shards(&self) -> usize {
        let index = read_json(&self.file(INDEX_FILE));
        let names = index["weight_map"].as_object().unwrap().values();
        names.map(|name| name.as_str().unwrap()).collect::<BTreeSet<_>>().len()
    }

    pub fn open(&self) -> Result<Snapshot, CheckpointError> {
        Snapshot::open(self.path())
    }

    /// Changes a JSON file, opens the snapshot, and puts the file back.
    pub fn open_with(
        &self,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Snapshot, CheckpointError> {
        let path = self.file(name);
        let before = fs::read(&path).unwrap();
        let mut value: Value = serde_json::from_slice(&before).unwrap();
        change(&mut value);
        fs::write(&path, value.to_string()).unwrap();
        let result = self.open();
        fs::write(&path, before).unwrap();
        result
    }

    /// As [`Tiny::open_with`] for any text.
    pub fn open_with_text(
        &self,
        name: &str,
        change: impl FnOnce(String) -> String,
    ) -> Result<Snapshot, CheckpointError> {
        let path = self.file(name);
        let before = fs::read_to_string(&path).unwrap();
        fs::write(&path, change(before.clone())).unwrap();
        let result = self.open();
        fs::write(&path, before).unwrap();
        result
    }
}

/// Checks that an error's text names all of these.
#[track_caller]
pub fn assert_names(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "'{part}' is missing in: {text}");
    }
}
