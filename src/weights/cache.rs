//! The hub cache: `models--owner--name/{blobs,refs,snapshots/<revision>}`, as Python's `huggingface_hub` lays it out.
//!
//! A blob is named by the hub's entity tag, which is a hash of its content; the files of a snapshot are links to blobs.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::hash::{SHA1_DIGITS, is_hex};

/// The hub's branch that is meant where no revision is.
pub const MAIN: &str = "main";

/// Behind the name of a blob that is being downloaded.
const INCOMPLETE: &str = ".incomplete";
/// Behind the name of a link before it is moved to its place.
const NEW_LINK: &str = ".new-link";

/// Reads environment variables; tests put their own in place.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// A hub cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// The cache that this process' environment names.
    pub fn from_env() -> Self {
        Self::of(&|name| std::env::var_os(name))
    }

    /// `HF_HUB_CACHE`, else `HF_HOME/hub`, else the user's `.cache/huggingface/hub`, as an absolute path.
    pub fn of(lookup: Lookup<'_>) -> Self {
        let given = |name: &str| Some(expand(path_of(lookup, name)?, lookup));
        let root = given("HF_HUB_CACHE")
            .or_else(|| given("HUGGINGFACE_HUB_CACHE"))
            .unwrap_or_else(|| home_of_hub(lookup).join("hub"));
        // Without a current directory a relative path leads nowhere, absolute or not.
        Self { root: std::path::absolute(&root).unwrap_or(root) }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a repository `owner/name`.
    pub fn repo(&self, repo: &str) -> RepoCache {
        let name = repo_folder(repo);
        RepoCache { dir: self.root.join(&name), locks: self.root.join(".locks").join(name) }
    }
}

/// `HF_HOME`, where the token lies and the cache is: by default `huggingface` in the user's cache folder.
pub fn home_of_hub(lookup: Lookup<'_>) -> PathBuf {
    let caches = || {
        let default = || expand(PathBuf::from("~/.cache"), lookup);
        path_of(lookup, "XDG_CACHE_HOME").unwrap_or_else(default)
    };
    match path_of(lookup, "HF_HOME") {
        Some(home) => expand(home, lookup),
        None => caches().join("huggingface"),
    }
}

