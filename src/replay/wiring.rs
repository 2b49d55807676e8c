//! Which topic of the recording is what for the node.

use super::error::ReplayError;
use super::source::RecordedTopic;
use crate::node::messages::{JointState, JointTrajectory, RecordedChunk, TfMessage};
use crate::node::settings::Settings;

/// `rosgraph_msgs/msg/Clock`
pub const CLOCK_TYPE: &str = "rosgraph_msgs/msg/Clock";
const CLOCK_TOPIC: &str = "/clock";

/// What is done with the messages of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Number of the camera in the settings.
    Camera(usize),
    /// Number of the state source in the settings.
    State(usize),
    Transforms {
        fixed: bool,
    },
    Clock,
    /// What the robot was commanded to do.
    Commands,
    /// Chunks of a node that ran while the recording was made.
    Chunks,
}

/// The roles of every topic that has one.
#[derive(Debug, Default)]
pub struct Wiring {
    /// By the topic's index in the recording.
    pub roles: Vec<(usize, Role)>,
    pub commands: Option<CommandTopic>,
    /// Topic of recorded chunks.
    pub chunks: Option<String>,
}

/// The topic of recorded commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandTopic {
    pub name: String,
    pub message_type: String,
}

/// What the user says about the recording's topics.
#[derive(Clone, Debug, Default)]
pub struct Named {
    pub commands: Option<String>,
    pub chunks: Option<String>,
    /// Recorded chunks are needed.
    pub needs_chunks: bool,
    pub use_sim_time: bool,
}

impl Wiring {
    /// Finds every topic of the settings, which are resolved to full names.
    ///
    /// # Errors
    /// Everything that the recording lacks, and what it has instead.
    pub fn new(
        topics: &[RecordedTopic],
        settings: &Settings,
        named: &Named,
    ) -> Result<Self, ReplayError> {
        let mut problems = Vec::new();
        let mut wiring = Self::default();
        for (number, camera) in settings.cameras.iter().enumerate() {
            let what = format!("camera '{}'", camera.key);
            let wanted = camera.transport.message_type();
            let hint = format!("camera.{}.topic and .transport", camera.key);
            let found = find(topics, &camera.topic, wanted, &what, &hint, &mut problems);
            wiring.roles.extend(found.map(|topic| (topic, Role::Camera(number))));
        }
        for (number, state) in settings.states.iter().enumerate() {
            let groups = state.reader.groups().join(", ");
            let what = format!("state {groups}");
            let wanted = state.reader.message_type();
            let hint = "the topic parameters of these groups";
            let found = find(topics, &state.topic, wanted, &what, hint, &mut problems);
            wiring.roles.extend(found.map(|topic| (topic, Role::State(number))));
        }
        wiring.transforms(topics, settings, &mut problems);
        if named.use_sim_time {
            let hint = "use_sim_time, which follows it";
            let found = find(topics, CLOCK_TOPIC, CLOCK_TYPE, "the clock", hint, &mut problems);
            wiring.roles.extend(found.map(|topic| (topic, Role::Clock)));
        }
        wiring.recorded_chunks(topics, named, &mut problems);
        wiring.recorded_commands(topics, settings, named, &mut problems);
        match problems.is_empty() {
            true => Ok(wiring),
            false => Err(ReplayError::Topics(problems)),
        }
    }

