//! What a replay has found, as `report.json` has it; `docs/replay.md` explains every key.
//!
//! Nothing in here depends on the machine or on the time of day, so that two replays of a recording write the same bytes.

use std::collections::BTreeMap;

use serde::Serialize;

use super::alternative::Fidelity;
use super::borders::Borders;
use super::bounds::{Checked, Measures};
use super::equality::Equality;
use super::open_loop::OpenLoop;
use super::outages::Outage;

/// Of `report.json`.
pub const SCHEMA: u32 = 1;

/// See the module. Times are seconds since the recording's first message, by the times of reception.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub schema: u32,
    pub program: String,
    pub recording: RecordingFacts,
    pub policy: PolicyFacts,
    pub moments: Moments,
    pub instructions: Vec<InstructionFacts>,
    /// Cameras, states, transforms.
    pub inputs: Vec<InputFacts>,
    pub clock_jumps: Vec<ClockJumpFacts>,
    /// Until the first complete observation.
    pub start: StartFacts,
    pub refusals: Refusals,
    pub outages: Vec<Outage>,
    pub failures: Vec<FailureFacts>,
    pub borders: Borders,
    pub commands: Option<OpenLoop>,
    pub recorded_chunks: Option<Equality>,
    pub previous: Option<Equality>,
    pub against: Option<Fidelity>,
    /// Every number that `--expect` can ask for.
    pub measures: Measures,
    pub bounds: Vec<Checked>,
    /// Bounds of something that was not measured, each in a sentence.
    pub unmeasured: Vec<String>,
    /// The report in sentences.
    pub findings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecordingFacts {
    pub path: String,
    /// Nanoseconds since the epoch.
    pub start_ns: i64,
    pub duration_s: f64,
    /// What the reader says about the bag.
    pub notes: Vec<String>,
    /// Messages of commands or chunks that could not be read.
    pub unread: Vec<MessageKind>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyFacts {
    pub version: String,
    pub embodiment: String,
    pub snapshot: String,
    pub backend: String,
    pub numerics: String,
    pub seed: u64,
    pub horizon: usize,
    pub dt_ms: f64,
    /// `stamp` or `receive`.
    pub timeline: String,
    /// `system` or `simulated`.
    pub clock: String,
    /// From the moment of an observation until its chunk counts, as it was assumed.
    pub latency_ms: f64,
    /// `parameter`, `argument` or `recorded chunks`.
    pub instructions_from: String,
}

/// Moments at which a chunk was wanted: each is one of `chunks`, `refused`, `unchanged`, `failed`, or before the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Moments {
    /// Such as `every 0.5 s`.
    pub when: String,
    pub wanted: u64,
    pub chunks: u64,
    pub refused: u64,
    /// Nothing new had come since the prediction before.
    pub unchanged: u64,
    pub failed: u64,
    /// Chunks of which values were brought to a limit.
    pub limited: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstructionFacts {
    pub from_s: f64,
    pub text: String,
    pub chunks: u64,
    /// Predictions that were refused since the frames of the instruction before were forgotten.
    pub refused: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InputFacts {
    pub name: String,
    pub topic: String,
    #[serde(rename = "type")]
    pub message_type: String,
    pub received: u64,
    /// Of these, messages that became readings.
    pub taken: u64,
    pub refused: u64,
    /// By gaps of the stamps.
    pub lost: u64,
    /// Between the first and the last reading.
    pub mean_hz: Option<f64>,
    /// By the stamps, near the end.
    pub sent_hz: Option<f64>,
    pub longest_gap: Option<GapFacts>,
    /// Age of the newest reading when it was predicted from.
    pub age_ms: Option<Ages>,
    pub refusals: Vec<MessageKind>,
    pub formats: Vec<MessageKind>,
    /// When the names of the joints came in another order than before.
    pub order_changes_s: Vec<f64>,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GapFacts {
    pub from_s: f64,
    pub to_s: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ages {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

/// Messages of a kind: the text of the first one, how many, and the first and last time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MessageKind {
    pub text: String,
    pub count: u64,
    pub first_s: f64,
    pub last_s: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClockJumpFacts {
    pub at_s: f64,
    pub by_s: f64,
    /// Predictions that were refused until all inputs had come again.
    pub refused: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StartFacts {
    /// Moments at which not everything had come yet.
    pub waited: u64,
    /// Of the first moment with an observation.
    pub complete_s: Option<f64>,
    pub waited_for: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Refusals {
    /// A refused prediction counts once for each of its causes.
    pub by_cause: BTreeMap<String, u64>,
    pub by_input: BTreeMap<String, u64>,
    /// All of them.
    pub list: Vec<RefusalFacts>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RefusalFacts {
    pub at_s: f64,
    pub causes: Vec<String>,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailureFacts {
    pub at_s: f64,
    /// `limit` or `policy`.
    pub kind: String,
    pub text: String,
}
