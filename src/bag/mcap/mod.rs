//! MCAP files, whole, unfinished or cut off.

mod channels;
mod content;
mod records;
mod scan;
mod summary;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use mcap::records::{Record, op};

use self::channels::Channels;
use self::content::Fault;
use self::records::{Parsed, Records, parse};
use self::scan::{Block, End, Kind, Scan, scan};
use self::summary::Summary;
use super::error::BagError;
use super::limits::MAX_METADATA_BYTES;
use super::note::Note;
use super::storage::{Found, Order, Part, Place, file_name};
use super::topic::Topic;

/// Name and key under which rosbag2 stores the text of `metadata.yaml` in the file itself.
const ROSBAG2_METADATA: &str = "rosbag2";
const ROSBAG2_METADATA_KEY: &str = "serialized_metadata";

/// An opened MCAP file.
pub(super) struct McapFile {
    /// What errors name; the file that is read may be an unpacked one.
    path: PathBuf,
    file: File,
    scan: Scan,
    channels: Channels,
    /// Times of the first and the last message, nanoseconds.
    span: Option<(u64, u64)>,
    pub notes: Vec<Note>,
}

impl McapFile {
    /// Walks over the file and reads its summary; without a usable one, all of its messages.
    ///
    /// # Errors
    /// A file that is no MCAP or damaged in other places than its end.
    pub fn open(path: &Path, file: File) -> Result<Self, BagError> {
        let len = file.metadata().map_err(BagError::io(path))?.len();
        let scan = scan(path, &file, len)?;
        let channels = Channels::default();
        let (path_buf, notes) = (path.into(), Vec::new());
        let mut mcap = Self { path: path_buf, file, scan, channels, span: None, notes };
        mcap.note_end(len);
        match summary::read(path, &mcap.file, &mcap.scan)? {
            Ok(Some(summary)) => mcap.take(summary)?,
            Ok(None) => mcap.read_all()?,
            Err(reason) => {
                mcap.notes.push(Note::BadSummary { file: file_name(path), reason });
                mcap.read_all()?;
            }
        }
        Ok(mcap)
    }

    pub fn topics(&self) -> &[Topic] {
        &self.channels.topics
    }

    /// Times of the first and the last message, nanoseconds.
    pub fn span(&self) -> Option<(u64, u64)> {
        self.span
    }

