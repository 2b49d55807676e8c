//! Bags made at test time.

use std::fs;
use std::path::{Path, PathBuf};

use gr00t_blackhole::bag::{Bag, BagError, BagReader, BagWriter};
use gr00t_blackhole::recording::message::{Header, JointState, Time, deserialize, serialize};
use mcap::records::op;

pub const SECOND: u64 = 1_000_000_000;

/// A message that tells its number.
pub fn state(number: i32) -> JointState {
    JointState {
        header: Header { stamp: Time { sec: number, nanosec: 5 }, frame_id: "base".into() },
        name: vec!["knee".into()],
        position: vec![f64::from(number)],
        velocity: vec![],
        effort: vec![],
    }
}

pub fn bytes(number: i32) -> Vec<u8> {
    serialize(&state(number)).unwrap()
}

/// The numbers of messages, in their order; each has to be one of ours to the last byte.
pub fn numbers(bag: &Bag) -> Vec<i32> {
    let number = |data: &[u8]| {
        let found: JointState = deserialize(data).unwrap();
        let number = found.header.stamp.sec;
        assert_eq!(found, state(number));
        number
    };
    bag.messages.iter().map(|message| number(&message.data)).collect()
}

/// What is read of a bag until its end or its first error.
pub fn read_until_error(path: &Path) -> (Bag, Option<BagError>) {
    let mut bag = Bag::default();
    let reader = match BagReader::open(path) {
        Ok(reader) => reader,
        Err(error) => return (bag, Some(error)),
    };
    bag.topics = reader.topics().to_vec();
    let mut messages = match reader.messages(|_| true) {
        Ok(messages) => messages,
        Err(error) => return (bag, Some(error)),
    };
    for message in messages.by_ref() {
        match message {
            Ok(message) => bag.messages.push(message),
            Err(error) => return (bag, Some(error)),
        }
    }
    bag.notes = [reader.notes(), messages.notes()].concat();
    (bag, None)
}

pub fn notes(bag: &Bag) -> String {
    bag.notes.iter().map(|note| format!("{note}\n")).collect()
}

pub fn refusal(path: &Path) -> String {
    read_until_error(path).1.expect("a refusal").to_string()
}

/// A bag of our own writer, with message `n` received at second `n`.
pub fn written(directory: &Path, seconds: &[i32]) -> PathBuf {
    let mut writer = BagWriter::create(directory).unwrap();
    let topic = writer.add_topic::<JointState>("/states").unwrap();
    for second in seconds {
        writer.write(topic, *second as u64 * SECOND, &state(*second)).unwrap();
    }
    writer.finish().unwrap();
    let name = directory.file_name().unwrap().to_str().unwrap();
    directory.join(format!("{name}_0.mcap"))
}

/// `metadata.yaml` as rosbag2 5 writes it for these files.
pub fn metadata(directory: &Path, storage: &str, files: &[&str], more: &str) {
    let files: String = files.iter().map(|file| format!("    - {file}\n")).collect();
    let text = format!(
        "rosbag2_bagfile_information:\n  version: 5\n  storage_identifier: {storage}\n  relative_file_paths:\n{files}{more}"
    );
    fs::write(directory.join("metadata.yaml"), text).unwrap();
}

/// Records of an MCAP file, put together by hand.
#[derive(Default)]
pub struct Records(pub Vec<u8>);

impl Records {
    pub fn record(&mut self, opcode: u8, body: &[u8]) -> &mut Self {
        self.0.push(opcode);
        self.0.extend((body.len() as u64).to_le_bytes());
        self.0.extend(body);
        self
    }

    pub fn schema(&mut self, id: u16, name: &str, encoding: &str, text: &str) -> &mut Self {
        let body = [&id.to_le_bytes()[..], &string(name), &string(encoding), &string(text)];
        self.record(op::SCHEMA, &body.concat())
    }

    pub fn channel(&mut self, id: u16, schema: u16, topic: &str, encoding: &str) -> &mut Self {
        let ids = [id.to_le_bytes(), schema.to_le_bytes()].concat();
        let body = [&ids[..], &string(topic), &string(encoding), &0u32.to_le_bytes()];
        self.record(op::CHANNEL, &body.concat())
    }

