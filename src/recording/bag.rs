//! Bags: a directory with `metadata.yaml` and one MCAP file, as rosbag2 has written them since Humble.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use mcap::{Compression, MessageStream, WriteOptions, Writer, records::MessageHeader};

use super::message::{MessageError, RosMessage, serialize, starts_with_header};
use crate::partial;

/// A bag is read into memory whole; larger ones are refused.
pub const MAX_BAG_BYTES: u64 = 1 << 30;

const METADATA_FILE: &str = "metadata.yaml";
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

/// Whether a late subscriber of a recorded topic is to get its last messages.
pub fn is_latched(topic: &str) -> bool {
    topic.rsplit('/').next() == Some("tf_static")
}

/// Why a bag cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum BagError {
    #[error("{0} is there already; remove it or name another directory")]
    Exists(PathBuf),
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: std::io::Error },
    /// Its text is not the whole: some of [`mcap::McapError`]'s own say only in their source what has happened.
    #[error("{path} cannot be read or written as MCAP")]
    Mcap { path: PathBuf, source: mcap::McapError },
    #[error("{0} is no bag: it is neither an .mcap file nor a directory that holds one")]
    NoBag(PathBuf),
    #[error("{path} has {bytes} bytes; bags of up to {MAX_BAG_BYTES} bytes are read")]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("{path}: topic {topic} holds {encoding} messages; only ROS 2 messages in CDR are read")]
    Encoding { path: PathBuf, topic: String, encoding: String },
    #[error(transparent)]
    Message(#[from] MessageError),
}

/// A topic of a bag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub name: String,
    /// Full name of the message type, such as `sensor_msgs/msg/JointState`.
    pub message_type: String,
    /// Whether every message begins with a `std_msgs/Header`, by the schema in the bag.
    pub stamped: bool,
}

/// One recorded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BagMessage {
    /// Index into [`Bag::topics`].
    pub topic: usize,
    /// When it was received, nanoseconds.
    pub log_time_ns: u64,
    /// As it went over DDS: encapsulation and CDR fields.
    pub data: Vec<u8>,
}

/// A bag in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bag {
    pub topics: Vec<Topic>,
    /// In the order in which they were received.
    pub messages: Vec<BagMessage>,
}

impl Bag {
    /// Reads a bag directory or a single `.mcap` file; chunks may be plain or zstd.
    ///
    /// # Errors
    /// No bag at `path`, a damaged file, one above [`MAX_BAG_BYTES`], or messages that are not CDR.
    pub fn read(path: &Path) -> Result<Self, BagError> {
        let mut bag = Bag::default();
        for file in mcap_files(path)? {
            bag.append(&file)?;
        }
        // A stable sort: messages received at the same time keep the order of the file.
        bag.messages.sort_by_key(|message| message.log_time_ns);
        Ok(bag)
    }

    fn append(&mut self, path: &Path) -> Result<(), BagError> {
        let io_error = |error| BagError::Io { path: path.into(), error };
        let mcap_error = |source| BagError::Mcap { path: path.into(), source };
        let bytes = fs::metadata(path).map_err(io_error)?.len();
        if bytes > MAX_BAG_BYTES {
            return Err(BagError::TooLarge { path: path.into(), bytes });
        }
        let file = fs::read(path).map_err(io_error)?;
        let mut unpacked = 0;
        for message in MessageStream::new(&file).map_err(mcap_error)? {
            let message = message.map_err(mcap_error)?;
            unpacked += message.data.len() as u64;
            if unpacked > MAX_BAG_BYTES {
                return Err(BagError::TooLarge { path: path.into(), bytes: unpacked });
            }
            let topic = self.topic_of(path, &message.channel)?;
            let log_time_ns = message.log_time;
            self.messages.push(BagMessage { topic, log_time_ns, data: message.data.into_owned() });
        }
        Ok(())
    }

    fn topic_of(&mut self, path: &Path, channel: &mcap::Channel) -> Result<usize, BagError> {
        if let Some(known) = self.topics.iter().position(|topic| topic.name == channel.topic) {
            return Ok(known);
        }
        let schema = channel.schema.as_ref().filter(|_| channel.message_encoding == "cdr");
        let Some(schema) = schema else {
            return Err(BagError::Encoding {
                path: path.into(),
                topic: channel.topic.clone(),
                encoding: channel.message_encoding.clone(),
            });
        };
        let stamped = schema.encoding == "ros2msg"
            && starts_with_header(&String::from_utf8_lossy(&schema.data));
        self.topics.push(Topic {
            name: channel.topic.clone(),
            message_type: schema.name.clone(),
            stamped,
        });
        Ok(self.topics.len() - 1)
    }

