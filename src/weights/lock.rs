//! `weights.lock`: of which files every released checkpoint consists, and which revision is meant.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::hash::{SHA1_DIGITS, SHA256_DIGITS, is_hex};
use crate::contract::Version;

/// The lock file that the program carries inside.
pub const BUILT_IN: &str = include_str!("../../weights.lock");

/// The environment variable that names another lock file.
pub const VARIABLE: &str = "GR00T_WEIGHTS_LOCK";

/// Largest lock file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A lock file, checked.
#[derive(Clone, Debug)]
pub struct Lock {
    origin: Origin,
    releases: BTreeMap<Version, Release>,
}

/// Where a lock file comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    BuiltIn,
    File(PathBuf),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::BuiltIn => f.write_str("the built-in weights.lock"),
            Origin::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A released checkpoint.
#[derive(Clone, Debug)]
pub struct Release {
    pub weights: HubFiles,
    /// Tensors of all shards.
    pub tensors: usize,
    /// Bytes of those tensors.
    pub tensor_bytes: u64,
    pub licence: Licence,
    pub tokenizer: Tokenizer,
}

/// Files of a repository on a hub.
#[derive(Clone, Debug)]
pub struct HubFiles {
    /// `owner/name`.
    pub repo: String,
    /// The commit; `None` while it is not known: then the main branch is meant.
    pub revision: Option<String>,
    /// Path inside the repository -> what is known of the file.
    pub files: BTreeMap<String, FileEntry>,
}

/// What is known of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Bytes.
    pub size: Option<u64>,
    /// Lower-case hexadecimal.
    pub sha256: Option<String>,
}

/// What one agrees to by fetching.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Licence {
    pub name: String,
    /// The file of the repository that has the terms.
    pub file: String,
    /// The gist, in one sentence.
    pub note: String,
}

/// Where the tokenizer files come from.
#[derive(Clone, Debug)]
pub enum Tokenizer {
    Hub(HubFiles),
    /// From somewhere that `weights fetch` does not reach.
    Elsewhere {
        place: String,
        files: BTreeMap<String, FileEntry>,
    },
}

/// Why a lock file is of no use.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("cannot read the lock file {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("the lock file {} has {bytes} bytes; at most {MAX_BYTES} are read", path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("{origin}: {message}")]
    Syntax { origin: Origin, message: String },
    #[error("{origin}: {key} is {found:?}; accepted: {accepted}")]
    Value { origin: Origin, key: String, found: String, accepted: &'static str },
    #[error("{origin} does not know {version}; it has: {known}")]
    Unknown { origin: Origin, version: Version, known: String },
}

/// The tables of the file, before they are checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    n15: Option<ReleaseTable>,
    n16: Option<ReleaseTable>,
    n17: Option<ReleaseTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleaseTable {
    repo: String,
    revision: String,
    tensors: usize,
    tensor_bytes: u64,
    files: BTreeMap<String, FileEntry>,
    licence: Licence,
    tokenizer: TokenizerTable,
}

/// With `repo` it is on a hub, with `place` elsewhere.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenizerTable {
    repo: Option<String>,
    revision: Option<String>,
    place: Option<String>,
    files: BTreeMap<String, FileEntry>,
}

impl Lock {
    /// The lock file that `file` names, else that of the environment variable [`VARIABLE`], else the built-in one.
    ///
    /// # Errors
    /// A file that cannot be read, or says something that is not understood.
    pub fn find(file: Option<&Path>) -> Result<Self, LockError> {
        match named(file) {
            Some(path) => Self::read(&path),
            None => Self::parse(BUILT_IN, Origin::BuiltIn),
        }
    }

    /// Reads a lock file.
    ///
    /// # Errors
    /// As [`Lock::find`].
    pub fn read(path: &Path) -> Result<Self, LockError> {
        Self::parse(&read_text(path)?, Origin::File(path.to_owned()))
    }

