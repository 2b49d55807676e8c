//! Which topic each channel of a file stands for.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcap::records::Channel;

use super::records::Parsed;
use crate::bag::limits::MAX_TOPICS;
use crate::bag::topic::{Topic, is_stamped};

#[derive(Clone, PartialEq, Eq)]
struct Schema {
    name: String,
    encoding: String,
    data: Arc<[u8]>,
}

#[derive(Clone)]
struct Known {
    channel: Channel,
    /// Index into the topics.
    topic: usize,
}

/// Schemas, channels and topics of one file, as far as they have been read.
#[derive(Clone, Default)]
pub(super) struct Channels {
    schemas: BTreeMap<u16, Schema>,
    channels: BTreeMap<u16, Known>,
    pub topics: Vec<Topic>,
}

impl Channels {
    /// Index of the topic whose messages come on channel `id`.
    pub fn topic(&self, id: u16) -> Option<usize> {
        self.channels.get(&id).map(|known| known.topic)
    }

    pub fn len(&self) -> usize {
        self.channels.len()
    }

    /// Takes in a schema or channel record; those that are known must be as they were.
    ///
    /// # Errors
    /// A record that contradicts an earlier one or refers to a schema that has not come.
    pub fn add(&mut self, parsed: Parsed<'_>) -> Result<(), String> {
        match parsed {
            Parsed::Schema { id, name, encoding, data } => {
                let schema = Schema { name, encoding, data: data.as_ref().into() };
                match self.schemas.get(&id) {
                    Some(known) if *known != schema => {
                        Err(format!("schema {id} is {} and {}", known.name, schema.name))
                    }
                    Some(_) => Ok(()),
                    None => {
                        self.schemas.insert(id, schema);
                        Ok(())
                    }
                }
            }
            Parsed::Channel(channel) => self.add_channel(channel),
            Parsed::Message { .. } | Parsed::Other => Ok(()),
        }
    }

    /// Whether a channel record says what is known of it.
    pub fn agrees(&self, channel: &Channel) -> bool {
        self.channels.get(&channel.id).is_some_and(|known| same(&known.channel, channel))
    }

    fn add_channel(&mut self, channel: Channel) -> Result<(), String> {
        if let Some(known) = self.channels.get(&channel.id) {
            if same(&known.channel, &channel) {
                return Ok(());
            }
            let (id, first, second) = (channel.id, &known.channel.topic, &channel.topic);
            return Err(format!("channel {id} is {first} and {second}"));
        }
        let schema =
            match channel.schema_id {
                0 => None,
                id => {
                    let schema = self.schemas.get(&id);
                    Some(schema.ok_or_else(|| {
                        format!("channel {} lacks its schema {id}", channel.topic)
                    })?)
                }
            };
        let message_type = schema.map_or_else(String::new, |schema| schema.name.clone());
        let definition = schema.map(|schema| (schema.encoding.as_str(), &*schema.data));
        let stamped = is_stamped(&message_type, definition);
        let (name, encoding) = (channel.topic.clone(), channel.message_encoding.clone());
        let found = Topic { name, message_type, encoding, stamped, messages: None };
        // Several publishers may have a channel each.
        let topic = self.topics.iter().position(|topic| *topic == found);
        let topic = match topic {
            Some(topic) => topic,
            None if self.topics.len() == MAX_TOPICS => {
                return Err(format!("it has more than {MAX_TOPICS} topics"));
            }
            None => {
                self.topics.push(found);
                self.topics.len() - 1
            }
        };
        self.channels.insert(channel.id, Known { channel, topic });
        Ok(())
    }
}

fn same(a: &Channel, b: &Channel) -> bool {
    (a.schema_id, &a.topic, &a.message_encoding) == (b.schema_id, &b.topic, &b.message_encoding)
}
