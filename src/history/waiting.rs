//! What an observation lacks, in words.

use std::fmt;

use super::clock::seconds;

/// How the place of a reading begins that is no topic, but the transform between the two frames that follow.
pub const TRANSFORM: &str = "tf ";

/// Everything that keeps an observation from being made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting(pub Vec<WaitingFor>);

/// One thing that an observation lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitingFor {
    /// Simulated time has not started.
    Clock,
    /// Nobody has said what to do.
    Instruction,
    Camera {
        key: String,
        topic: String,
        lack: Lack,
    },
    State {
        groups: Vec<String>,
        topic: String,
        lack: Lack,
    },
    /// The newest frames of two cameras, by key, are too far apart.
    Skew {
        older: String,
        newer: String,
        skew_ns: i64,
        limit_ns: i64,
    },
}

/// What is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// There is no usable reading; `refusal` says why the latest message, if there was one, was not.
    Nothing { refusal: Option<String> },
    /// Readings have come, but all of them before this happened, `ago_ns` ago.
    NothingSince { what: Forgotten, ago_ns: i64, refusal: Option<String> },
    /// The transforms that were received give no pose for this reason; `refusal` says why a transform was not taken in.
    NoPose { reason: String, refusal: Option<String> },
    /// The newest usable reading is too old; no message has been received for `silent_ns`.
    Stale { age_ns: i64, max_age_ns: i64, silent_ns: Option<i64>, refusal: Option<String> },
    /// The camera has sent the same picture again so many times in a row.
    Frozen { repeats: u64, limit: u64 },
    /// The latest sample was refused since a joint has jumped.
    Jumped { reason: String },
    /// The topic has more publishers than it may have; `names` are those of their nodes.
    Publishers { names: Vec<String>, limit: usize },
}

/// Why what an input has said before counts no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// A policy that looks back in time does not see what was there before its goal.
    NewGoal,
    ClockJump,
}

impl Forgotten {
    fn sentence(self) -> &'static str {
        match self {
            Forgotten::NewGoal => "the instruction or goal changed",
            Forgotten::ClockJump => "the clock jumped",
        }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{item}")?;
        }
        Ok(())
    }
}

impl fmt::Display for WaitingFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WaitingFor::Clock => {
                f.write_str("the clock: `use_sim_time` is set and nothing was received on /clock")
            }
            WaitingFor::Instruction => f.write_str(
                "an instruction: set the parameter `instruction`, or call ~/set_instruction",
            ),
            WaitingFor::Camera { key, topic, lack } => {
                write!(f, "camera '{key}' (topic {topic}): {}", lack.text("frame"))
            }
            WaitingFor::State { groups, topic, lack } => {
                // A transform between two frames is no topic.
                let word = if topic.starts_with(TRANSFORM) { "" } else { "topic " };
                write!(f, "state {} ({word}{topic}): {}", groups.join(", "), lack.text("sample"))
            }
            WaitingFor::Skew { older, newer, skew_ns, limit_ns } => write!(
                f,
                "cameras '{older}' and '{newer}' to show the same moment: the newest frame of '{older}' is {:.3} s older \
                 than that of '{newer}' (limit {:.3} s, `camera_skew_max_ms`)",
                seconds(*skew_ns),
                seconds(*limit_ns)
            ),
        }
    }
}

impl Lack {
    /// Whether the input has been heard, but not for longer than its newest reading may be old.
    pub(super) fn is_silence(&self) -> bool {
        matches!(self, Lack::Stale { max_age_ns, silent_ns: Some(silent_ns), .. } if silent_ns > max_age_ns)
    }

    fn text(&self, reading: &str) -> String {
        match self {
            Lack::Nothing { refusal: None } => format!("no {reading} yet"),
            Lack::Nothing { refusal: Some(reason) } => {
                format!("no usable {reading} yet, the latest was refused: {reason}")
            }
            Lack::NothingSince { what, ago_ns, refusal } => {
                let refused = refusal.as_ref();
                let refused = refused.map(|reason| format!(", the latest was refused: {reason}"));
                let usable = if refused.is_some() { "usable " } else { "" };
                format!(
                    "no {usable}{reading} since {}, {:.3} s ago{}",
                    what.sentence(),
                    seconds(*ago_ns),
                    refused.unwrap_or_default()
                )
            }
            Lack::NoPose { reason, refusal } => {
                let refused = refusal.as_ref().map(|text| format!("; refused was {text}"));
                format!("no pose: {reason}{}", refused.unwrap_or_default())
            }
            Lack::Stale { age_ns, max_age_ns, silent_ns, refusal } => {
                let age = format!(
                    "the newest {reading} is {:.3} s old (limit {:.3} s)",
                    seconds(*age_ns),
                    seconds(*max_age_ns)
                );
                let refused = refusal
                    .as_ref()
                    .map(|reason| format!(", the latest message was refused: {reason}"));
                let silence = silent_ns
                    .filter(|_| refused.is_none() || self.is_silence())
                    .map(|silent| format!(", nothing received for {:.3} s", seconds(silent)));
                format!("{age}{}{}", refused.unwrap_or_default(), silence.unwrap_or_default())
            }
            Lack::Frozen { repeats, limit } => format!(
                "frozen: the last {repeats} {reading}s had new stamps, but the same bytes as the one before (limit \
                 {limit}, `frozen_camera_frames`)"
            ),
            Lack::Jumped { reason } => format!("the latest {reading} was refused: {reason}"),
            Lack::Publishers { names, limit } => format!(
                "{} publishers ({}), of which one is wrong (limit {limit}, `state_publishers_max`)",
                names.len(),
                names.join(", ")
            ),
        }
    }
}
