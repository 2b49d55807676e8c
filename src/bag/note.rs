//! What is odd about a bag that can be read all the same.

use std::fmt;

use serde::Serialize;

/// Something that the user of a bag should know: where it may be incomplete, or says two things about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Note {
    /// The directory has no `metadata.yaml`, or an empty one.
    NoMetadata { files: usize },
    /// `metadata.yaml` is of a version that did not exist when this was written.
    NewMetadata { version: i64, newest: i64 },
    /// A file lies in the directory that `metadata.yaml` does not name; it is not read.
    UnnamedFile { file: String },
    /// A file is there under the name that it has without, or with, its compression.
    OtherName { named: String, found: String },
    /// `metadata.yaml` says one thing and the files say another, which counts.
    MetadataDiffers { what: String, metadata: String, files: String },
    /// The recorder never finished the file; what it wrote whole is read.
    Unfinished { file: String },
    /// The file ends in the middle of something.
    Cut { file: String, whole_bytes: u64, lost_bytes: u64 },
    /// The last chunk is not whole: so many messages of it are read, and the rest, up to `until_ns`, is lost.
    CutChunk { file: String, messages: u64, from_ns: u64, until_ns: u64 },
    /// The last chunk of an unfinished file does not hold what its checksum says, and is left out.
    LostChunk { file: String, from_ns: u64, until_ns: u64, reason: String },
    /// The index at the end of the file cannot be used; topics were read from the messages instead.
    BadSummary { file: String, reason: String },
    /// Messages that are not CDR can not be read; an error only for who wants the topic.
    Encoding { topic: String, encoding: String },
    /// One name stands for several types or encodings.
    TopicTwice { topic: String, message_types: Vec<String> },
    /// Messages are compressed one by one although nothing says so.
    PackedMessages { topic: String },
    /// The file holds another number of messages than its summary or `metadata.yaml` counts.
    CountDiffers { topic: String, stated: u64, read: u64 },
    /// SQLite had not merged its log into the file; both are read.
    WriteAheadLog { file: String },
    /// Without an index over time, reading is slow.
    NoTimeIndex { file: String },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::NoMetadata { files } => {
                write!(f, "no metadata.yaml: {files} bag file(s) read by their own words")
            }
            Note::NewMetadata { version, newest } => write!(
                f,
                "metadata.yaml is of version {version}, newer than {newest}, the last one that is known"
            ),
            Note::UnnamedFile { file } => {
                write!(f, "{file} is not read: metadata.yaml does not name it")
            }
            Note::OtherName { named, found } => {
                write!(f, "{found} is read in place of {named}, which metadata.yaml names")
            }
            Note::MetadataDiffers { what, metadata, files } => {
                write!(f, "{what}: metadata.yaml says {metadata}, the files say {files}")
            }
            Note::Unfinished { file } => {
                write!(f, "{file} was never finished; all that was written is read")
            }
            Note::Cut { file, whole_bytes, lost_bytes } => write!(
                f,
                "{file} is cut off: {whole_bytes} bytes are whole, the last {lost_bytes} are not"
            ),
            Note::CutChunk { file, messages, from_ns, until_ns } => write!(
                f,
                "{file}: of its last chunk, which is cut off, {messages} message(s) are read; it went from {from_ns} to {until_ns} ns, and no checksum covers what is left"
            ),
            Note::LostChunk { file, from_ns, until_ns, reason } => write!(
                f,
                "{file}: its last chunk, from {from_ns} to {until_ns} ns, is left out: {reason}"
            ),
            Note::BadSummary { file, reason } => {
                write!(f, "{file}: the index at its end is not used: {reason}")
            }
            Note::Encoding { topic, encoding } => {
                write!(f, "{topic} holds {encoding:?} messages, which are not read")
            }
            Note::TopicTwice { topic, message_types } => {
                write!(f, "{topic} is recorded as {}", message_types.join(" and as "))
            }
            Note::PackedMessages { topic } => write!(
                f,
                "messages of {topic} are compressed one by one, which nothing in the bag says; they are unpacked"
            ),
            Note::CountDiffers { topic, stated, read } => {
                write!(f, "{topic}: the bag counts {stated} message(s), {read} are there")
            }
            Note::WriteAheadLog { file } => {
                write!(f, "{file} was not closed; its write-ahead log is read with it")
            }
            Note::NoTimeIndex { file } => {
                write!(f, "{file} has no index over time, so that reading is slow")
            }
        }
    }
}