    /// The stretches of the file that hold messages.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        let blocks = self.scan.blocks.iter().enumerate().filter(|(_, block)| has_messages(block));
        blocks.map(|(index, block)| Part { start_ns: block.start_ns, place: Place::Block(index) })
    }

    /// The wanted messages of a stretch; `wanted` is asked by the index of the topic in this file.
    ///
    /// # Errors
    /// A stretch that cannot be read or is damaged.
    pub fn load(
        &self,
        index: usize,
        wanted: impl Fn(usize) -> bool,
        found: &mut Vec<Found>,
    ) -> Result<(), BagError> {
        let block = &self.scan.blocks[index];
        let bytes = match content::read(&self.path, &self.file, block) {
            Ok(bytes) => bytes,
            // Told when the file was opened.
            Err(Fault::Damage(_)) if self.is_loose_end(index) => return Ok(()),
            Err(fault) => return Err(self.error(block, fault)),
        };
        let mut records = Records::of(&bytes);
        for (number, raw) in records.by_ref().enumerate() {
            let damaged = |reason: String| self.damaged(block, raw.offset, reason);
            match parse(&raw).map_err(damaged)? {
                Parsed::Channel(channel) if !self.channels.agrees(&channel) => {
                    let topic = &channel.topic;
                    return Err(damaged(format!(
                        "the file's index does not know {topic} as it is here"
                    )));
                }
                Parsed::Message { header, data } => {
                    let channel = header.channel_id;
                    let topic = self.channels.topic(channel);
                    let topic =
                        topic.ok_or_else(|| damaged(format!("no channel {channel} is known")))?;
                    self.check_time(block, raw.offset, header.log_time)?;
                    if wanted(topic) {
                        let order: Order = (index as i64, number as u64);
                        let (log_time_ns, data) = (header.log_time, data.into_owned());
                        found.push(Found { topic, log_time_ns, order, data });
                    }
                }
                _ => {}
            }
        }
        self.check_end(block, &bytes, &records)
    }

    /// The text of `metadata.yaml` as rosbag2 stores it in the file; the last one counts.
    pub fn embedded_metadata(&self) -> Option<String> {
        self.scan.metadata.iter().rev().find_map(|&(offset, len)| {
            let mut body =
                vec![0; usize::try_from(len).ok().filter(|_| len <= MAX_METADATA_BYTES)?];
            self.file.read_exact_at(&mut body, offset).ok()?;
            match mcap::parse_record(op::METADATA, &body) {
                Ok(Record::Metadata(mut found)) if found.name == ROSBAG2_METADATA => {
                    found.metadata.remove(ROSBAG2_METADATA_KEY)
                }
                _ => None,
            }
        })
    }

    fn note_end(&mut self, len: u64) {
        let file = file_name(&self.path);
        match self.scan.end {
            End::Finished { .. } => {}
            End::Unfinished => self.notes.push(Note::Unfinished { file }),
            End::Cut { whole: whole_bytes } => {
                let lost_bytes = len - whole_bytes;
                self.notes.push(Note::Cut { file, whole_bytes, lost_bytes });
            }
        }
    }

    fn take(&mut self, summary: Summary) -> Result<(), BagError> {
        let (stated, found) = (u64::from(summary.statistics.chunk_count), self.scan.chunks);
        if stated != found {
            let reason = format!("its summary counts {stated} chunks, and there are {found}");
            return Err(BagError::damaged(&self.path, 0, reason));
        }
        self.channels = summary.channels;
        // An empty chunk has no times; zeros stand in their place.
        let blocks =
            self.scan.blocks.iter().filter(|block| has_messages(block) && block.end_ns > 0);
        for block in blocks {
            extend(&mut self.span, block.start_ns, block.end_ns);
        }
        self.set_counts(&summary.statistics.channel_message_counts);
        Ok(())
    }

    fn set_counts(&mut self, counts: &BTreeMap<u16, u64>) {
        for topic in &mut self.channels.topics {
            topic.messages = Some(0);
        }
        for (channel, count) in counts {
            if let Some(topic) = self.channels.topic(*channel) {
                let messages = &mut self.channels.topics[topic].messages;
                *messages = Some(messages.unwrap_or(0).saturating_add(*count));
            }
        }
    }

    /// Reads all blocks for their channels, and counts their messages.
    fn read_all(&mut self) -> Result<(), BagError> {
        let mut counts = BTreeMap::new();
        for index in 0..self.scan.blocks.len() {
            let block = self.scan.blocks[index].clone();
            let file = file_name(&self.path);
            let (from_ns, until_ns) = (block.start_ns, block.end_ns);
            let bytes = match content::read(&self.path, &self.file, &block) {
                Ok(bytes) => bytes,
                Err(Fault::Damage(reason)) if self.is_loose_end(index) => {
                    self.notes.push(Note::LostChunk { file, from_ns, until_ns, reason });
                    continue;
                }
                Err(fault) => return Err(self.error(&block, fault)),
            };
            let mut messages = 0;
            let mut records = Records::of(&bytes);
            for raw in records.by_ref() {
                let parsed = parse(&raw);
                let parsed = parsed.map_err(|reason| self.damaged(&block, raw.offset, reason))?;
                if let Parsed::Message { header, .. } = &parsed {
                    messages += 1;
                    extend(&mut self.span, header.log_time, header.log_time);
                    *counts.entry(header.channel_id).or_insert(0) += 1;
                }
                let added = self.channels.add(parsed);
                added.map_err(|reason| self.damaged(&block, raw.offset, reason))?;
            }
            self.check_end(&block, &bytes, &records)?;
            if matches!(block.kind, Kind::CutChunk(_)) {
                self.notes.push(Note::CutChunk { file, messages, from_ns, until_ns });
            }
        }
        self.set_counts(&counts);
        Ok(())
    }

    /// Whether a block is the last of a file that was never finished: what a crash or a full disk leaves there is no
    /// damage that anything else could suffer from.
    fn is_loose_end(&self, index: usize) -> bool {
        let unfinished = !matches!(self.scan.end, End::Finished { .. });
        unfinished && index + 1 == self.scan.blocks.len()
    }

    fn check_time(&self, block: &Block, offset: usize, time: u64) -> Result<(), BagError> {
        let (start, end) = (block.start_ns, block.end_ns);
        if (start..=end).contains(&time) {
            return Ok(());
        }
        let reason =
            format!("a message of {time} ns in a chunk that goes from {start} to {end} ns");
        Err(self.damaged(block, offset, reason))
    }

    /// All of a block must be records, unless it was cut off.
    fn check_end(
        &self,
        block: &Block,
        bytes: &[u8],
        records: &Records<'_>,
    ) -> Result<(), BagError> {
        let whole = records.offset() == bytes.len() || matches!(block.kind, Kind::CutChunk(_));
        if whole {
            return Ok(());
        }
        Err(self.damaged(block, records.offset(), "no whole record begins here".into()))
    }

    /// Damage at `offset` of the records of `block`, told by the place of the block.
    fn damaged(&self, block: &Block, offset: usize, reason: String) -> BagError {
        let place = format!("{reason} ({offset} bytes into the unpacked block)");
        BagError::damaged(&self.path, block.offset, place)
    }

    fn error(&self, block: &Block, fault: Fault) -> BagError {
        match fault {
            Fault::Damage(reason) => BagError::damaged(&self.path, block.offset, reason),
            Fault::Other(error) => error,
        }
    }
}

/// Whether a block can hold messages: a run without any has no times.
fn has_messages(block: &Block) -> bool {
    block.start_ns <= block.end_ns
}

fn extend(span: &mut Option<(u64, u64)>, start: u64, end: u64) {
    let (first, last) = span.unwrap_or((start, end));
    *span = Some((first.min(start), last.max(end)));
}
