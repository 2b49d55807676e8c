//! Where snapshots lie: plain folders and hub caches, writable or not.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use gr00t_blackhole::checkpoint::{CheckpointError, Snapshot};
use tempfile::TempDir;

use crate::support::{Tiny, assert_names};

const REVISION: &str = "0123456789abcdef0123456789abcdef01234567";

/// A hub cache with one model: blobs, and a snapshot of links to them.
struct Cache {
    root: TempDir,
}

impl Cache {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let cache = Self { root };
        let blobs = cache.model().join("blobs");
        fs::create_dir_all(&blobs).unwrap();
        fs::create_dir_all(cache.snapshot()).unwrap();
        let tiny = Tiny::new();
        for (number, entry) in fs::read_dir(tiny.path()).unwrap().enumerate() {
            let path = entry.unwrap().path();
            let blob = format!("{number:064x}");
            fs::copy(&path, blobs.join(&blob)).unwrap();
            let link = cache.snapshot().join(path.file_name().unwrap());
            symlink(Path::new("../../blobs").join(blob), link).unwrap();
        }
        cache
    }

    fn model(&self) -> PathBuf {
        self.root.path().join("models--nvidia--GR00T-N1.6-3B")
    }

    fn snapshot(&self) -> PathBuf {
        self.model().join("snapshots").join(REVISION)
    }

    fn write_ref(&self, revision: &str) {
        fs::create_dir_all(self.model().join("refs")).unwrap();
        fs::write(self.model().join("refs/main"), revision).unwrap();
    }
}

fn set_mode(root: &Path, directories: u32, files: u32) {
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            set_mode(&path, directories, files);
        } else {
            fs::set_permissions(&path, fs::Permissions::from_mode(files)).unwrap();
        }
    }
    fs::set_permissions(root, fs::Permissions::from_mode(directories)).unwrap();
}

#[test]
fn case_80_symlinked_snapshot_is_served() {
    let cache = Cache::new();
    let snapshot = Snapshot::open(&cache.snapshot()).unwrap();
    assert_eq!(snapshot.dir(), cache.snapshot());
    assert!(snapshot.embodiment("gr1").is_ok());
}

#[test]
fn case_80_read_only_folder_and_cache_are_served() {
    let cache = Cache::new();
    cache.write_ref(REVISION);
    set_mode(&cache.model(), 0o555, 0o444);
    let before = listing(&cache.model());
    for path in [cache.snapshot(), cache.model()] {
        let opened = Snapshot::open(&path);
        assert!(opened.is_ok(), "{:?}", opened.err());
    }
    assert_eq!(listing(&cache.model()), before, "nothing is written");
    set_mode(&cache.model(), 0o755, 0o644);

    let tiny = Tiny::new();
    set_mode(tiny.path(), 0o555, 0o444);
    let opened = tiny.open();
    set_mode(tiny.path(), 0o755, 0o644);
    opened.unwrap();
}

fn listing(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(listing(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

#[test]
fn case_80_the_folder_of_a_model_stands_for_its_snapshot() {
    let cache = Cache::new();
    assert_eq!(Snapshot::open(&cache.model()).unwrap().dir(), cache.snapshot(), "the only one");
    let other = cache.model().join("snapshots").join("f".repeat(40));
    fs::create_dir(&other).unwrap();
    let error = Snapshot::open(&cache.model()).unwrap_err();
    assert!(matches!(&error, CheckpointError::HubCache { snapshots, .. } if snapshots.len() == 2));
    assert_names(&error.to_string(), &[REVISION, "refs/main"]);
    cache.write_ref(&format!("{REVISION}\n"));
    assert_eq!(Snapshot::open(&cache.model()).unwrap().dir(), cache.snapshot());
    for revision in ["../../..", "", "gone", "a/b"] {
        cache.write_ref(revision);
        let error = Snapshot::open(&cache.model()).unwrap_err();
        assert!(matches!(error, CheckpointError::HubCache { .. }), "{revision:?}");
    }
}

#[test]
fn case_41_a_link_to_an_absent_blob_is_an_absent_shard() {
    let cache = Cache::new();
    let shard = Tiny::new().shard_of("action_head.vlln.weight");
    fs::remove_file(fs::canonicalize(cache.snapshot().join(&shard)).unwrap()).unwrap();
    let error = Snapshot::open(&cache.snapshot()).unwrap_err();
    assert!(
        matches!(&error, CheckpointError::MissingShards { missing, .. } if missing == &[shard])
    );

    let index = "model.safetensors.index.json";
    fs::remove_file(fs::canonicalize(cache.snapshot().join(index)).unwrap()).unwrap();
    let error = Snapshot::open(&cache.snapshot()).unwrap_err();
    assert!(matches!(&error, CheckpointError::Io { .. }), "{error}");
    assert_names(&error.to_string(), &[index]);
}
