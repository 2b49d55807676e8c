//! A hub with a repository, a cache of its own, and a watcher that remembers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use gr00t_blackhole::weights::cache::Cache;
use gr00t_blackhole::weights::fetch::{self, FetchError, Fetched, Options, Retry, Watcher};
use gr00t_blackhole::weights::hub;
use gr00t_blackhole::weights::lock::{FileEntry, HubFiles};

use crate::server::{Hub, REVISION, Stored};

pub const REPO: &str = "maker/model";
pub const SHARD: &str = "model-00001-of-00001.safetensors";
pub const SHARD_BYTES: usize = 3_000_001;

/// Bytes that repeat nowhere nearby.
pub fn content(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).max(1);
    let next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// A repository on a hub, and a cache.
pub struct Rig {
    pub hub: Hub,
    pub folder: tempfile::TempDir,
    pub wanted: HubFiles,
    pub shard: Stored,
    pub token: Option<hub::Token>,
    pub offline: bool,
    pub proxy: Option<String>,
}

impl Rig {
    pub fn new() -> Self {
        let hub = Hub::start();
        let shard = hub.put(REPO, SHARD, content(SHARD_BYTES, 1), true);
        hub.put(REPO, "config.json", b"{}\n".to_vec(), false);
        hub.put(REPO, "experiment_cfg/metadata.json", content(1000, 2), false);
        let files = ["config.json", "experiment_cfg/metadata.json", SHARD];
        let wanted = HubFiles {
            repo: REPO.to_owned(),
            revision: Some(REVISION.to_owned()),
            files: files.map(|file| (file.to_owned(), FileEntry::default())).into(),
        };
        let folder = tempfile::tempdir().expect("folder");
        Self { hub, folder, wanted, shard, token: None, offline: false, proxy: None }
    }

    pub fn cache(&self) -> Cache {
        Cache::new(self.folder.path().join("hub"))
    }

    pub fn repo_dir(&self) -> PathBuf {
        self.cache().repo(REPO).dir().to_owned()
    }

    pub fn blob(&self, suffix: &str) -> PathBuf {
        self.repo_dir().join("blobs").join(format!("{}{suffix}", self.shard.tag()))
    }

    pub fn snapshot(&self) -> PathBuf {
        self.cache().repo(REPO).snapshot(REVISION)
    }

    /// Puts the first bytes of the shard where an interrupted download leaves them.
    pub fn leave(&self, bytes: &[u8]) {
        std::fs::create_dir_all(self.repo_dir().join("blobs")).expect("folder");
        std::fs::write(self.blob(".incomplete"), bytes).expect("left");
    }

    pub fn fetch(&self) -> Result<Fetched, FetchError> {
        self.fetch_watched(&Notes::default())
    }

    pub fn fetch_watched(&self, watcher: &Notes) -> Result<Fetched, FetchError> {
        let hub = hub::Hub {
            endpoint: self.hub.address.clone(),
            token: self.token.clone(),
            offline: self.offline,
            proxy: self.proxy.as_deref().map(|proxy| ureq::Proxy::new(proxy).expect("proxy")),
        };
        let wait = Duration::from_millis(10);
        let options = Options { jobs: 3, retry: Retry { attempts: 3, first: wait, longest: wait } };
        fetch::fetch(&hub, &self.cache(), &self.wanted, &options, watcher)
    }

    /// The error of a fetch, and nothing of it in the snapshot.
    pub fn refused(&self) -> String {
        let error = self.fetch().expect_err("refused").to_string();
        assert!(!self.snapshot().join(SHARD).exists(), "{error}");
        error
    }

    /// Checks that everything is in its place.
    pub fn assert_whole(&self) {
        let read = |path: &Path| std::fs::read(path).expect("file");
        assert!(read(&self.snapshot().join(SHARD)) == *self.shard.bytes, "the shard differs");
        assert_eq!(read(&self.snapshot().join("config.json")), b"{}\n");
        let metadata = read(&self.snapshot().join("experiment_cfg/metadata.json"));
        assert!(metadata == content(1000, 2), "the metadata differ");
        let names = files_in(&self.repo_dir().join("blobs"));
        assert!(names.iter().all(|name| !name.contains("incomplete")), "{names:?}");
    }
}

pub fn files_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Remembers what a fetch tells.
#[derive(Default)]
pub struct Notes {
    pub lines: Mutex<Vec<String>>,
    pub positions: Mutex<BTreeMap<String, Vec<u64>>>,
}

impl Watcher for Notes {
    fn note(&self, line: &str) {
        self.lines.lock().expect("lines").push(line.to_owned());
    }

    fn planned(&self, _: &[(&str, u64)]) {}

    fn at(&self, file: &str, position: u64) {
        let mut positions = self.positions.lock().expect("positions");
        positions.entry(file.to_owned()).or_default().push(position);
    }

    fn end(&self, _: &str) {}
}