    /// Reads the text of a lock file.
    ///
    /// # Errors
    /// What is not understood, with its key or line.
    pub fn parse(text: &str, origin: Origin) -> Result<Self, LockError> {
        let tables: Tables = toml_edit::de::from_str(text).map_err(|error| {
            let message = error.to_string().trim_end().to_owned();
            LockError::Syntax { origin: origin.clone(), message }
        })?;
        let mut releases = BTreeMap::new();
        let Tables { n15, n16, n17 } = tables;
        for (version, table) in Version::ALL.into_iter().zip([n15, n16, n17]) {
            let Some(table) = table else { continue };
            let check = Check { origin: &origin, table: version.name().to_owned() };
            releases.insert(version, check.release(table)?);
        }
        Ok(Self { origin, releases })
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Every version that the file has, oldest first.
    pub fn versions(&self) -> impl Iterator<Item = Version> {
        self.releases.keys().copied()
    }

    /// # Errors
    /// The file does not have the version.
    pub fn release(&self, version: Version) -> Result<&Release, LockError> {
        self.releases.get(&version).ok_or_else(|| LockError::Unknown {
            origin: self.origin.clone(),
            version,
            known: self.versions().map(Version::name).collect::<Vec<_>>().join(", "),
        })
    }
}

/// The lock file that is named: `file`, or that of the environment variable [`VARIABLE`].
pub fn named(file: Option<&Path>) -> Option<PathBuf> {
    let variable = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    file.map(Path::to_owned).or(variable.map(PathBuf::from))
}

/// The text of a lock file.
///
/// # Errors
/// A file that cannot be read, or is too large to be one.
pub fn read_text(path: &Path) -> Result<String, LockError> {
    let io = |error| LockError::Io { path: path.to_owned(), error };
    let metadata = std::fs::metadata(path).map_err(io)?;
    if metadata.len() > MAX_BYTES {
        return Err(LockError::TooLarge { path: path.to_owned(), bytes: metadata.len() });
    }
    std::fs::read_to_string(path).map_err(io)
}

/// Checks the values of a table.
struct Check<'a> {
    origin: &'a Origin,
    table: String,
}

impl Check<'_> {
    fn refuse(&self, key: &str, found: &str, accepted: &'static str) -> LockError {
        LockError::Value {
            origin: self.origin.clone(),
            key: format!("{}.{key}", self.table),
            found: found.to_owned(),
            accepted,
        }
    }

    fn release(&self, table: ReleaseTable) -> Result<Release, LockError> {
        let ReleaseTable { repo, revision, tensors, tensor_bytes, files, licence, tokenizer } =
            table;
        Ok(Release {
            weights: self.hub_files(repo, Some(revision), files)?,
            tensors,
            tensor_bytes,
            licence,
            tokenizer: Check { origin: self.origin, table: format!("{}.tokenizer", self.table) }
                .tokenizer(tokenizer)?,
        })
    }

    fn tokenizer(&self, table: TokenizerTable) -> Result<Tokenizer, LockError> {
        let TokenizerTable { repo, revision, place, files } = table;
        match (repo, place) {
            (Some(repo), None) => Ok(Tokenizer::Hub(self.hub_files(repo, revision, files)?)),
            (None, Some(place)) if revision.is_none() => {
                self.files(&files)?;
                Ok(Tokenizer::Elsewhere { place, files })
            }
            (repo, place) => {
                let found = format!("repo {repo:?}, place {place:?}, revision {revision:?}");
                let accepted = "either a repo, with or without a revision, or a place";
                Err(self.refuse("repo", &found, accepted))
            }
        }
    }

    fn hub_files(
        &self,
        repo: String,
        revision: Option<String>,
        files: BTreeMap<String, FileEntry>,
    ) -> Result<HubFiles, LockError> {
        if !is_repo(&repo) {
            return Err(self.refuse("repo", &repo, "owner/name of letters, digits, '-', '_', '.'"));
        }
        if let Some(revision) = &revision
            && !(revision.len() == SHA1_DIGITS && is_hex(revision))
        {
            return Err(self.refuse("revision", revision, "a commit: 40 digits of 0-9, a-f"));
        }
        self.files(&files)?;
        Ok(HubFiles { repo, revision, files })
    }

    fn files(&self, files: &BTreeMap<String, FileEntry>) -> Result<(), LockError> {
        for (path, entry) in files {
            if !is_inside(path) {
                let accepted = "paths inside the repository, with '/' between their parts";
                return Err(self.refuse("files", path, accepted));
            }
            if let Some(sha256) = &entry.sha256
                && !(sha256.len() == SHA256_DIGITS && is_hex(sha256))
            {
                let key = format!("files.{path:?}.sha256");
                return Err(self.refuse(&key, sha256, "64 digits of 0-9, a-f"));
            }
        }
        Ok(())
    }
}

/// Whether a text is `owner/name`; it becomes part of a folder's name and of addresses.
fn is_repo(text: &str) -> bool {
    let plain = |part: &str| {
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !part.is_empty() && !part.starts_with('.') && part.chars().all(known)
    };
    text.split_once('/').is_some_and(|(owner, name)| plain(owner) && plain(name))
}

/// Whether a path stays in its folder.
fn is_inside(path: &str) -> bool {
    let plain = |part| matches!(part, Component::Normal(_));
    let written = Path::new(path).components().all(plain) && !path.contains(['\\', '\0']);
    // Components are told without '.' and doubled or trailing '/'.
    written && path.split('/').all(|part| !part.is_empty() && part != ".")
}

#[cfg(test)]
mod tests;
