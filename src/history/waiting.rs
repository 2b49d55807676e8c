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
}

/// What is wrong with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// There is no usable reading; `refusal` says why the latest message, if there was one, was not.
    Nothing { refusal: Option<String> },
    /// The transforms that were received give no pose for this reason; `refusal` says why a transform was not taken in.
    NoPose { reason: String, refusal: Option<String> },
    /// The newest usable reading is too old; no message has been received for `silent_ns`.
    Stale { age_ns: i64, max_age_ns: i64, silent_ns: Option<i64>, refusal: Option<String> },
}

impl Waiting {
    /// Camera key, state group or topic that the first lack is about, and whether a message came but cannot be used.
    pub fn input(&self) -> Option<(String, bool)> {
        self.0.iter().find_map(|lack| match lack {
            WaitingFor::Clock | WaitingFor::Instruction => None,
            WaitingFor::Camera { key, lack, .. } => Some((key.clone(), lack.is_refusal())),
            WaitingFor::State { groups, lack, .. } => {
                Some((groups.first().cloned().unwrap_or_default(), lack.is_refusal()))
            }
        })
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
        }
    }
}

impl Lack {
    fn is_refusal(&self) -> bool {
        match self {
            Lack::Nothing { refusal }
            | Lack::NoPose { refusal, .. }
            | Lack::Stale { refusal, .. } => refusal.is_some(),
        }
    }

    fn text(&self, reading: &str) -> String {
        match self {
            Lack::Nothing { refusal: None } => format!("no {reading} yet"),
            Lack::Nothing { refusal: Some(reason) } => {
                format!("no usable {reading} yet, the latest was refused: {reason}")
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
                match (refusal, silent_ns) {
                    (Some(reason), _) => format!("{age}, the latest message was refused: {reason}"),
                    (None, Some(silent)) => {
                        format!("{age}, nothing received for {:.3} s", seconds(*silent))
                    }
                    (None, None) => age,
                }
            }
        }
    }
}