/// The path in a variable; one that is empty counts as not set.
fn path_of(lookup: Lookup<'_>, name: &str) -> Option<PathBuf> {
    lookup(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Puts the user's home in place of a leading `~`.
fn expand(path: PathBuf, lookup: Lookup<'_>) -> PathBuf {
    match (path.strip_prefix("~"), path_of(lookup, "HOME")) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
}

/// The part of the cache that belongs to one repository.
#[derive(Clone, Debug)]
pub struct RepoCache {
    dir: PathBuf,
    locks: PathBuf,
}

impl RepoCache {
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn blobs(&self) -> PathBuf {
        self.dir.join("blobs")
    }

    pub fn blob(&self, tag: &str) -> PathBuf {
        self.blobs().join(tag)
    }

    /// The part of a blob that has arrived.
    pub fn incomplete(&self, tag: &str) -> PathBuf {
        self.blobs().join(format!("{tag}{INCOMPLETE}"))
    }

    /// The file that is locked while a blob is downloaded, the same as Python's.
    pub fn lock_file(&self, tag: &str) -> PathBuf {
        self.locks.join(format!("{tag}.lock"))
    }

    pub fn snapshot(&self, revision: &str) -> PathBuf {
        self.dir.join("snapshots").join(revision)
    }

    /// The revision that a branch had when it was last looked at.
    pub fn revision_of(&self, branch: &str) -> Option<String> {
        let text = fs::read_to_string(self.dir.join("refs").join(branch)).ok()?;
        let revision = text.trim();
        (revision.len() == SHA1_DIGITS && is_hex(revision)).then(|| revision.to_owned())
    }

    /// Writes down which revision a branch has.
    ///
    /// # Errors
    /// What the file system reports, with the file.
    pub fn set_revision_of(
        &self,
        branch: &str,
        revision: &str,
    ) -> Result<(), (PathBuf, io::Error)> {
        let refs = self.dir.join("refs");
        let path = refs.join(branch);
        let new = refs.join(format!(".{branch}.{}", std::process::id()));
        let written = fs::create_dir_all(&refs)
            .and_then(|()| fs::write(&new, revision))
            .and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| (path, error))
    }

    /// Puts the blob into a snapshot as `file`, which may have folders: as a link, or where the file system has no links,
    /// as a file.
    ///
    /// # Errors
    /// What the file system reports, with the file.
    pub fn link(&self, revision: &str, file: &str, tag: &str) -> Result<(), (PathBuf, io::Error)> {
        let place = self.snapshot(revision).join(file);
        let failed = |error| (place.clone(), error);
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut name = place.file_name().unwrap_or_default().to_owned();
        name.push(format!("{NEW_LINK}.{}", std::process::id()));
        let new = place.with_file_name(name);
        // From the file's folder: up to `snapshots`, one more, and down to the blob.
        let up = "../".repeat(file.split('/').count() + 1);
        let blob = self.blob(tag);
        // A run that was killed may have left one.
        let _ = fs::remove_file(&new);
        let made = match std::os::unix::fs::symlink(format!("{up}blobs/{tag}"), &new) {
            Ok(()) => Ok(()),
            // Another name of the same file, or where there is neither, the file itself.
            Err(_) => fs::hard_link(&blob, &new).or_else(|_| fs::rename(&blob, &new)),
        };
        made.and_then(|()| fs::rename(&new, &place)).map_err(failed)
    }
}

/// The folder of a repository such as `nvidia/GR00T-N1.6-3B`.
pub fn repo_folder(repo: &str) -> String {
    format!("models--{}", repo.replace('/', "--"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(variables: &[(&str, &str)]) -> PathBuf {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        };
        Cache::of(&lookup).root
    }

    #[test]
    fn the_cache_is_where_python_has_it() {
        let home = ("HOME", "/home/me");
        assert_eq!(cache(&[home]), Path::new("/home/me/.cache/huggingface/hub"));
        assert_eq!(cache(&[home, ("XDG_CACHE_HOME", "/x")]), Path::new("/x/huggingface/hub"));
        assert_eq!(cache(&[home, ("HF_HOME", "/hf")]), Path::new("/hf/hub"));
        assert_eq!(cache(&[home, ("HF_HOME", "~/hf")]), Path::new("/home/me/hf/hub"));
        assert_eq!(cache(&[home, ("HF_HOME", "/hf"), ("HF_HUB_CACHE", "/c")]), Path::new("/c"));
        assert_eq!(cache(&[home, ("HF_HOME", "")]), Path::new("/home/me/.cache/huggingface/hub"));
        assert_eq!(cache(&[home, ("HUGGINGFACE_HUB_CACHE", "/old")]), Path::new("/old"));
    }

    #[test]
    fn a_relative_home_is_taken_from_the_current_directory() {
        let here = std::env::current_dir().expect("directory");
        assert_eq!(cache(&[("HF_HOME", "some/hf")]), here.join("some/hf/hub"));
    }

    #[test]
    fn links_lead_from_any_depth_to_the_blob() {
        let folder = tempfile::tempdir().expect("folder");
        let repo = Cache::new(folder.path().join("größe")).repo("owner/name");
        assert!(repo.dir().ends_with("models--owner--name"));
        fs::create_dir_all(repo.blobs()).expect("blobs");
        fs::write(repo.blob("tag"), "content").expect("blob");
        for file in ["plain", "one/deep", "one/two/deep"] {
            repo.link("0123", file, "tag").expect(file);
            repo.link("0123", file, "tag").expect("again");
            let text = fs::read_to_string(repo.snapshot("0123").join(file)).expect(file);
            assert_eq!(text, "content");
        }
    }

    #[test]
    fn the_main_branch_is_written_down_and_read() {
        let folder = tempfile::tempdir().expect("folder");
        let repo = Cache::new(folder.path().to_owned()).repo("owner/name");
        assert_eq!(repo.revision_of(MAIN), None);
        let revision = "0123456789abcdef0123456789abcdef01234567";
        repo.set_revision_of(MAIN, revision).expect("written");
        assert_eq!(repo.revision_of(MAIN).as_deref(), Some(revision));
        repo.set_revision_of(MAIN, "../../elsewhere").expect("written");
        assert_eq!(repo.revision_of(MAIN), None);
    }
}
