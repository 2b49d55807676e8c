//! Fetching files of a repository into the hub cache.
//!
//! Files are downloaded side by side, each from its first byte to its last into `<blob>.incomplete`, so that the next run goes on
//! where this one was interrupted. A blob comes to its place when its hash is right.

mod address;
mod blob;
mod claim;
mod error;
mod http;
mod http_error;
mod part;
mod pool;
mod retry;

use std::fs;
use std::path::{Path, PathBuf};

pub use error::FetchError;
pub use http_error::HttpError;
pub use retry::Retry;

use self::blob::{Wanted, Work};
use self::http::{Client, Remote};
use self::pool::{Stop, for_all};
use super::cache::{Cache, MAIN, RepoCache};
use super::hash::Content;
use super::hub::Hub;
use super::locate::missing;
use super::lock::{FileEntry, HubFiles};
use crate::disk;

/// Hears how far a fetch is, from several threads.
pub trait Watcher: Sync {
    /// Something that people may want to know.
    fn note(&self, line: &str);
    /// These files, with their sizes in bytes, are looked after from now on.
    fn planned(&self, files: &[(&str, u64)]);
    /// So many bytes of a file are there.
    fn at(&self, file: &str, position: u64);
    /// The file is in its place.
    fn end(&self, file: &str);
}

/// How to fetch.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Files that are downloaded at the same time.
    pub jobs: usize,
    pub retry: Retry,
}

impl Default for Options {
    fn default() -> Self {
        Self { jobs: 4, retry: Retry::default() }
    }
}

/// What was fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The folder with all files.
    pub snapshot: PathBuf,
    pub revision: String,
    /// Files that had to be downloaded.
    pub downloaded: usize,
}

/// Brings all files of `wanted` into the cache. Where they are there already, no network is used.
///
/// # Errors
/// What keeps a file from being fetched; what has arrived stays in the cache.
pub fn fetch(
    hub: &Hub,
    cache: &Cache,
    wanted: &HubFiles,
    options: &Options,
    watcher: &dyn Watcher,
) -> Result<Fetched, FetchError> {
    let repo_cache = cache.repo(&wanted.repo);
    let known = match &wanted.revision {
        Some(revision) => Some(revision.clone()),
        None if hub.offline => repo_cache.revision_of(MAIN),
        None => None,
    };
    if let Some(revision) = &known {
        let snapshot = repo_cache.snapshot(revision);
        if missing(&snapshot, &wanted.files).is_empty() {
            return Ok(Fetched { snapshot, revision: revision.clone(), downloaded: 0 });
        }
    }
    if hub.offline {
        return Err(offline(&repo_cache, wanted, known.as_deref()));
    }
    let (client, stop) = (Client::new(hub), Stop::default());
    let work = Work {
        client: &client,
        cache: &repo_cache,
        repo: &wanted.repo,
        retry: options.retry,
        watcher,
        stop: &stop,
    };
    let files = describe(&work, wanted, options.jobs)?;
    let Some(revision) = files.first().map(|file| file.remote.revision.clone()) else {
        let snapshot = repo_cache.snapshot(known.as_deref().unwrap_or(MAIN));
        return Ok(Fetched { snapshot, revision: known.unwrap_or_default(), downloaded: 0 });
    };
    require_room(cache.root(), &repo_cache, &files)?;
    let planned: Vec<_> = files.iter().map(|file| (file.path, file.remote.size)).collect();
    watcher.planned(&planned);
    let downloaded = for_all(options.jobs, &files, &stop, |file| work.fetch(file))?;
    write_down_main(&work, wanted, &revision);
    Ok(Fetched {
        snapshot: repo_cache.snapshot(&revision),
        revision,
        downloaded: downloaded.into_iter().filter(|downloaded| *downloaded).count(),
    })
}

