//! Writes a bag: a directory with `metadata.yaml` and one MCAP file, as rosbag2 does since Humble.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use mcap::{Compression, WriteOptions, Writer, records::MessageHeader};

use super::error::BagError;
use super::metadata::METADATA_FILE;
use super::topic::is_latched;
use crate::partial;
use crate::recording::message::{RosMessage, serialize_to};

/// The last version of `metadata.yaml` that Humble reads; later distributions read it too.
const METADATA_VERSION: u32 = 5;
/// Keep last 10, reliable, volatile: what a publisher with default QoS offers, in rosbag2's spelling.
const OFFERED_QOS: &str = "- history: 1\n  depth: 10\n  reliability: 1\n  durability: 2\n  deadline:\n    sec: 9223372036\n    nsec: 854775807\n  lifespan:\n    sec: 9223372036\n    nsec: 854775807\n  liveliness: 1\n  liveliness_lease_duration:\n    sec: 9223372036\n    nsec: 854775807\n  avoid_ros_namespace_conventions: false";

/// What the publisher of a topic offers; fixed transforms are latched, as tf2 wants them.
fn offered_qos(topic: &str) -> String {
    if is_latched(topic) {
        OFFERED_QOS.replace("durability: 2", "durability: 1")
    } else {
        OFFERED_QOS.to_owned()
    }
}

/// Behind the name of a bag that grows.
const PARTIAL_SUFFIX: &str = ".recording-partial";

/// A topic that is being written; given out by [`BagWriter::add_topic`].
#[derive(Clone, Copy, Debug)]
pub struct TopicId(usize);

struct OpenTopic {
    name: String,
    message_type: &'static str,
    channel: u16,
    messages: u32,
}

/// Writes a bag directory. [`BagWriter::finish`] closes it.
pub struct BagWriter {
    /// Where the bag is to be.
    target: PathBuf,
    /// Where it grows.
    directory: PathBuf,
    file_name: String,
    writer: Writer<BufWriter<File>>,
    topics: Vec<OpenTopic>,
    /// First and last time of reception so far, nanoseconds.
    span: Option<(u64, u64)>,
    /// The newest message, kept for its memory.
    serialized: Vec<u8>,
}

impl BagWriter {
    /// Opens a bag that grows beside `target` and is put there when it is complete, in zstd chunks. What grows beside it is left
    /// over only when the writer did not come to its end.
    ///
    /// # Errors
    /// [`BagError::Exists`] if there is something at `target` already; a directory that cannot be made.
    pub fn create(target: &Path) -> Result<Self, BagError> {
        if target.exists() {
            return Err(BagError::Exists(target.into()));
        }
        let directory = partial::fresh(target, PARTIAL_SUFFIX)
            .map_err(|(path, error)| BagError::Io { path, error })?;
        let options = WriteOptions::new().compression(Some(Compression::Zstd));
        Self::open(target, directory, options.compression_threads(0))
    }

    /// Opens a bag that grows at `target` itself and can be read whenever its process ends, up to the last
    /// [`BagWriter::flush`]. Nothing is compressed, which would cost processor time of the robot.
    ///
    /// # Errors
    /// As [`BagWriter::create`].
    pub fn create_in_place(target: &Path) -> Result<Self, BagError> {
        if target.exists() {
            return Err(BagError::Exists(target.into()));
        }
        fs::create_dir_all(target).map_err(BagError::io(target))?;
        // Chunks are written when they are whole: with seeking, their heads would be filled in afterwards.
        let options = WriteOptions::new().compression(None).chunk_size(None).disable_seeking(true);
        Self::open(target, target.into(), options)
    }

    fn open(target: &Path, directory: PathBuf, options: WriteOptions) -> Result<Self, BagError> {
        let stem = target.file_name().unwrap_or_default().to_string_lossy();
        let file_name = format!("{stem}_0.mcap");
        let path = directory.join(&file_name);
        let file = File::create(&path).map_err(BagError::io(&path))?;
        let library = concat!("gr00t_blackhole ", env!("CARGO_PKG_VERSION"));
        let options = options.profile("ros2").library(library);
        let writer = Writer::with_options(BufWriter::new(file), options)
            .map_err(|source| BagError::Mcap { path, source })?;
        let target = target.into();
        Ok(Self {
            target,
            directory,
            file_name,
            writer,
            topics: vec![],
            span: None,
            serialized: vec![],
        })
    }