    /// Time from the first message to the last.
    pub fn duration(&self) -> std::time::Duration {
        let ends = self.messages.first().zip(self.messages.last());
        let nanoseconds = ends.map_or(0, |(first, last)| last.log_time_ns - first.log_time_ns);
        std::time::Duration::from_nanos(nanoseconds)
    }
}

/// The `.mcap` files of a bag, in the order of their names.
fn mcap_files(path: &Path) -> Result<Vec<PathBuf>, BagError> {
    let io_error = |error| BagError::Io { path: path.into(), error };
    if !fs::metadata(path).map_err(io_error)?.is_dir() {
        return Ok(vec![path.into()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(io_error)? {
        let file = entry.map_err(io_error)?.path();
        if file.extension().is_some_and(|extension| extension == "mcap") {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(BagError::NoBag(path.into()));
    }
    files.sort();
    Ok(files)
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

/// Writes a bag directory, beside its place; [`BagWriter::finish`] puts it there.
pub struct BagWriter {
    /// Where the bag is to be.
    target: PathBuf,
    /// Where it grows; left over only when the writer did not come to its end.
    directory: PathBuf,
    file_name: String,
    writer: Writer<BufWriter<File>>,
    topics: Vec<OpenTopic>,
    /// First and last time of reception so far, nanoseconds.
    span: Option<(u64, u64)>,
}

impl BagWriter {
    /// Opens the MCAP file of a bag that is to be at `target`, with zstd chunks.
    ///
    /// # Errors
    /// [`BagError::Exists`] if there is something at `target` already; a directory that cannot be made.
    pub fn create(target: &Path) -> Result<Self, BagError> {
        if target.exists() {
            return Err(BagError::Exists(target.into()));
        }
        let directory = partial::fresh(target, PARTIAL_SUFFIX)
            .map_err(|(path, error)| BagError::Io { path, error })?;
        let stem = target.file_name().unwrap_or_default().to_string_lossy();
        let file_name = format!("{stem}_0.mcap");
        let path = directory.join(&file_name);
        let file =
            File::create(&path).map_err(|error| BagError::Io { path: path.clone(), error })?;
        let options = WriteOptions::new()
            .profile("ros2")
            .library(concat!("gr00t_blackhole ", env!("CARGO_PKG_VERSION")))
            .compression(Some(Compression::Zstd))
            .compression_threads(0);
        let writer = Writer::with_options(BufWriter::new(file), options)
            .map_err(|source| BagError::Mcap { path, source })?;
        let target = target.into();
        Ok(Self { target, directory, file_name, writer, topics: vec![], span: None })
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

    /// Adds `message`, received at `log_time_ns`.
    ///
    /// # Errors
    /// A message that cannot be serialized or a file that cannot be written.
    pub fn write<M: RosMessage>(
        &mut self,
        topic: TopicId,
        log_time_ns: u64,
        message: &M,
    ) -> Result<(), BagError> {
        let data = serialize(message)?;
        let topic = &mut self.topics[topic.0];
        let header = MessageHeader {
            channel_id: topic.channel,
            sequence: topic.messages,
            log_time: log_time_ns,
            publish_time: log_time_ns,
        };
        topic.messages += 1;
        let written = self.writer.write_to_known_channel(&header, &data);
        written.map_err(|source| self.mcap_error(source))?;
        let (first, last) = self.span.unwrap_or((log_time_ns, log_time_ns));
        self.span = Some((first.min(log_time_ns), last.max(log_time_ns)));
        Ok(())
    }

    /// Closes the MCAP file, writes `metadata.yaml` and puts the bag in its place.
    ///
    /// # Errors
    /// A file that cannot be written, or something that has come to the place meanwhile.
    pub fn finish(mut self) -> Result<(), BagError> {
        let finished = self.writer.finish();
        finished.map_err(|source| self.mcap_error(source))?;
        let path = self.directory.join(METADATA_FILE);
        fs::write(&path, self.metadata()).map_err(|error| BagError::Io { path, error })?;
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
        let file = &self.file_name;
        format!(
            "rosbag2_bagfile_information:\n  version: {METADATA_VERSION}\n  storage_identifier: mcap\n  duration:\n    nanoseconds: {duration}\n  starting_time:\n    nanoseconds_since_epoch: {first}\n  message_count: {count}\n  topics_with_message_count:\n{topics}  compression_format: \"\"\n  compression_mode: \"\"\n  relative_file_paths:\n    - {file}\n  files:\n    - path: {file}\n      starting_time:\n        nanoseconds_since_epoch: {first}\n      duration:\n        nanoseconds: {duration}\n      message_count: {count}\n"
        )
    }

    fn mcap_error(&self, source: mcap::McapError) -> BagError {
        BagError::Mcap { path: self.directory.join(&self.file_name), source }
    }
}
