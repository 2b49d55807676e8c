//! Licences are shown before the first download and accepted once; the acceptance is kept beside the repository's files in the
//! cache, and goes with them.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use super::cache::RepoCache;
use super::hub::Hub;
use super::lock::{HubFiles, Licence};

/// File in the repository's folder of the cache.
const RECORD: &str = "licence-accepted.txt";

/// A licence, with where one reads it.
#[derive(Debug)]
pub struct Terms<'a> {
    licence: &'a Licence,
    files: &'a HubFiles,
    address: String,
    record: PathBuf,
}

impl<'a> Terms<'a> {
    pub fn new(hub: &Hub, cache: &RepoCache, files: &'a HubFiles, licence: &'a Licence) -> Self {
        let revision = files.revision.as_deref().unwrap_or(super::cache::MAIN);
        let address = format!("{}/{}/blob/{revision}/{}", hub.endpoint, files.repo, licence.file);
        Self { licence, files, address, record: cache.dir().join(RECORD) }
    }

    /// What is to be read before it is accepted.
    pub fn text(&self) -> String {
        format!("{}\nThe terms: {}", self.gist(), self.address)
    }

    fn gist(&self) -> String {
        let Licence { name, note, .. } = self.licence;
        format!("{} is under the {name}: {note}", self.files.repo)
    }

    /// Whether these terms have been accepted.
    pub fn accepted(&self) -> bool {
        // Terms that have changed are accepted anew.
        fs::read_to_string(&self.record).is_ok_and(|text| text.lines().next() == Some(&self.gist()))
    }

    /// Remembers that they are accepted.
    ///
    /// # Errors
    /// What the file system reports, with the file.
    pub fn accept(&self) -> Result<(), (PathBuf, io::Error)> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let text = format!("{}\nAccepted at Unix time {time}.\n", self.text());
        let folder = self.record.parent().map_or(Ok(()), fs::create_dir_all);
        let written = folder.and_then(|()| fs::write(&self.record, text));
        written.map_err(|error| (self.record.clone(), error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Version;
    use crate::weights::cache::Cache;
    use crate::weights::lock::{BUILT_IN, Lock, Origin};

    #[test]
    fn an_acceptance_is_remembered_and_ends_when_the_terms_change() {
        let folder = tempfile::tempdir().expect("folder");
        let lock = Lock::parse(BUILT_IN, Origin::BuiltIn).expect("lock");
        let release = lock.release(Version::N16).expect("n16");
        let hub = Hub::of(&|_| None).expect("hub");
        let cache = Cache::new(folder.path().to_owned()).repo(&release.weights.repo);
        let terms = Terms::new(&hub, &cache, &release.weights, &release.licence);
        assert!(terms.text().contains("Non-commercial"), "{}", terms.text());
        assert!(terms.text().contains("/blob/d0814e7e"), "{}", terms.text());
        assert!(!terms.accepted());
        terms.accept().expect("written");
        assert!(terms.accepted());
        let licence = Licence { note: "Other terms.".to_owned(), ..release.licence.clone() };
        assert!(!Terms::new(&hub, &cache, &release.weights, &licence).accepted());
    }
}
