//! The directory of entries.

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tracing::{info, warn};

use super::file;
use super::{Key, Values};
use crate::whole::{self, PARTIAL};

/// Entries that are kept; of more, those that were written first go. A full-size one takes 2 MB.
const MAX_ENTRIES: usize = 32;
/// A larger file is no entry.
const MAX_ENTRY_BYTES: u64 = 256 << 20;
const EXTENSION: &str = "prepared";

/// The value of the environment variable, and of the node's parameter, for no cache at all.
pub const NO_CACHE: &str = "none";

/// The user's cache: `$GR00T_CACHE_DIR` unless that is [`NO_CACHE`], or `gr00t_blackhole` in `$XDG_CACHE_HOME` or `~/.cache`; `None` without a home.
pub fn default_dir() -> Option<PathBuf> {
    let given = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let in_home = || Some(given("HOME")?.join(".cache"));
    match given("GR00T_CACHE_DIR") {
        Some(dir) => Some(dir).filter(|dir| dir.as_os_str() != NO_CACHE),
        None => Some(given("XDG_CACHE_HOME").or_else(in_home)?.join("gr00t_blackhole")),
    }
}

/// Entries in a directory that several processes may share; or none at all.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    dir: Option<PathBuf>,
}

impl Cache {
    /// A cache in `dir`, which is made when something is kept; without one, nothing is kept.
    pub fn new(dir: Option<PathBuf>) -> Self {
        Self { dir }
    }

    /// Where entries are kept, if they are.
    pub fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// Whether entries are kept.
    pub fn is_on(&self) -> bool {
        self.dir.is_some()
    }

    /// The values of a key: read, or else computed, and kept for the next time. Tells whether they were read.
    ///
    /// # Errors
    /// Those of `compute`; the cache itself has none.
    pub fn get_or<E>(
        &self,
        key: &Key,
        compute: impl FnOnce() -> Result<Values, E>,
    ) -> Result<(Values, bool), E> {
        if let Some(values) = self.read(key) {
            return Ok((values, true));
        }
        let values = compute()?;
        self.keep(key, &values);
        Ok((values, false))
    }

    fn path(&self, key: &Key) -> Option<PathBuf> {
        Some(self.dir.as_ref()?.join(format!("{key}.{EXTENSION}")))
    }

