//! A bag as one thing: its topics, its span, and what is odd about it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::error::BagError;
use super::files::{BagFiles, find};
use super::limits::MAX_TOPICS;
use super::messages::Messages;
use super::metadata::{METADATA_FILE, Metadata, Mode, NEWEST_VERSION};
use super::note::Note;
use super::storage::{StoredFile, file_name};
use super::topic::{CDR, Topic};

/// An opened bag: a rosbag2 directory or a single bag file.
///
/// Storages `mcap` (chunks plain, zstd, lz4, or none) and `sqlite3`, split or not, compressed by zstd as files or message by
/// message, with `metadata.yaml` of versions 1 to 9 or without. Files are read as they are asked for, so that a bag may be larger
/// than memory; files that are compressed as a whole are unpacked to the directory of temporary files while the bag is
/// open.
///
/// A bag that was not closed, or whose last file is cut off, is read up to where it ends, and a [`Note`] says what is lost. Damage
/// anywhere else is an error.
pub struct BagReader {
    path: PathBuf,
    files: Arc<[OpenFile]>,
    topics: Vec<Topic>,
    span: Option<(u64, u64)>,
    message_mode: MessageMode,
    notes: Vec<Note>,
}

/// One file of an opened bag.
pub(super) struct OpenFile {
    pub path: PathBuf,
    pub stored: StoredFile,
    /// Topic of the file -> topic of the bag.
    pub topics: Vec<usize>,
}

/// Whether messages are compressed one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageMode {
    Plain,
    Packed,
    /// Nothing says so: their first bytes decide, which no message has in common with zstd.
    Unknown,
}

impl BagReader {
    /// Opens the bag at `path`. Reads no message, unless a file was not finished and has to be searched for its topics.
    ///
    /// # Errors
    /// No bag at `path`, or one that is damaged, lacks a file, or is of a kind that is not read.
    pub fn open(path: &Path) -> Result<Self, BagError> {
        let BagFiles { files, metadata, notes } = find(path)?;
        let mut bag = Opening { path, topics: Vec::new(), notes };
        let mut opened = Vec::new();
        for file in files {
            opened.push(bag.open_file(file, metadata.is_none())?);
        }
        let message_mode = bag.message_mode(metadata.as_ref(), &opened)?;
        let spans = opened.iter().filter_map(|file: &OpenFile| file.stored.span());
        let span = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        if let Some(metadata) = metadata {
            bag.compare(&metadata, &opened, span);
        }
        bag.note_topics();
        let Opening { topics, notes, .. } = bag;
        Ok(Self { path: path.into(), files: opened.into(), topics, span, message_mode, notes })
    }

    /// Where the bag is, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All topics. A name stands for two of them only if it was recorded with two types or encodings, which is noted.
    pub fn topics(&self) -> &[Topic] {
        &self.topics
    }

    /// What was odd when the bag was opened; [`Messages::notes`] has what is found while it is read.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Times at which the first and the last message were received, nanoseconds; `None` without messages.
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// Time from the first message to the last.
    pub fn duration(&self) -> Duration {
        self.span.map_or(Duration::ZERO, |(first, last)| Duration::from_nanos(last - first))
    }

    /// The storage of the files, and their names.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, String)> {
        self.files.iter().map(|file| (file.stored.storage(), file_name(&file.path)))
    }

    /// The messages of the topics that `wanted` picks, over all files in the order in which they were received; those of the
    /// same time stay in the order of their files and in them.
    ///
    /// # Errors
    /// A wanted topic whose messages are not CDR.
    pub fn messages(&self, wanted: impl Fn(&Topic) -> bool) -> Result<Messages, BagError> {
        let wanted: Vec<bool> = self.topics.iter().map(wanted).collect();
        let refused =
            self.topics.iter().zip(&wanted).find(|(topic, wanted)| **wanted && !is_read(topic));
        if let Some((topic, _)) = refused {
            return Err(BagError::Encoding {
                path: self.path.clone(),
                topic: topic.name.clone(),
                encoding: encoding(topic),
            });
        }
        let files = Arc::clone(&self.files);
        Ok(Messages::new(files, self.topics.clone(), wanted, self.message_mode))
    }
}

fn is_read(topic: &Topic) -> bool {
    topic.encoding == CDR && !topic.message_type.is_empty()
}

/// Encoding of a topic that is not read.
fn encoding(topic: &Topic) -> String {
    if topic.encoding == CDR { "cdr without a type".into() } else { topic.encoding.clone() }
}

/// A bag that is being opened.
struct Opening<'a> {
    path: &'a Path,
    topics: Vec<Topic>,
    notes: Vec<Note>,
}