    /// Hands everything that was written to the system, as a chunk of its own.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn flush(&mut self) -> Result<(), BagError> {
        let flushed = self.writer.flush();
        flushed.map_err(|source| self.mcap_error(source))
    }

    /// Declares a topic of messages `M`.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn add_topic<M: RosMessage>(&mut self, name: &str) -> Result<TopicId, BagError> {
        let added = self.add_channel::<M>(name);
        let channel = added.map_err(|source| self.mcap_error(source))?;
        let message_type = M::TYPE;
        self.topics.push(OpenTopic { name: name.into(), message_type, channel, messages: 0 });
        Ok(TopicId(self.topics.len() - 1))
    }

    fn add_channel<M: RosMessage>(&mut self, name: &str) -> mcap::McapResult<u16> {
        let schema = self.writer.add_schema(M::TYPE, "ros2msg", M::SCHEMA.as_bytes())?;
        let metadata = BTreeMap::from([("offered_qos_profiles".into(), offered_qos(name))]);
        self.writer.add_channel(schema, name, "cdr", &metadata)
    }

    /// Adds `message`, received at `log_time_ns`, and returns its serialized length in bytes.
    ///
    /// # Errors
    /// A message that cannot be serialized or a file that cannot be written.
    pub fn write<M: RosMessage>(
        &mut self,
        topic: TopicId,
        log_time_ns: u64,
        message: &M,
    ) -> Result<u64, BagError> {
        serialize_to(message, &mut self.serialized)?;
        let topic = &mut self.topics[topic.0];
        let header = MessageHeader {
            channel_id: topic.channel,
            sequence: topic.messages,
            log_time: log_time_ns,
            publish_time: log_time_ns,
        };
        topic.messages += 1;
        let written = self.writer.write_to_known_channel(&header, &self.serialized);
        written.map_err(|source| self.mcap_error(source))?;
        let (first, last) = self.span.unwrap_or((log_time_ns, log_time_ns));
        self.span = Some((first.min(log_time_ns), last.max(log_time_ns)));
        Ok(self.serialized.len() as u64)
    }

    /// Closes the MCAP file, writes `metadata.yaml` and puts the bag in its place if it is not there.
    ///
    /// # Errors
    /// A file that cannot be written, or something that has come to the place meanwhile.
    pub fn finish(mut self) -> Result<(), BagError> {
        let finished = self.writer.finish();
        finished.map_err(|source| self.mcap_error(source))?;
        let path = self.directory.join(METADATA_FILE);
        fs::write(&path, self.metadata()).map_err(|error| BagError::Io { path, error })?;
        if self.directory == self.target {
            return Ok(());
        }
        fs::rename(&self.directory, &self.target)
            .map_err(|error| BagError::Io { path: self.target.clone(), error })
    }

    fn metadata(&self) -> String {
        let (first, last) = self.span.unwrap_or_default();
        let duration = last - first;
        let count: u32 = self.topics.iter().map(|topic| topic.messages).sum();
        let topics: String = self
            .topics
            .iter()
            .map(|topic| {
                let qos = offered_qos(&topic.name).replace('\n', "\\n");
                format!(
                    "    - topic_metadata:\n        name: {}\n        type: {}\n        serialization_format: cdr\n        offered_qos_profiles: \"{qos}\"\n      message_count: {}\n",
                    topic.name, topic.message_type, topic.messages
                )
            })
            .collect();
        // Names may hold what has a meaning in YAML; its quoted strings are those of JSON.
        let file = serde_json::Value::from(self.file_name.as_str());
        format!(
            "rosbag2_bagfile_information:\n  version: {METADATA_VERSION}\n  storage_identifier: mcap\n  duration:\n    nanoseconds: {duration}\n  starting_time:\n    nanoseconds_since_epoch: {first}\n  message_count: {count}\n  topics_with_message_count:\n{topics}  compression_format: \"\"\n  compression_mode: \"\"\n  relative_file_paths:\n    - {file}\n  files:\n    - path: {file}\n      starting_time:\n        nanoseconds_since_epoch: {first}\n      duration:\n        nanoseconds: {duration}\n      message_count: {count}\n"
        )
    }

    fn mcap_error(&self, source: mcap::McapError) -> BagError {
        BagError::Mcap { path: self.directory.join(&self.file_name), source }
    }
}
