//! `weights.lock`: of which files every released checkpoint consists, and which revision is meant.

mod tables;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::contract::Version;
use crate::regular;

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
        let releases = tables::read(text, &origin)?;
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
    regular::read_text(path, MAX_BYTES).map_err(io)
}

#[cfg(test)]
mod tests;
