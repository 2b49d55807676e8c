//! The kernels and the worker that belong to this binary. It carries them, so that they are never those of another version.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, File, include_dir};
use tempfile::TempDir;

use super::DeviceError;

static KERNELS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/kernels");
static WORKER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/device/gr00t_device_worker");

/// Folder of the package, as Python imports it.
const PACKAGE: &str = "gr00t_device_worker";

/// Kernels and worker as files.
pub struct Assets {
    dir: PathBuf,
    /// Removed with the process, where there is no directory that outlives it.
    _temporary: Option<TempDir>,
}

impl Assets {
    /// Unpacks them into a folder of `cache`, unless they are there.
    pub fn unpack(cache: Option<&Path>) -> Result<Self, DeviceError> {
        match cache {
            Some(cache) => {
                let dir = cache.join(format!("device-{}", hash()));
                let failed = |error| DeviceError::Unpack { dir: dir.clone(), error };
                fill(&dir).map_err(failed)?;
                Ok(Self { dir, _temporary: None })
            }
            None => {
                let made = tempfile::Builder::new().prefix("gr00t_blackhole_device").tempdir();
                let dir = std::env::temp_dir();
                let made = made.map_err(|error| DeviceError::Unpack { dir, error })?;
                let dir = made.path().to_owned();
                let failed = |error| DeviceError::Unpack { dir: dir.clone(), error };
                fill(&dir).map_err(failed)?;
                Ok(Self { dir, _temporary: Some(made) })
            }
        }
    }

    /// Source of a kernel.
    pub fn kernel(&self, name: &str) -> PathBuf {
        self.dir.join("kernels").join(name)
    }

    /// Where Python finds the worker.
    pub fn python_path(&self) -> &Path {
        &self.dir
    }

    /// For what tt-metal compiles.
    pub fn compiled(&self) -> PathBuf {
        self.dir.join("compiled")
    }
}

/// Writes every file that is not there as it should be, each whole.
fn fill(dir: &Path) -> io::Result<()> {
    for (folder, path, contents) in files() {
        let path = dir.join(folder).join(path);
        if fs::read(&path).is_ok_and(|found| found == contents) {
            continue;
        }
        let parent = path.parent().unwrap_or(dir);
        fs::create_dir_all(parent)?;
        crate::whole::write(&path, contents)?;
    }
    Ok(())
}

/// What they are, in a few letters.
fn hash() -> String {
    let mut hasher = blake3::Hasher::new();
    for (folder, path, contents) in files() {
        hasher.update(folder.as_bytes());
        hasher.update(path.as_os_str().as_encoded_bytes());
        hasher.update(&(contents.len() as u64).to_le_bytes());
        hasher.update(contents);
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// Folder, path in it and contents.
fn files() -> impl Iterator<Item = (&'static str, &'static Path, &'static [u8])> {
    let of = |folder, dir: &'static Dir<'static>, kinds: &'static [&'static str]| {
        let mut found = Vec::new();
        collect(dir, &mut found);
        let wanted = move |file: &&File<'_>| {
            let kind = file.path().extension().and_then(|kind| kind.to_str());
            kind.is_some_and(|kind| kinds.contains(&kind)) && !file.path().starts_with("tests")
        };
        let files: Vec<_> = found.into_iter().filter(wanted).collect();
        files.into_iter().map(move |file| (folder, file.path(), file.contents()))
    };
    of("kernels", &KERNELS, &["h", "cpp"]).chain(of(PACKAGE, &WORKER, &["py"]))
}

fn collect(dir: &'static Dir<'static>, found: &mut Vec<&'static File<'static>>) {
    found.extend(dir.files());
    dir.dirs().for_each(|dir| collect(dir, found));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unpacked_is_whole_however_often() {
        let cache = tempfile::tempdir().expect("a folder");
        let first = Assets::unpack(Some(cache.path())).expect("unpacked");
        let mover = first.kernel("mover.cpp");
        let contents = fs::read(&mover).expect("the mover");
        fs::write(&mover, &contents[..contents.len() / 2]).expect("cut");
        let second = Assets::unpack(Some(cache.path())).expect("unpacked again");
        assert_eq!(second.kernel("mover.cpp"), mover);
        assert_eq!(fs::read(&mover).expect("the mover"), contents);
        assert!(second.python_path().join(PACKAGE).join("__main__.py").exists());
        assert!(!second.kernel("tests").exists());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("file");
        fs::write(&file, "x").expect("a file");
        let Err(error) = Assets::unpack(Some(&file)) else { panic!("unpacked into a file") };
        let text = error.to_string();
        assert!(text.contains("file") && text.contains("GR00T_CACHE_DIR"), "{text}");
    }
}