    /// The topics whose messages are wanted.
    pub fn wanted(&self) -> Vec<usize> {
        let mut wanted: Vec<usize> = self.roles.iter().map(|(topic, _)| *topic).collect();
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    pub fn roles_of(&self, topic: usize) -> impl Iterator<Item = Role> {
        self.roles.iter().filter(move |(of, _)| *of == topic).map(|(_, role)| *role)
    }

    fn transforms(
        &mut self,
        topics: &[RecordedTopic],
        settings: &Settings,
        problems: &mut Vec<String>,
    ) {
        if settings.transforms.is_empty() {
            return;
        }
        let before = self.roles.len();
        for (name, fixed) in [("/tf", false), ("/tf_static", true)] {
            let found = topics
                .iter()
                .position(|topic| topic.name == name && topic.message_type == TfMessage::TYPE);
            self.roles.extend(found.map(|topic| (topic, Role::Transforms { fixed })));
        }
        if self.roles.len() == before {
            let groups: Vec<&str> =
                settings.transforms.iter().map(|wanted| wanted.group.as_str()).collect();
            problems.push(format!(
                "state {}: the recording has neither /tf nor /tf_static",
                groups.join(", ")
            ));
        }
    }

    fn recorded_chunks(
        &mut self,
        topics: &[RecordedTopic],
        named: &Named,
        problems: &mut Vec<String>,
    ) {
        let found = match &named.chunks {
            Some(name) => {
                let hint = "--chunks";
                find(topics, name, RecordedChunk::TYPE, "recorded chunks", hint, problems)
            }
            None => match &of_type(topics, RecordedChunk::TYPE)[..] {
                [only] => Some(*only),
                [] => {
                    if named.needs_chunks {
                        problems.push(format!(
                            "--at-goals needs recorded chunks, and the recording has no topic of type {}",
                            RecordedChunk::TYPE
                        ));
                    }
                    None
                }
                several => {
                    if named.needs_chunks {
                        problems.push(format!(
                            "--at-goals: the recording has several topics of chunks ({}); choose one with --chunks",
                            names(topics, several)
                        ));
                    }
                    None
                }
            },
        };
        self.chunks = found.map(|topic| topics[topic].name.clone());
        self.roles.extend(found.map(|topic| (topic, Role::Chunks)));
    }

    /// The topic that is named, or the only one that can hold commands: a trajectory, else recorded chunks. Joint states
    /// are taken for commands only where they are named, since most are measured.
    fn recorded_commands(
        &mut self,
        topics: &[RecordedTopic],
        settings: &Settings,
        named: &Named,
        problems: &mut Vec<String>,
    ) {
        let types = [JointTrajectory::TYPE, JointState::TYPE, RecordedChunk::TYPE];
        let found = match &named.commands {
            Some(name) => {
                let found = topics.iter().position(|topic| topic.name == *name);
                let usable =
                    found.filter(|topic| types.contains(&topics[*topic].message_type.as_str()));
                if usable.is_none() {
                    let has = match found {
                        Some(topic) => format!("it is of type {}", topics[topic].message_type),
                        None => "the recording has no such topic".to_owned(),
                    };
                    let known: Vec<usize> =
                        types.iter().flat_map(|name| of_type(topics, name)).collect();
                    problems.push(format!(
                        "commands on {name}: {has}; commands are of type {}. The recording has of these: {}",
                        types.join(", "),
                        names(topics, &known)
                    ));
                }
                usable
            }
            None => {
                let of_trajectories = of_type(topics, JointTrajectory::TYPE);
                let of_chunks = self
                    .chunks
                    .as_ref()
                    .and_then(|name| topics.iter().position(|topic| topic.name == *name));
                match &of_trajectories[..] {
                    [only] => Some(*only),
                    _ => of_chunks,
                }
            }
        };
        let Some(topic) = found else { return };
        let RecordedTopic { name, message_type } = topics[topic].clone();
        let is_state = settings.states.iter().any(|state| state.topic == name);
        if is_state && named.commands.is_some() {
            problems.push(format!(
                "commands on {name}: that is the topic of the measured states; name the one of the commands"
            ));
        }
        self.commands = Some(CommandTopic { name, message_type });
        self.roles.push((topic, Role::Commands));
    }
}

/// The topic of this name and type; otherwise a problem.
fn find(
    topics: &[RecordedTopic],
    name: &str,
    message_type: &str,
    what: &str,
    hint: &str,
    problems: &mut Vec<String>,
) -> Option<usize> {
    let known = topics.iter().position(|topic| topic.name == name);
    if let Some(topic) = known.filter(|topic| topics[*topic].message_type == message_type) {
        return Some(topic);
    }
    let has = match known {
        Some(topic) => format!("the recording's {name} is of type {}", topics[topic].message_type),
        None => format!("the recording has no topic {name}"),
    };
    let others = names(topics, &of_type(topics, message_type));
    problems.push(format!("{what}: {has}; of type {message_type} it has: {others} ({hint})"));
    None
}

fn of_type(topics: &[RecordedTopic], message_type: &str) -> Vec<usize> {
    let is_of_type = |(number, topic): (usize, &RecordedTopic)| {
        (topic.message_type == message_type).then_some(number)
    };
    topics.iter().enumerate().filter_map(is_of_type).collect()
}

fn names(topics: &[RecordedTopic], chosen: &[usize]) -> String {
    let mut names: Vec<&str> = chosen.iter().map(|topic| topics[*topic].name.as_str()).collect();
    names.sort_unstable();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