fn offline(cache: &RepoCache, wanted: &HubFiles, revision: Option<&str>) -> FetchError {
    let dir = cache.snapshot(revision.unwrap_or(MAIN));
    let missing = missing(&dir, &wanted.files);
    FetchError::Offline { repo: wanted.repo.clone(), dir, missing }
}

/// Asks the hub what the files are, all of the same commit, and compares with what is known; the largest first.
fn describe<'a>(
    work: &Work<'_>,
    wanted: &'a HubFiles,
    jobs: usize,
) -> Result<Vec<Wanted<'a>>, FetchError> {
    let branch = wanted.revision.as_deref().unwrap_or(MAIN);
    let mut entries: Vec<(&str, &FileEntry)> =
        wanted.files.iter().map(|(path, entry)| (path.as_str(), entry)).collect();
    let Some((path, entry)) = entries.pop() else { return Ok(Vec::new()) };
    let first = describe_one(work, branch, path, entry, wanted.revision.as_deref())?;
    let commit = first.remote.revision.clone();
    let others = for_all(jobs, &entries, work.stop, |(path, entry)| {
        describe_one(work, &commit, path, entry, Some(&commit))
    })?;
    let mut files: Vec<Wanted<'_>> = others.into_iter().chain([first]).collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.remote.size));
    Ok(files)
}

fn describe_one<'a>(
    work: &Work<'_>,
    asked: &str,
    path: &'a str,
    entry: &'a FileEntry,
    commit: Option<&str>,
) -> Result<Wanted<'a>, FetchError> {
    let remote = work.retried(path, || work.client.describe(work.repo, asked, path))?;
    let (repo, file) = (work.repo.to_owned(), path.to_owned());
    if let Some(wanted) = commit.filter(|commit| *commit != remote.revision) {
        let (wanted, found) = (wanted.to_owned(), remote.revision);
        return Err(FetchError::OtherRevision { repo, file, wanted, found });
    }
    if let Some(expected) = entry.size.filter(|size| *size != remote.size) {
        let found = remote.size;
        return Err(FetchError::SizeNotLocked { repo, file, expected, found });
    }
    if let (Some(expected), Some(Content::Sha256(found))) =
        (&entry.sha256, Content::of_tag(&remote.tag))
        && *expected != found
    {
        let expected = expected.clone();
        return Err(FetchError::HashNotLocked { repo, file, expected, found });
    }
    Ok(Wanted { path, entry, remote })
}

/// Refuses to begin what the disk cannot hold.
fn require_room(root: &Path, cache: &RepoCache, files: &[Wanted<'_>]) -> Result<(), FetchError> {
    let failed = |error| FetchError::io(root.to_owned(), error);
    fs::create_dir_all(root).map_err(failed)?;
    let length = |path: PathBuf| fs::metadata(path).map_or(0, |metadata| metadata.len());
    let to_come = |file: &Wanted<'_>| {
        let Remote { tag, size, .. } = &file.remote;
        let there = length(cache.blob(tag)).max(length(cache.incomplete(tag)));
        size.saturating_sub(there)
    };
    let needed = files.iter().map(to_come).sum();
    let free = disk::free_bytes(root).map_err(failed)?;
    if needed > free {
        return Err(FetchError::NoRoom { path: root.to_owned(), needed, free });
    }
    Ok(())
}

/// Writes down which commit the main branch is, where the cache does not know and the hub says that it is this one, so that
/// programs that ask for no revision find it offline.
fn write_down_main(work: &Work<'_>, wanted: &HubFiles, revision: &str) {
    let is_main = || match wanted.files.keys().next() {
        Some(file) => {
            let described = work.client.describe(work.repo, MAIN, file);
            described.is_ok_and(|remote| remote.revision == revision)
        }
        None => false,
    };
    let asked_for_main = wanted.revision.is_none();
    if asked_for_main || (work.cache.revision_of(MAIN).is_none() && is_main()) {
        // Without it the snapshot is found by its revision, as this program does.
        let _ = work.cache.set_revision_of(MAIN, revision);
    }
}
