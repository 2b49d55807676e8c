//! Where recorded messages come from: the one place that knows the bag reader.

use crate::bag::{BagError, BagReader, Messages, Note, Topic};

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
    bag: BagReader,
    topics: Vec<RecordedTopic>,
}

impl Recording {
    /// Takes an opened bag.
    pub fn of(bag: BagReader) -> Self {
        let topic = |topic: &Topic| RecordedTopic {
            name: topic.name.clone(),
            message_type: topic.message_type.clone(),
        };
        let topics = bag.topics().iter().map(topic).collect();
        Self { bag, topics }
    }

    pub fn topics(&self) -> &[RecordedTopic] {
        &self.topics
    }

    /// First and last time of reception, nanoseconds; `None` for an empty bag.
    pub fn span(&self) -> Option<[i64; 2]> {
        self.bag.span_ns().map(|(first, last)| [log_ns(first), log_ns(last)])
    }

    /// The messages of these topics, in the order in which they were received.
    ///
    /// # Errors
    /// A topic whose messages are not CDR.
    pub fn messages(&self, wanted: &[usize]) -> Result<RecordedMessages<'_>, BagError> {
        let topics = self.bag.topics();
        let is_wanted = |topic: &Topic| wanted.iter().any(|&number| topics[number] == *topic);
        Ok(RecordedMessages { bag: &self.bag, messages: self.bag.messages(is_wanted)? })
    }
}

/// Messages on their way out of a recording.
pub struct RecordedMessages<'a> {
    bag: &'a BagReader,
    messages: Messages,
}

impl RecordedMessages<'_> {
    /// What the reader has to say about the bag itself, such as a last chunk that was cut off; complete when the last
    /// message has been read.
    pub fn notes(&self) -> Vec<String> {
        let notes = self.bag.notes().iter().chain(self.messages.notes());
        notes.map(Note::to_string).collect()
    }
}

impl Iterator for RecordedMessages<'_> {
    type Item = Result<RecordedMessage, BagError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.messages.next()?;
        Some(next.map(|message| RecordedMessage {
            topic: message.topic,
            log_ns: log_ns(message.log_time_ns),
            data: message.data,
        }))
    }
}

/// A time of reception. Those of after 2262 are no times.
fn log_ns(unsigned: u64) -> i64 {
    i64::try_from(unsigned).unwrap_or(i64::MAX)
}