    fn read(&self, key: &Key) -> Option<Values> {
        let path = self.path(key)?;
        let read = fs::metadata(&path).and_then(|about| match about.len() {
            ..=MAX_ENTRY_BYTES if about.is_file() => fs::read(&path),
            bytes => Err(io::Error::other(format!("it is no file, or too large: {bytes} bytes"))),
        });
        let reason = match read {
            Ok(bytes) => match file::decode(key, &bytes) {
                Ok(values) => return Some(values),
                Err(damage) => damage.to_string(),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => error.to_string(),
        };
        warn!("{} is of no use and is computed anew: {reason}", path.display());
        None
    }

    fn keep(&self, key: &Key, values: &Values) {
        let Some((dir, path)) = self.dir.as_deref().zip(self.path(key)) else { return };
        match write(dir, &path, &file::encode(key, values)) {
            Ok(()) => tidy(dir),
            // A read-only home is nothing unusual.
            Err(error) => info!(
                "prepared values cannot be kept in {} (GR00T_CACHE_DIR) and are computed at every start: {error}",
                dir.display()
            ),
        }
    }
}

/// Puts a file in its place whole, whoever else does the same.
fn write(dir: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let mut file = whole::partial_in(dir, PARTIAL)?;
    file.write_all(bytes)?;
    file.as_file().sync_data()?;
    file.persist(path)?;
    Ok(())
}

/// Removes the oldest entries of too many, and what killed processes have left.
fn tidy(dir: &Path) {
    whole::remove_abandoned(dir, PARTIAL);
    let Ok(found) = fs::read_dir(dir) else { return };
    let mut entries: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in found.flatten() {
        let Ok(modified) = entry.metadata().and_then(|about| about.modified()) else { continue };
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            entries.push((modified, path));
        }
    }
    entries.sort();
    let surplus = entries.len().saturating_sub(MAX_ENTRIES);
    for (_, path) in &entries[..surplus] {
        // Somebody else may have been faster.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    use super::*;
    use crate::checkpoint::synth::{self, Size};
    use crate::checkpoint::{Network, Snapshot};
    use crate::contract::Version;
    use crate::program::{ModelPrograms, n16};

    /// Some key; `vectors` makes different ones.
    fn some_key(vectors: &str) -> Key {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("tiny");
        synth::write(Version::N16, Size::Tiny, &dir, &|_, _| {}).unwrap();
        let snapshot = Snapshot::open(&dir).unwrap();
        let Network::N16(config, _) = snapshot.network() else { panic!("not N1.6") };
        let model = n16::Model { config: config.clone(), slot: 2 };
        let program = model.prepare(snapshot.tensors()).unwrap();
        super::super::key(&program, snapshot.tensors(), vectors).unwrap()
    }

    fn values(number: f32) -> Values {
        Values::from([("a".to_owned(), vec![number, -0.0, 1e-42]), ("b".to_owned(), vec![])])
    }

    fn get(cache: &Cache, key: &Key, number: f32) -> (Values, bool) {
        cache.get_or(key, || Ok::<_, Infallible>(values(number))).unwrap()
    }

    #[test]
    fn values_are_computed_once_and_read_to_the_bit() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(dir.path().join("not/there/yet")));
        let (key, other) = (some_key("a"), some_key("b"));
        assert_eq!((key, key == other), (some_key("a"), false));
        assert_eq!(get(&cache, &key, 1.0), (values(1.0), false));
        let (read, warm) = get(&cache, &key, 2.0);
        assert!(warm);
        let bits = |values: &Values| values["a"].iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&read), bits(&values(1.0)));
        assert_eq!(get(&cache, &other, 3.0), (values(3.0), false));
    }

    #[test]
    fn damage_of_any_byte_and_any_cut_is_found_and_mended() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(dir.path().to_owned()));
        let key = some_key("");
        get(&cache, &key, 1.0);
        let path = cache.path(&key).unwrap();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            assert_eq!(get(&cache, &key, 1.0), (values(1.0), false), "byte {at}");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(get(&cache, &key, 1.0), (values(1.0), false), "cut at {at}");
            assert!(get(&cache, &key, 1.0).1, "mended after {at}");
        }
    }

    #[test]
    fn a_directory_that_cannot_be_used_costs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let in_the_way = dir.path().join("file");
        fs::write(&in_the_way, "").unwrap();
        let read_only = dir.path().join("read-only");
        fs::create_dir(&read_only).unwrap();
        fs::set_permissions(&read_only, fs::Permissions::from_mode(0o555)).unwrap();
        let key = some_key("");
        for cache in [Some(in_the_way.join("below")), Some(read_only), None].map(Cache::new) {
            assert_eq!(get(&cache, &key, 1.0), (values(1.0), false));
        }
        let cache = Cache::new(Some(dir.path().to_owned()));
        fs::create_dir(cache.path(&key).unwrap()).unwrap();
        assert_eq!(get(&cache, &key, 1.0), (values(1.0), false));
    }

    #[test]
    fn the_newest_entries_stay() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..MAX_ENTRIES + 5 {
            let path = dir.path().join(format!("{number:03}.{EXTENSION}"));
            fs::write(&path, "").unwrap();
            let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(number as u64);
            fs::File::open(&path).unwrap().set_modified(modified).unwrap();
        }
        let partial = dir.path().join(format!("{PARTIAL}x"));
        fs::write(&partial, "").unwrap();
        fs::File::open(&partial).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        let cache = Cache::new(Some(dir.path().to_owned()));
        get(&cache, &some_key(""), 1.0);
        let entries = fs::read_dir(dir.path()).unwrap().flatten();
        let mut left: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        left.sort();
        assert_eq!(left.len(), MAX_ENTRIES);
        assert!(!partial.exists() && !dir.path().join("005.prepared").exists());
        assert!(dir.path().join("006.prepared").exists());
    }
}
