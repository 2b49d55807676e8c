//! The part of a blob that has arrived, and its hash so far.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::FetchError;
use super::pool::Stop;
use crate::weights::hash::{Content, Hasher, Hashes};

const READ_BYTES: usize = 1 << 20;

/// A file that grows until it is a blob.
pub struct Part {
    file: File,
    path: PathBuf,
    size: u64,
    content: Option<Content>,
    length: u64,
    hasher: Hasher,
}

impl Part {
    /// Opens the part of a content of `size` bytes and hashes what an earlier run has left. Where there is more than the whole,
    /// or nothing says which content it was, it begins anew.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn open(
        path: &Path,
        size: u64,
        content: Option<&Content>,
        stop: &Stop,
    ) -> Result<Self, FetchError> {
        let failed = |error| FetchError::io(path.to_owned(), error);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let file = options.open(path).map_err(failed)?;
        let left = file.metadata().map_err(failed)?.len();
        let hasher = Hasher::new(content, size);
        let content = content.cloned();
        let mut part = Self { file, path: path.to_owned(), size, content, length: 0, hasher };
        if left > size || part.content.is_none() {
            part.restart()?;
        } else {
            part.hash_left(left, stop)?;
        }
        Ok(part)
    }

    fn hash_left(&mut self, left: u64, stop: &Stop) -> Result<(), FetchError> {
        let mut buffer = vec![0; READ_BYTES];
        while self.length < left {
            stop.check()?;
            let count = match self.file.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.failed(error)),
            };
            self.hasher.update(&buffer[..count]);
            self.length += count as u64;
        }
        Ok(())
    }

    fn failed(&self, error: io::Error) -> FetchError {
        FetchError::io(self.path.clone(), error)
    }

    /// Bytes that are there.
    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn is_whole(&self) -> bool {
        self.length == self.size
    }

    /// Throws away what is there.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn restart(&mut self) -> Result<(), FetchError> {
        let emptied = self.file.set_len(0).and_then(|()| self.file.seek(SeekFrom::Start(0)));
        emptied.map_err(|error| self.failed(error))?;
        self.length = 0;
        self.hasher = Hasher::new(self.content.as_ref(), self.size);
        Ok(())
    }

    /// # Errors
    /// What the file system reports.
    pub fn append(&mut self, piece: &[u8]) -> Result<(), FetchError> {
        self.file.write_all(piece).map_err(|error| self.failed(error))?;
        self.hasher.update(piece);
        self.length += piece.len() as u64;
        Ok(())
    }

    /// The hashes of the whole.
    pub fn hashes(&mut self) -> Hashes {
        let hasher = Hasher::new(self.content.as_ref(), self.size);
        std::mem::replace(&mut self.hasher, hasher).finish()
    }

    /// Moves the file to its place, when it is on the disk.
    ///
    /// # Errors
    /// What the file system reports.
    pub fn finish(self, place: &Path) -> Result<(), FetchError> {
        let moved = self.file.sync_all().and_then(|()| fs::rename(&self.path, place));
        moved.map_err(|error| FetchError::io(place.to_owned(), error))
    }

    /// Removes the file.
    pub fn discard(self) {
        // Where it stays, the next run finds that it is of no use.
        let _ = fs::remove_file(&self.path);
    }
}
