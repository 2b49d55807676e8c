//! Checkpoints, parameters and messages that the recordings are made of.

use std::path::{Path, PathBuf};

use gr00t_blackhole::bag::{BagWriter, TopicId};
use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::node::params::{Value, file};
use gr00t_blackhole::recording::message::{Header, JointState, RosMessage, Time};
use gr00t_blackhole::replay::{self, Pace, Replay, ReplayError, Request};
use tempfile::TempDir;

pub const MS: i64 = 1_000_000;
/// When the recordings begin.
pub const START: i64 = 1_767_603_600_000_000_000;

/// A folder with a tiny checkpoint in it.
pub struct Rig {
    pub folder: TempDir,
}

impl Rig {
    pub fn new(version: Version) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        synth::write(version, Size::Tiny, &folder.path().join("tiny"), &|_, _| {})
            .expect("written");
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A replay of the recording `bag` with a parameter file of the repository and these parameters besides.
    pub fn request(&self, config: &str, bag: &str, params: &[(&str, Value)]) -> Request {
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(config);
        let mut overrides = file::read(&config, "/policy").expect("a parameter file");
        let snapshot = Value::Text(self.path("tiny").to_string_lossy().into_owned());
        let more = params.iter().cloned().chain([("snapshot", snapshot)]);
        for (name, value) in more {
            overrides.retain(|(known, _)| known != name);
            overrides.push((name.to_owned(), value));
        }
        Request {
            bag: self.path(bag),
            overrides,
            node: "/policy".to_owned(),
            pace: Pace::Rate(4.0),
            ..Request::default()
        }
    }
}

pub fn run(request: &Request) -> Replay {
    replay::run(request, &|_, _| {}).expect("a replay")
}

pub fn refusal(request: &Request) -> ReplayError {
    match replay::run(request, &|_, _| {}) {
        Ok(_) => panic!("it was replayed"),
        Err(error) => error,
    }
}

pub fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

pub fn time(nanoseconds: i64) -> Time {
    Time::from_nanoseconds(nanoseconds).expect("in range")
}

pub fn header(stamp_ns: i64) -> Header {
    Header { stamp: time(stamp_ns), frame_id: String::new() }
}

pub fn joint_state(stamp_ns: i64, joints: Vec<(String, f64)>) -> JointState {
    let (name, position) = joints.into_iter().unzip();
    JointState { header: header(stamp_ns), name, position, velocity: vec![], effort: vec![] }
}

/// A recording that is put together in any order and written in the order of reception.
#[derive(Default)]
pub struct Recorder {
    topics: Vec<Declare>,
    messages: Vec<(i64, usize, Write)>,
}

type Declare = Box<dyn Fn(&mut BagWriter) -> TopicId>;
type Write = Box<dyn FnOnce(&mut BagWriter, TopicId, i64)>;

/// A topic of a recorder.
pub struct Channel<M> {
    number: usize,
    of: std::marker::PhantomData<M>,
}

impl Recorder {
    pub fn topic<M: RosMessage + 'static>(&mut self, name: &str) -> Channel<M> {
        let name = name.to_owned();
        self.topics.push(Box::new(move |writer| writer.add_topic::<M>(&name).expect("a topic")));
        Channel { number: self.topics.len() - 1, of: std::marker::PhantomData }
    }

    /// Adds a message that is received at `log_ns`.
    pub fn add<M: RosMessage + 'static>(&mut self, topic: &Channel<M>, log_ns: i64, message: M) {
        let write: Write = Box::new(move |writer, topic, log_ns| {
            writer.write(topic, log_ns as u64, &message).expect("written");
        });
        self.messages.push((log_ns, topic.number, write));
    }

    pub fn write(mut self, bag: &Path) {
        self.messages.sort_by_key(|(log_ns, ..)| *log_ns);
        let mut writer = BagWriter::create(bag).expect("a bag");
        let topics: Vec<TopicId> = self.topics.iter().map(|add| add(&mut writer)).collect();
        for (log_ns, topic, write) in self.messages {
            write(&mut writer, topics[topic], log_ns);
        }
        writer.finish().expect("a bag");
    }
}
