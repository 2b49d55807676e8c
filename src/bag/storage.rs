//! The file formats of bags behind one face.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use tempfile::NamedTempFile;

use super::error::BagError;
use super::mcap::McapFile;
use super::note::Note;
use super::sqlite::SqliteFile;
use super::topic::Topic;
use super::unpack::{ZSTD_MAGIC, unpack_file};

/// What every SQLite file begins with.
const SQLITE_MAGIC: &[u8] = b"SQLite format 3\0";

/// What bags of ROS 1 begin with.
const ROS1_MAGIC: &[u8] = b"#ROSBAG";

/// Place of a message within its file: among messages of the same time, the lower one was written first.
pub(super) type Order = (i64, u64);

/// A message as a file holds it.
pub(super) struct Found {
    /// Index into the topics of the file.
    pub topic: usize,
    pub log_time_ns: u64,
    pub order: Order,
    pub data: Vec<u8>,
}

/// A stretch of a file that is read at once.
pub(super) struct Part {
    /// No message of it is earlier.
    pub start_ns: u64,
    pub place: Place,
}

/// Where a stretch is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Number of an MCAP block.
    Block(usize),
    /// Behind the row of this time and id.
    After { timestamp: i64, id: i64 },
}

enum Format {
    Mcap(McapFile),
    Sqlite(SqliteFile),
}

/// An opened bag file.
pub(super) struct StoredFile {
    format: Format,
    /// What was unpacked, for as long as it is read.
    _unpacked: Option<NamedTempFile>,
}

impl StoredFile {
    /// Opens a bag file by what it begins with, unpacking it first if it is compressed.
    ///
    /// # Errors
    /// A file that is none, or damaged.
    pub fn open(path: &Path) -> Result<Self, BagError> {
        let io = BagError::io;
        // Asked before it is opened: opening a pipe would wait for its other end.
        if !fs::metadata(path).map_err(io(path))?.is_file() {
            return Err(BagError::NoBag(path.into()));
        }
        let mut file = File::open(path).map_err(io(path))?;
        let mut start = [0; 16];
        let length = read_start(&mut file, &mut start).map_err(io(path))?;
        if !start[..length].starts_with(&ZSTD_MAGIC) {
            let format = open_plain(path, path, &start[..length], file)?;
            return Ok(Self { format, _unpacked: None });
        }
        let unpacked = unpack_file(path)?;
        let inner = unpacked.file.path();
        let mut file = File::open(inner).map_err(io(inner))?;
        let length = read_start(&mut file, &mut start).map_err(io(inner))?;
        let opened = open_plain(path, inner, &start[..length], file);
        // That the compression broke off explains what is wrong with the file inside.
        let format = match (opened, &unpacked.broken) {
            (Err(_), Some(reason)) => {
                return Err(BagError::damaged(path, 0, format!("it cannot be unpacked: {reason}")));
            }
            (opened, _) => opened?,
        };
        Ok(Self { format, _unpacked: Some(unpacked.file) })
    }

    pub fn topics(&self) -> &[Topic] {
        match &self.format {
            Format::Mcap(file) => file.topics(),
            Format::Sqlite(file) => file.topics(),
        }
    }

    pub fn notes(&self) -> &[Note] {
        match &self.format {
            Format::Mcap(file) => &file.notes,
            Format::Sqlite(file) => &file.notes,
        }
    }

    /// Times of the first and the last message, nanoseconds.
    pub fn span(&self) -> Option<(u64, u64)> {
        match &self.format {
            Format::Mcap(file) => file.span(),
            Format::Sqlite(file) => file.span(),
        }
    }

    /// Finds out how many messages every topic has, where the file does not say so by itself.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn count(&mut self) -> Result<(), BagError> {
        match &mut self.format {
            Format::Mcap(_) => Ok(()),
            Format::Sqlite(file) => file.count(),
        }
    }

    /// Name of the storage in `metadata.yaml`.
    pub fn storage(&self) -> &'static str {
        match &self.format {
            Format::Mcap(_) => "mcap",
            Format::Sqlite(_) => "sqlite3",
        }
    }

    /// The text of `metadata.yaml` as rosbag2 stores it in the file itself, in some versions.
    pub fn embedded_metadata(&self) -> Option<String> {
        match &self.format {
            Format::Mcap(file) => file.embedded_metadata(),
            Format::Sqlite(file) => file.embedded_metadata(),
        }
    }

    /// The stretches that have to be read to see every message.
    pub fn parts(&self) -> Vec<Part> {
        match &self.format {
            Format::Mcap(file) => file.parts().collect(),
            Format::Sqlite(file) => file.first_part().into_iter().collect(),
        }
    }

    /// Adds the wanted messages of a stretch to `found` and returns the stretch that follows it, if that became known by
    /// reading. `wanted` is asked by the index of the topic in this file.
    ///
    /// # Errors
    /// A stretch that cannot be read or is damaged.
    pub fn load(
        &self,
        place: Place,
        wanted: impl Fn(usize) -> bool,
        found: &mut Vec<Found>,
    ) -> Result<Option<Part>, BagError> {
        match (&self.format, place) {
            (Format::Mcap(file), Place::Block(index)) => {
                file.load(index, wanted, found).map(|()| None)
            }
            (Format::Sqlite(file), Place::After { timestamp, id }) => {
                file.load(timestamp, id, wanted, found)
            }
            (Format::Mcap(_), Place::After { .. }) | (Format::Sqlite(_), Place::Block(_)) => {
                Ok(None)
            }
        }
    }
}

/// Opens the file `inner`, which errors call `path`.
fn open_plain(path: &Path, inner: &Path, start: &[u8], file: File) -> Result<Format, BagError> {
    if start.starts_with(mcap::MAGIC) {
        return McapFile::open(path, file).map(Format::Mcap);
    }
    if start.starts_with(SQLITE_MAGIC) {
        return SqliteFile::open(path, inner).map(Format::Sqlite);
    }
    if start.starts_with(ROS1_MAGIC) {
        return Err(BagError::Ros1(path.into()));
    }
    Err(BagError::Unknown { path: path.into() })
}

fn read_start(file: &mut File, start: &mut [u8; 16]) -> std::io::Result<usize> {
    let mut taken = Vec::with_capacity(start.len());
    file.take(start.len() as u64).read_to_end(&mut taken)?;
    start[..taken.len()].copy_from_slice(&taken);
    Ok(taken.len())
}

/// Name of a file, for notes.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
