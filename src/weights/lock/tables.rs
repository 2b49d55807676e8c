//! The tables of a lock file as they are written, and the checks that make releases of them.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::Deserialize;

use super::{FileEntry, HubFiles, Licence, LockError, Origin, Release, Tokenizer};
use crate::contract::Version;
use crate::weights::hash::{SHA1_DIGITS, SHA256_DIGITS, is_hex};

/// Reads and checks the text of a lock file.
pub fn read(text: &str, origin: &Origin) -> Result<BTreeMap<Version, Release>, LockError> {
    let tables: Tables = toml_edit::de::from_str(text).map_err(|error| {
        let message = error.to_string().trim_end().to_owned();
        LockError::Syntax { origin: origin.clone(), message }
    })?;
    let mut releases = BTreeMap::new();
    let Tables { n15, n16, n17 } = tables;
    for (version, table) in Version::ALL.into_iter().zip([n15, n16, n17]) {
        let Some(table) = table else { continue };
        let check = Check { origin, table: version.name().to_owned() };
        releases.insert(version, check.release(table)?);
    }
    Ok(releases)
}

/// The tables of the file.
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