    /// Schema and channel 1 for joint states on `/states`.
    pub fn declared(&mut self) -> &mut Self {
        self.schema(1, "sensor_msgs/msg/JointState", "ros2msg", "std_msgs/Header header\n");
        self.channel(1, 1, "/states", "cdr")
    }

    pub fn message(&mut self, channel: u16, time: u64, data: &[u8]) -> &mut Self {
        let times = [time.to_le_bytes(), time.to_le_bytes()].concat();
        let body = [&channel.to_le_bytes()[..], &0u32.to_le_bytes(), &times, data];
        self.record(op::MESSAGE, &body.concat())
    }

    /// Message `number` on channel 1, received in that second.
    pub fn state(&mut self, number: i32) -> &mut Self {
        self.message(1, number as u64 * SECOND, &bytes(number))
    }

    /// A chunk of `inner`, from second `first` to second `last`.
    pub fn chunk(&mut self, first: i32, last: i32, packing: &str, inner: &Records) -> &mut Self {
        let packed = match packing {
            "zstd" => zstd::encode_all(&inner.0[..], 3).unwrap(),
            "lz4" => {
                let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
                std::io::Write::write_all(&mut encoder, &inner.0).unwrap();
                encoder.finish().unwrap()
            }
            _ => inner.0.clone(),
        };
        let words = [first as u64 * SECOND, last as u64 * SECOND, inner.0.len() as u64];
        let mut body = words.map(u64::to_le_bytes).concat();
        body.extend(crc32fast::hash(&inner.0).to_le_bytes());
        body.extend(string(packing));
        body.extend((packed.len() as u64).to_le_bytes());
        body.extend(packed);
        self.record(op::CHUNK, &body)
    }

    /// The whole file, without a summary.
    pub fn finished(&self) -> Vec<u8> {
        let mut whole = Records(self.unfinished());
        whole.record(op::DATA_END, &[0; 4]).record(op::FOOTER, &[0; 20]);
        [&whole.0[..], mcap::MAGIC].concat()
    }

    /// The file as a recorder that was killed leaves it.
    pub fn unfinished(&self) -> Vec<u8> {
        let mut whole = Records(mcap::MAGIC.to_vec());
        whole.record(op::HEADER, &[string("ros2"), string("by hand")].concat());
        [whole.0, self.0.clone()].concat()
    }
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A SQLite bag file as rosbag2 wrote it since its first version, with `rows` of topic, time and data.
pub fn sqlite(path: &Path, topics: &[(i64, &str, &str)], rows: &[(i64, i64, Vec<u8>)]) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let tables = "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, serialization_format TEXT NOT NULL);
        CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL, data BLOB NOT NULL);
        CREATE INDEX timestamp_idx ON messages (timestamp ASC);";
    connection.execute_batch(tables).unwrap();
    fill(&connection, topics, rows);
}

pub fn fill(
    connection: &rusqlite::Connection,
    topics: &[(i64, &str, &str)],
    rows: &[(i64, i64, Vec<u8>)],
) {
    connection.execute_batch("BEGIN").unwrap();
    for (id, name, encoding) in topics {
        let statement = "INSERT INTO topics (id, name, type, serialization_format) VALUES (?1, ?2, 'sensor_msgs/msg/JointState', ?3)";
        connection.execute(statement, (id, name, encoding)).unwrap();
    }
    for row in rows {
        let statement = "INSERT INTO messages (topic_id, timestamp, data) VALUES (?1, ?2, ?3)";
        connection.execute(statement, (row.0, row.1, &row.2)).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
}

/// Rows of `/states` (topic 1), message `n` at second `n`.
pub fn rows(seconds: &[i32]) -> Vec<(i64, i64, Vec<u8>)> {
    let row = |&second: &i32| (1, i64::from(second) * SECOND as i64, bytes(second));
    seconds.iter().map(row).collect()
}
