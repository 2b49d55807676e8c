//! Why a bag cannot be read or written.

use std::io;
use std::path::{Path, PathBuf};

use super::limits::{MAX_BAG_BYTES, MAX_FILES};
use crate::recording::message::MessageError;

/// Why a bag cannot be read or written. Every text names the file and, where there is one, the fix.
#[derive(Debug, thiserror::Error)]
pub enum BagError {
    #[error("{0} is there already; remove it or name another directory")]
    Exists(PathBuf),
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    /// Its text is not the whole: some of [`mcap::McapError`]'s own say only in their source what has happened.
    #[error("{path} cannot be written as MCAP")]
    Mcap { path: PathBuf, source: mcap::McapError },
    #[error(
        "{0} is no bag: it is neither a bag file (.mcap, .db3, either with .zstd) nor a directory that holds one"
    )]
    NoBag(PathBuf),
    #[error(
        "{0} is a bag of ROS 1; `rosbags-convert` of the PyPI package rosbags makes one of ROS 2 from it"
    )]
    Ros1(PathBuf),
    #[error("{path} is no bag file: it begins neither as MCAP nor as SQLite nor as zstd")]
    Unknown { path: PathBuf },
    #[error(
        "{} has no metadata.yaml, and {first} and {other} are not named as parts of one bag; give one of the files, or the directory of one bag",
        dir.display()
    )]
    SeveralBags { dir: PathBuf, first: String, other: String },
    #[error(
        "{dir} has no metadata.yaml, and {first} and {second} may hold the same messages; keep one of them, or name the file to read"
    )]
    Ambiguous { dir: PathBuf, first: String, second: String },
    #[error("{path}: {reason}; repair it, or remove it and the bag files are read without it")]
    Metadata { path: PathBuf, reason: String },
    #[error(
        "{path} names the file {name:?}, which is not beside it; bag files must stand in the bag's own directory"
    )]
    OutsideName { path: PathBuf, name: String },
    #[error("{dir} lacks {}, which its metadata.yaml names: the recording would have a hole; put the files there, or remove metadata.yaml to read what is there", .files.join(", "))]
    MissingFiles { dir: PathBuf, files: Vec<String> },
    #[error(
        "{path} is of storage '{storage}'; mcap and sqlite3 are read (`ros2 bag convert` makes them)"
    )]
    Storage { path: PathBuf, storage: String },
    #[error(
        "{path} is compressed as {format:?} in mode {mode:?}; zstd in the modes file and message is read"
    )]
    Compression { path: PathBuf, format: String, mode: String },
    #[error("{path} is damaged at byte {offset}: {reason}")]
    Damaged { path: PathBuf, offset: u64, reason: String },
    #[error("{path} cannot be read as a bag of SQLite: {reason}")]
    Sqlite { path: PathBuf, reason: String },
    #[error("{path}: {what} has {bytes} bytes, more than the {limit} that are taken")]
    TooLarge { path: PathBuf, what: &'static str, bytes: u64, limit: u64 },
    #[error("{0} holds more than {MAX_FILES} bag files")]
    TooManyFiles(PathBuf),
    #[error(
        "{path}: more than {limit} bytes of messages wait for an earlier one, so far out of order are its chunks; `ros2 bag convert` sorts them"
    )]
    TooDisordered { path: PathBuf, limit: u64 },
    #[error(
        "{path} takes more than {limit} bytes when unpacked, which is all that {dir} has to spare; set TMPDIR to a larger disk"
    )]
    NoRoom { path: PathBuf, dir: PathBuf, limit: u64 },
    #[error(
        "{0} has more than {MAX_BAG_BYTES} bytes of messages, which is more than is taken into memory"
    )]
    BagTooLarge(PathBuf),
    #[error(
        "{path}: topic {topic} holds {encoding:?} messages; only ROS 2 messages in CDR are read"
    )]
    Encoding { path: PathBuf, topic: String, encoding: String },
    #[error("{path}: the message of {topic} at {log_time_ns} ns cannot be unpacked: {reason}")]
    PackedMessage { path: PathBuf, topic: String, log_time_ns: u64, reason: String },
    #[error(transparent)]
    Message(#[from] MessageError),
}

impl BagError {
    /// For `map_err` where `path` is read or written.
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> BagError + '_ {
        move |error| BagError::Io { path: path.into(), error }
    }

    pub(super) fn damaged(path: &Path, offset: u64, reason: impl Into<String>) -> Self {
        BagError::Damaged { path: path.into(), offset, reason: reason.into() }
    }
}
