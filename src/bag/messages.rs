//! The messages of all files, merged in the order of time.
//!
//! Stretches of files are read when the next message may be in them, and no earlier: before a message is given out, every stretch
//! that begins before it has been read. So what is in memory is what overlaps in time, whatever the size of the bag.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::error::BagError;
use super::limits::{MAX_MESSAGE_BYTES, MAX_WAITING_BYTES};
use super::note::Note;
use super::reader::{MessageMode, OpenFile};
use super::storage::{Order, Part, Place};
use super::topic::{BagMessage, Topic};
use super::unpack::{Packing, ZSTD_MAGIC, unpack};

/// Iterator over messages, made by [`super::BagReader::messages`]. It ends after its first error.
pub struct Messages {
    files: Arc<[OpenFile]>,
    topics: Vec<Topic>,
    wanted: Vec<bool>,
    message_mode: MessageMode,
    /// Stretches that have not been read, the earliest first.
    parts: BinaryHeap<Reverse<Unread>>,
    /// Messages that have been read and not given out, the earliest first.
    waiting: BinaryHeap<Reverse<Waiting>>,
    waiting_bytes: u64,
    /// Messages given out, by topic.
    counts: Vec<u64>,
    /// Topics of which it was told that their messages are compressed.
    told_packed: Vec<bool>,
    ended: bool,
    notes: Vec<Note>,
}

/// A stretch, ordered by its beginning.
struct Unread {
    start_ns: u64,
    file: usize,
    place: Place,
}

/// A message, ordered by its time and then by its place.
struct Waiting {
    key: (u64, usize, Order),
    topic: usize,
    data: Vec<u8>,
}

impl Messages {
    pub(super) fn new(
        files: Arc<[OpenFile]>,
        topics: Vec<Topic>,
        wanted: Vec<bool>,
        message_mode: MessageMode,
    ) -> Self {
        let mut parts = BinaryHeap::new();
        for (number, file) in files.iter().enumerate() {
            let has_wanted = file.topics.iter().any(|topic| wanted[*topic]);
            if has_wanted {
                let unread = file.stored.parts().into_iter().map(|part| Unread::new(part, number));
                parts.extend(unread.map(Reverse));
            }
        }
        let (counts, told_packed) = (vec![0; topics.len()], vec![false; topics.len()]);
        Self {
            files,
            topics,
            wanted,
            message_mode,
            parts,
            waiting: BinaryHeap::new(),
            waiting_bytes: 0,
            counts,
            told_packed,
            ended: false,
            notes: Vec::new(),
        }
    }

    /// What was found to be odd up to now, beside [`super::BagReader::notes`].
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    fn advance(&mut self) -> Result<Option<BagMessage>, BagError> {
        while let Some(Reverse(part)) = self.parts.peek() {
            let first = self.waiting.peek().map(|Reverse(message)| message.key.0);
            if first.is_some_and(|first| first < part.start_ns) {
                break;
            }
            if let Some(Reverse(part)) = self.parts.pop() {
                self.load(&part)?;
            }
        }
        let Some(Reverse(message)) = self.waiting.pop() else {
            self.compare_counts();
            return Ok(None);
        };
        self.waiting_bytes -= message.data.len() as u64;
        self.counts[message.topic] += 1;
        self.unpacked(message).map(Some)
    }

    fn load(&mut self, part: &Unread) -> Result<(), BagError> {
        let file = &self.files[part.file];
        let mut found = Vec::new();
        let wanted = |topic: usize| self.wanted[file.topics[topic]];
        let next = file.stored.load(part.place, wanted, &mut found)?;
        self.parts.extend(next.map(|next| Reverse(Unread::new(next, part.file))));
        for message in found {
            self.waiting_bytes += message.data.len() as u64;
            self.waiting.push(Reverse(Waiting {
                key: (message.log_time_ns, part.file, message.order),
                topic: file.topics[message.topic],
                data: message.data,
            }));
        }
        if self.waiting_bytes > MAX_WAITING_BYTES {
            let (path, limit) = (file.path.clone(), MAX_WAITING_BYTES);
            return Err(BagError::TooDisordered { path, limit });
        }
        Ok(())
    }

    fn unpacked(&mut self, message: Waiting) -> Result<BagMessage, BagError> {
        let Waiting { key: (log_time_ns, file, _), topic, data } = message;
        let packed = match self.message_mode {
            MessageMode::Plain => false,
            MessageMode::Packed => true,
            MessageMode::Unknown => data.starts_with(&ZSTD_MAGIC),
        };
        if !packed {
            return Ok(BagMessage { topic, log_time_ns, data });
        }
        let name = &self.topics[topic].name;
        if self.message_mode == MessageMode::Unknown && !self.told_packed[topic] {
            self.told_packed[topic] = true;
            self.notes.push(Note::PackedMessages { topic: name.clone() });
        }
        let unpacked = unpack(Packing::Zstd, &data, MAX_MESSAGE_BYTES);
        let empty = data.is_empty().then(|| "it is empty".to_owned());
        match unpacked.broken.or(empty) {
            None => Ok(BagMessage { topic, log_time_ns, data: unpacked.bytes }),
            Some(reason) => {
                let (path, topic) = (self.files[file].path.clone(), name.clone());
                Err(BagError::PackedMessage { path, topic, log_time_ns, reason })
            }
        }
    }

    /// At the end: whether there were as many messages as the bag says.
    fn compare_counts(&mut self) {
        let read = self.topics.iter().zip(&self.counts).zip(&self.wanted);
        for ((topic, &read), _) in read.filter(|(_, wanted)| **wanted) {
            if let Some(stated) = topic.messages.filter(|stated| *stated != read) {
                self.notes.push(Note::CountDiffers { topic: topic.name.clone(), stated, read });
            }
        }
    }
}

impl Iterator for Messages {
    type Item = Result<BagMessage, BagError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.advance().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

impl Unread {
    fn new(part: Part, file: usize) -> Self {
        Self { start_ns: part.start_ns, file, place: part.place }
    }

    fn key(&self) -> (u64, usize) {
        (self.start_ns, self.file)
    }
}

impl PartialEq for Unread {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Unread {}

impl PartialOrd for Unread {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Unread {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}
