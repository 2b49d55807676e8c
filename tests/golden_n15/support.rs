//! Snapshots and cases that the tests share.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::LazyLock;

use gr00t_blackhole::checkpoint::n15::METADATA_FILE;
use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::checkpoint::{Network, Snapshot};
use gr00t_blackhole::contract::Version;
use serde_json::Value;
use tempfile::TempDir;

/// A tiny synthetic snapshot, made once.
pub static TINY: LazyLock<TempDir> = LazyLock::new(|| {
    let dir = TempDir::new().unwrap();
    synth::write(Version::N15, Size::Tiny, dir.path(), &|_, _| {}).unwrap();
    dir
});

/// The tiny network's weights with another `metadata.json`.
pub fn with_metadata(metadata: &Value) -> TempDir {
    let text = metadata.to_string();
    let dir = linked(TINY.path(), &[METADATA_FILE]);
    std::fs::create_dir_all(dir.path().join(METADATA_FILE).parent().unwrap()).unwrap();
    std::fs::write(dir.path().join(METADATA_FILE), text).unwrap();
    dir
}

/// A directory with links to everything in `source` but `without`, which are paths inside it.
pub fn linked(source: &Path, without: &[&str]) -> TempDir {
    let dir = TempDir::new().unwrap();
    for entry in source.canonicalize().unwrap().read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !without.iter().any(|file| Path::new(file).starts_with(&name)) {
            symlink(&path, dir.path().join(name)).unwrap();
        }
    }
    dir
}

pub fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub fn network(snapshot: &Snapshot) -> &gr00t_blackhole::checkpoint::n15::Config {
    match snapshot.network() {
        Network::N15(config) => config,
        other => panic!("not N1.5: {other:?}"),
    }
}
