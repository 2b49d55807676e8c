//! What happened in a replay, in order.

use super::chunks::Recorded;
use super::input_log::InputLog;
use super::predictions::OtherChunk;
use crate::contract::{ActionChunk, Observation};
use crate::history::{Cause, Reading};

/// A moment at which a chunk was wanted.
#[derive(Clone, Debug)]
pub struct Moment {
    /// Time of reception, nanoseconds.
    pub log_ns: i64,
    /// The node's clock.
    pub ros_ns: i64,
    /// Runs of the clock until here; a jump ends one.
    pub era: usize,
}

/// A moment at which there was an observation.
#[derive(Clone, Debug)]
pub struct Seen {
    pub moment: Moment,
    pub observation: Observation,
    pub readings: Vec<Reading>,
    pub camera_skew_ns: i64,
    pub seed: Option<u64>,
    /// The recorded chunk that was made at this moment, and whether the readings are its own.
    pub goal: Option<(Recorded, bool)>,
}

/// A chunk and what it was made from.
#[derive(Clone, Debug)]
pub struct Predicted {
    pub moment: Moment,
    /// See [`super::digest`].
    pub observation: String,
    pub readings: Vec<Reading>,
    pub camera_skew_ns: i64,
    pub chunk: ActionChunk,
    pub goal: Option<(Recorded, bool)>,
    /// Values that were brought to a limit.
    pub limited: usize,
    /// The chunk of the other policy, if there is one.
    pub other: Option<OtherChunk>,
}

/// A moment at which there was no observation.
#[derive(Clone, Debug)]
pub struct Refused {
    pub moment: Moment,
    pub lacks: Vec<Lacking>,
}

/// One thing that was missing or of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacking {
    /// Camera key, topic of states, `instruction`, `/clock`.
    pub input: String,
    pub cause: Cause,
    pub text: String,
}

/// A moment at which there was an observation, but no chunk.
#[derive(Clone, Debug)]
pub struct Failed {
    pub moment: Moment,
    /// `limit` for a chunk beyond a limit of `action.<key>.*`, `policy` for a prediction that gave none.
    pub kind: &'static str,
    pub text: String,
}

/// A jump of the node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jumped {
    pub log_ns: i64,
    pub by_ns: i64,
}

/// An instruction, and from when on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructed {
    pub log_ns: i64,
    pub text: String,
}

/// Everything that happened.
#[derive(Debug, Default)]
pub struct Events {
    pub predicted: Vec<Predicted>,
    pub refused: Vec<Refused>,
    pub failed: Vec<Failed>,
    /// Moments at which nothing new had come since the prediction before.
    pub unchanged: u64,
    pub jumps: Vec<Jumped>,
    pub instructions: Vec<Instructed>,
    pub cameras: Vec<InputLog>,
    pub states: Vec<InputLog>,
    /// `None` where no group comes from transforms.
    pub transforms: Option<InputLog>,
    /// Messages of commands and chunks that could not be read, by topic.
    pub unread: Vec<InputLog>,
    /// What the reader has to say about the recording.
    pub notes: Vec<String>,
}

impl Events {
    pub fn inputs(&self) -> impl Iterator<Item = &InputLog> {
        self.cameras.iter().chain(&self.states).chain(&self.transforms)
    }
}
