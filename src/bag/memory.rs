//! A bag in memory.

use std::path::Path;
use std::time::Duration;

use super::error::BagError;
use super::limits::MAX_BAG_BYTES;
use super::note::Note;
use super::reader::BagReader;
use super::topic::{BagMessage, Topic};

/// A bag that is in memory as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bag {
    pub topics: Vec<Topic>,
    /// In the order in which they were received.
    pub messages: Vec<BagMessage>,
    /// What is odd about the bag.
    pub notes: Vec<Note>,
}

impl Bag {
    /// Reads all messages of the bag at `path`, as [`BagReader`] does.
    ///
    /// # Errors
    /// A bag that cannot be read, messages that are not CDR, or more than [`MAX_BAG_BYTES`] of them.
    pub fn read(path: &Path) -> Result<Self, BagError> {
        let reader = BagReader::open(path)?;
        let mut messages = reader.messages(|_| true)?;
        let mut bag = Self { topics: reader.topics().to_vec(), ..Self::default() };
        let mut bytes = 0;
        for message in messages.by_ref() {
            let message = message?;
            bytes += message.data.len() as u64;
            if bytes > MAX_BAG_BYTES {
                return Err(BagError::BagTooLarge(path.into()));
            }
            bag.messages.push(message);
        }
        bag.notes = [reader.notes(), messages.notes()].concat();
        Ok(bag)
    }

    /// Time from the first message to the last.
    pub fn duration(&self) -> Duration {
        let ends = self.messages.first().zip(self.messages.last());
        let nanoseconds = ends.map_or(0, |(first, last)| last.log_time_ns - first.log_time_ns);
        Duration::from_nanos(nanoseconds)
    }
}
