//! Finding a released checkpoint and its tokenizer in the hub cache, by the lock file and without the network.

use std::fs;
use std::path::{Path, PathBuf};

use super::cache::{Cache, MAIN};
use super::hash::Content;
use super::lock::{FileEntry, HubFiles, Lock, LockError, Tokenizer};
use crate::contract::Version;

/// Why there is no released checkpoint to load.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(
        "{} does not exist: {repo} is not in the hub cache; fetch it with `gr00t_blackhole weights fetch --version {version}`, \
         or name a snapshot directory",
        dir.display()
    )]
    Absent { version: Version, repo: String, dir: PathBuf },
    #[error(
        "{} is not whole: {}; run `gr00t_blackhole weights fetch --version {version}`", dir.display(), missing.join(", ")
    )]
    Incomplete { version: Version, dir: PathBuf, missing: Vec<String> },
}

/// The snapshot of a released checkpoint.
///
/// # Errors
/// It is not in the cache, or not whole; the text has the path and what to do.
pub fn snapshot(lock: &Lock, cache: &Cache, version: Version) -> Result<PathBuf, LocateError> {
    let release = lock.release(version)?;
    let dir = folder(cache, &release.weights);
    if !dir.is_dir() {
        return Err(LocateError::Absent { version, repo: release.weights.repo.clone(), dir });
    }
    // The terms are no part of the network, and other tools may leave them out.
    let needed = release.weights.files.iter().filter(|(path, _)| **path != release.licence.file);
    let missing = missing(&dir, needed);
    if missing.is_empty() {
        Ok(dir)
    } else {
        Err(LocateError::Incomplete { version, dir, missing })
    }
}

/// The folder of a version's tokenizer files, if they come from a hub and are all in the cache.
///
/// # Errors
/// The lock file does not know the version.
pub fn tokenizer(
    lock: &Lock,
    cache: &Cache,
    version: Version,
) -> Result<Option<PathBuf>, LockError> {
    let Tokenizer::Hub(files) = &lock.release(version)?.tokenizer else { return Ok(None) };
    let dir = folder(cache, files);
    Ok(missing(&dir, &files.files).is_empty().then_some(dir))
}

/// How one gets the tokenizer files of a version.
///
/// # Errors
/// The lock file does not know the version.
pub fn tokenizer_hint(lock: &Lock, version: Version) -> Result<String, LockError> {
    Ok(match &lock.release(version)?.tokenizer {
        Tokenizer::Hub(files) => format!(
            "they come from {}; fetch them with `gr00t_blackhole weights fetch --version {version}`",
            files.repo
        ),
        Tokenizer::Elsewhere { place, files } => {
            let names: Vec<&str> = files.keys().map(String::as_str).collect();
            format!(
                "they are not on the hub; copy {} from the {place} into a folder, and name it as the tokenizer",
                names.join(", ")
            )
        }
    })
}

/// Where the files of a repository are looked for.
pub fn folder(cache: &Cache, files: &HubFiles) -> PathBuf {
    let repo = cache.repo(&files.repo);
    let revision = files.revision.clone().or_else(|| repo.revision_of(MAIN));
    repo.snapshot(revision.as_deref().unwrap_or(MAIN))
}

/// Files that are not in `dir`, or not of the size that is known, each with what is wrong.
pub fn missing<'a>(
    dir: &Path,
    files: impl IntoIterator<Item = (&'a String, &'a FileEntry)>,
) -> Vec<String> {
    let fault = |(path, entry): (&String, &FileEntry)| match fs::metadata(dir.join(path)) {
        Ok(metadata) if !metadata.is_file() => Some(format!("{path} is no file")),
        Ok(_) if names_other_content(&dir.join(path), entry) => {
            Some(format!("{path} has another hash than the lock file"))
        }
        Ok(metadata) => {
            let expected = entry.size.filter(|size| *size != metadata.len())?;
            Some(format!("{path} has {} of {expected} bytes", metadata.len()))
        }
        Err(_) => Some(format!("{path} is missing")),
    };
    files.into_iter().filter_map(fault).collect()
}

