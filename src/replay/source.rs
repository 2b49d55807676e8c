//! Where recorded messages come from: the one place that knows the bag reader.

use std::path::Path;

use crate::recording::bag::{Bag, BagError, BagMessage, Topic};

/// A topic of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedTopic {
    pub name: String,
    /// Such as `sensor_msgs/msg/JointState`.
    pub message_type: String,
}

/// One message as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedMessage {
    /// Index into [`Recording::topics`].
    pub topic: usize,
    /// When the recorder received it, nanoseconds.
    pub log_ns: i64,
    /// Encapsulation and CDR fields.
    pub data: Vec<u8>,
}

/// A bag that can be read any number of times.
pub struct Recording {
    bag: Bag,
    topics: Vec<RecordedTopic>,
}

impl Recording {
    /// Opens a bag: its directory, or a single file.
    ///
    /// # Errors
    /// No bag, or one that cannot be read.
    pub fn open(path: &Path) -> Result<Self, BagError> {
        let bag = Bag::read(path)?;
        let topic = |topic: &Topic| RecordedTopic {
            name: topic.name.clone(),
            message_type: topic.message_type.clone(),
        };
        Ok(Self { topics: bag.topics.iter().map(topic).collect(), bag })
    }

    pub fn topics(&self) -> &[RecordedTopic] {
        &self.topics
    }

    /// First and last time of reception, nanoseconds; `None` for an empty bag.
    pub fn span(&self) -> Option<[i64; 2]> {
        let time = |message: &BagMessage| log_ns(message.log_time_ns);
        Some([time(self.bag.messages.first()?), time(self.bag.messages.last()?)])
    }

    /// The messages of these topics, in the order in which they were received.
    ///
    /// # Errors
    /// Messages of these topics cannot be read.
    pub fn messages(&self, wanted: &[usize]) -> Result<RecordedMessages<'_>, BagError> {
        let wanted = (0..self.topics.len()).map(|topic| wanted.contains(&topic)).collect();
        Ok(RecordedMessages { messages: self.bag.messages.iter(), wanted })
    }
}

/// Messages on their way out of a recording.
pub struct RecordedMessages<'a> {
    messages: std::slice::Iter<'a, BagMessage>,
    wanted: Vec<bool>,
}

impl RecordedMessages<'_> {
    /// What the reader has to say about the bag itself, such as a last chunk that was cut off; complete when the last
    /// message has been read.
    pub fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Iterator for RecordedMessages<'_> {
    type Item = Result<RecordedMessage, BagError>;

    fn next(&mut self) -> Option<Self::Item> {
        let message = self.messages.find(|message| self.wanted[message.topic])?;
        Some(Ok(RecordedMessage {
            topic: message.topic,
            log_ns: log_ns(message.log_time_ns),
            data: message.data.clone(),
        }))
    }
}

/// A time of reception. Those of after 2262 are no times.
fn log_ns(unsigned: u64) -> i64 {
    i64::try_from(unsigned).unwrap_or(i64::MAX)
}