impl Opening<'_> {
    fn open_file(&mut self, path: PathBuf, count: bool) -> Result<OpenFile, BagError> {
        let mut stored = StoredFile::open(&path)?;
        if count {
            stored.count()?;
        }
        self.notes.extend_from_slice(stored.notes());
        let mut topics = Vec::new();
        for topic in stored.topics() {
            topics.push(self.topic(&path, topic)?);
        }
        Ok(OpenFile { path, stored, topics })
    }

    /// Index of a file's topic among those of the bag, with its messages counted in.
    fn topic(&mut self, path: &Path, found: &Topic) -> Result<usize, BagError> {
        let same = |topic: &Topic| {
            (&topic.name, &topic.message_type, &topic.encoding)
                == (&found.name, &found.message_type, &found.encoding)
        };
        if let Some(known) = self.topics.iter().position(same) {
            let topic = &mut self.topics[known];
            topic.stamped |= found.stamped;
            topic.messages = topic.messages.zip(found.messages).map(|(a, b)| a.saturating_add(b));
            return Ok(known);
        }
        if self.topics.len() == MAX_TOPICS {
            let reason = format!("the bag has more than {MAX_TOPICS} topics");
            return Err(BagError::damaged(path, 0, reason));
        }
        self.topics.push(found.clone());
        Ok(self.topics.len() - 1)
    }

    /// How messages are compressed: by `metadata.yaml`, or by what a file has stored of it.
    fn message_mode(
        &self,
        metadata: Option<&Metadata>,
        files: &[OpenFile],
    ) -> Result<MessageMode, BagError> {
        let stated = match metadata {
            Some(metadata) => Some(metadata.mode(&self.path.join(METADATA_FILE))?),
            None => {
                let stored = files.iter().find_map(|file| {
                    let metadata = Metadata::parse(&file.stored.embedded_metadata()?).ok()?;
                    Some((metadata, &file.path))
                });
                stored.map(|(metadata, path)| metadata.mode(path)).transpose()?
            }
        };
        Ok(match stated {
            Some(Mode::Message) => MessageMode::Packed,
            // What a file stores of its metadata is written when recording begins, and not by all recorders.
            Some(Mode::Plain) if metadata.is_some() => MessageMode::Plain,
            Some(Mode::Plain) | None => MessageMode::Unknown,
        })
    }

    /// Notes where `metadata.yaml` and the files contradict each other, and takes its counts where the files have none.
    fn compare(&mut self, metadata: &Metadata, files: &[OpenFile], span: Option<(u64, u64)>) {
        if metadata.version > NEWEST_VERSION {
            let (version, newest) = (metadata.version, NEWEST_VERSION);
            self.notes.push(Note::NewMetadata { version, newest });
        }
        for file in files {
            if file.stored.storage() != metadata.storage_identifier {
                let what = format!("storage of {}", file_name(&file.path));
                self.differs(what, &metadata.storage_identifier, file.stored.storage());
            }
        }
        self.compare_topics(metadata);
        if let (Some(start), Some((first, last))) = (&metadata.starting_time, span) {
            let stated = start.nanoseconds_since_epoch;
            if i128::from(stated) != i128::from(first) {
                self.differs("time of the first message, ns".into(), stated, first);
            }
            let found = last - first;
            if let Some(duration) = metadata.duration.as_ref().map(|duration| duration.nanoseconds)
                && i128::from(duration) != i128::from(found)
            {
                self.differs("duration, ns".into(), duration, found);
            }
        }
        let counts = || self.topics.iter().map(|topic| topic.messages).sum::<Option<u64>>();
        if let (Some(stated), Some(found)) = (metadata.message_count, counts())
            && stated != found
        {
            self.differs("number of messages".into(), stated, found);
        }
    }

    fn compare_topics(&mut self, metadata: &Metadata) {
        let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
        for counted in metadata.topics() {
            let topic = counted.topic_metadata.clone();
            let count = counts.entry((topic.name, topic.message_type)).or_insert(0);
            *count = count.saturating_add(counted.message_count);
        }
        for index in 0..self.topics.len() {
            let Topic { name, message_type, messages, .. } = self.topics[index].clone();
            let stated = counts.remove(&(name.clone(), message_type.clone()));
            match (stated, messages) {
                (Some(stated), None) => self.topics[index].messages = Some(stated),
                (Some(stated), Some(found)) if stated != found => {
                    self.differs(format!("messages of {name}"), stated, found);
                }
                (Some(_), Some(_)) => {}
                (None, _) => self.differs(format!("type of {name}"), "nothing", message_type),
            }
        }
        for ((name, message_type), count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            let stated = format!("{count} of {message_type}");
            self.differs(format!("messages of {name}"), stated, "none");
        }
    }

    /// Notes topics that cannot be read, and names that stand for several.
    fn note_topics(&mut self) {
        let mut by_name: BTreeMap<&str, Vec<&Topic>> = BTreeMap::new();
        for topic in &self.topics {
            by_name.entry(&topic.name).or_default().push(topic);
        }
        for (name, topics) in by_name {
            if topics.len() > 1 {
                let message_types = topics.iter().map(|topic| topic.message_type.clone()).collect();
                self.notes.push(Note::TopicTwice { topic: name.into(), message_types });
            }
        }
        for topic in self.topics.iter().filter(|topic| !is_read(topic)) {
            let (topic, encoding) = (topic.name.clone(), encoding(topic));
            self.notes.push(Note::Encoding { topic, encoding });
        }
    }

    fn differs(&mut self, what: String, metadata: impl ToString, files: impl ToString) {
        let (metadata, files) = (metadata.to_string(), files.to_string());
        self.notes.push(Note::MetadataDiffers { what, metadata, files });
    }
}