/// Whether a file of a hub cache is a link to a blob whose name is another hash than the known one.
fn names_other_content(path: &Path, entry: &FileEntry) -> bool {
    let Some(known) = &entry.sha256 else { return false };
    let blob = fs::read_link(path).ok();
    let name = blob.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    matches!(name.and_then(Content::of_tag), Some(Content::Sha256(found)) if found != *known)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::weights::lock::{BUILT_IN, Origin};

    fn lock() -> Lock {
        Lock::parse(BUILT_IN, Origin::BuiltIn).expect("lock")
    }

    /// A cache with these files of N1.5, each of one byte.
    fn cache(files: &[&str]) -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().expect("folder");
        let cache = Cache::new(folder.path().to_owned());
        let weights = &lock().release(Version::N15).expect("n15").weights.clone();
        for file in files {
            let path = super::folder(&cache, weights).join(file);
            fs::create_dir_all(path.parent().expect("folder")).expect("folder");
            fs::write(path, "x").expect("file");
        }
        (folder, cache)
    }

    fn files_of_n15() -> Vec<String> {
        lock().release(Version::N15).expect("n15").weights.files.keys().cloned().collect()
    }

    #[test]
    fn a_whole_snapshot_is_found_with_or_without_its_licence() {
        let all = files_of_n15();
        let (_folder, whole) = cache(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let dir = snapshot(&lock(), &whole, Version::N15).expect("whole");
        assert!(dir.ends_with("snapshots/869830fc749c35f34771aa5209f923ac57e4564e"));
        let without = all.iter().map(String::as_str).filter(|file| *file != "LICENSE");
        let (_folder, cache) = cache(&without.collect::<Vec<_>>());
        snapshot(&lock(), &cache, Version::N15).expect("whole");
    }

    #[test]
    fn what_is_not_there_is_told_with_path_and_command() {
        let (folder, empty) = cache(&[]);
        let message = snapshot(&lock(), &empty, Version::N15).expect_err("absent").to_string();
        let path = folder.path().join("models--nvidia--GR00T-N1.5-3B/snapshots");
        assert!(message.starts_with(&path.display().to_string()), "{message}");
        assert!(message.contains("weights fetch --version n15"), "{message}");

        let (_folder, partial) = cache(&["config.json", "model-00001-of-00003.safetensors"]);
        let message = snapshot(&lock(), &partial, Version::N15).expect_err("partial").to_string();
        assert!(message.contains("model-00002-of-00003.safetensors is missing"), "{message}");
        assert!(!message.contains("LICENSE"), "{message}");
    }

    #[test]
    fn a_link_to_another_content_is_missing() {
        let folder = tempfile::tempdir().expect("folder");
        let blob = |digit: &str| digit.repeat(64);
        for digit in ["a", "b"] {
            fs::write(folder.path().join(blob(digit)), "x").expect("blob");
            let link = folder.path().join(format!("linked-{digit}"));
            std::os::unix::fs::symlink(folder.path().join(blob(digit)), link).expect("link");
        }
        let entry = FileEntry { size: Some(1), sha256: Some(blob("a")) };
        let files = ["a", "b"].map(|digit| (format!("linked-{digit}"), entry.clone()));
        let files = BTreeMap::from(files);
        let faults = missing(folder.path(), &files);
        assert_eq!(faults, ["linked-b has another hash than the lock file"]);
    }

    #[test]
    fn a_file_of_another_size_is_missing() {
        let folder = tempfile::tempdir().expect("folder");
        fs::write(folder.path().join("a"), "12").expect("file");
        fs::create_dir(folder.path().join("b")).expect("folder");
        let entry = |size| FileEntry { size, sha256: None };
        let files: BTreeMap<String, FileEntry> =
            [("a", entry(Some(3))), ("b", entry(None)), ("c", entry(None))]
                .map(|(name, entry)| (name.to_owned(), entry))
                .into();
        let expected = ["a has 2 of 3 bytes", "b is no file", "c is missing"];
        assert_eq!(missing(folder.path(), &files), expected);
    }
}
