//! The files of a comparison.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::report::Report;
use super::{FidelityError, picture};
use crate::plot::encode_png;
use crate::whole;

pub const REPORT_FILE: &str = "fidelity.json";
pub const PICTURE_FILE: &str = "fidelity.png";

/// The folder of a report: there, and one that can be written, before the work begins. One that was made for it goes
/// again if nothing comes to lie in it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    is_new: bool,
}

impl Folder {
    /// # Errors
    /// It is no folder, cannot be made, or not be written.
    pub fn open(path: &Path) -> Result<Self, FidelityError> {
        let failed = |error| FidelityError::Write { path: path.to_owned(), error };
        if path.exists() && !path.is_dir() {
            return Err(failed(io::Error::other("this is no folder")));
        }
        let is_new = !path.exists();
        fs::create_dir_all(path).map_err(failed)?;
        let folder = Self { path: path.to_owned(), is_new };
        // Gone as soon as it is there.
        tempfile::tempfile_in(path).map_err(failed)?;
        Ok(folder)
    }

    /// Writes report and picture; files of these names are replaced. Gives what it has written.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn write(&self, report: &Report) -> Result<[PathBuf; 2], FidelityError> {
        let path = self.path.join(REPORT_FILE);
        let failed = |error| FidelityError::Write { path: path.clone(), error };
        let text = serde_json::to_string_pretty(report).map_err(|error| failed(error.into()))?;
        whole::write(&path, (text + "\n").as_bytes()).map_err(failed)?;
        let picture = self.path.join(PICTURE_FILE);
        encode_png(&picture::draw(report)?, &picture)?;
        Ok([path, picture])
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_new {
            // Only an empty one can be removed so.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_again_if_it_was_made_for_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (new, old) = (place.path().join("new"), place.path().join("old"));
        fs::create_dir(&old).unwrap();
        for path in [&new, &old] {
            let folder = Folder::open(path).unwrap();
            assert_eq!(fs::read_dir(path).unwrap().count(), 0);
            drop(folder);
        }
        assert!(!new.exists() && old.is_dir());
        let folder = Folder::open(&new).unwrap();
        fs::write(new.join("file"), "").unwrap();
        drop(folder);
        assert!(new.join("file").is_file());
    }

    #[test]
    fn what_is_no_folder_is_refused_by_name() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Folder::open(&file).expect_err("a file").to_string();
        assert!(error.contains("no folder") && error.ends_with("with --out"), "{error}");
        assert!(Folder::open(&file.join("below")).is_err());
        // Nothing can be made in it, whoever asks.
        assert!(Folder::open(Path::new("/proc/self")).is_err());
    }
}
