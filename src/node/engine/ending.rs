//! Why a goal has ended, as clients are told.

use r2r::gr00t_blackhole::action::PredictChunk::Result as ResultMessage;

use super::super::action::goals::End;
use super::super::stats::FailureKind;
use super::super::worker::Failure;
use crate::contract::ActionChunk;
use crate::decode::DecodeError;
use crate::history::{Waiting, WaitingFor, seconds};
use crate::policy::PolicyError;

/// Why a goal has ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    Succeeded,
    Cancelled,
    Replaced,
    /// Something is missing or too old.
    StaleInput {
        input: String,
        message: String,
    },
    /// Something came that cannot be used.
    BadInput {
        input: String,
        message: String,
    },
    ClockReset {
        by_s: f64,
    },
    /// What it waited for at the end, if it did.
    Deadline {
        limit_ns: i64,
        lacking: Option<Box<Reason>>,
    },
    MaxDuration {
        limit_ns: i64,
    },
    NonFinite {
        message: String,
    },
    /// The chunk goes beyond a limit of the parameters.
    Limit {
        message: String,
    },
    Backend {
        message: String,
    },
    Deactivated,
    Shutdown,
}

impl Reason {
    /// Why there is no observation: the first thing that is wrong names the input, the sentence names them all.
    pub fn lacking(waiting: &Waiting) -> Self {
        let message = format!("waited in vain for {waiting}");
        let first = waiting.0.first();
        let input = first.map(|first| first.input().to_owned()).unwrap_or_default();
        if first.is_some_and(WaitingFor::is_bad) {
            Reason::BadInput { input, message }
        } else {
            Reason::StaleInput { input, message }
        }
    }

    /// Why a prediction has given no chunk; `input` is the one that is to blame, if there is one.
    pub fn of_failure(failure: &Failure<PolicyError>, input: Option<String>) -> Self {
        let message = failure.to_string();
        match failure {
            Failure::Policy(PolicyError::Decode(
                DecodeError::PredictionNotFinite { .. }
                | DecodeError::PaddingNotFinite { .. }
                | DecodeError::ActionNotFinite { .. },
            )) => Reason::NonFinite { message },
            Failure::Policy(PolicyError::Observation(_) | PolicyError::State(_)) => {
                Reason::BadInput { input: input.unwrap_or_default(), message }
            }
            _ => Reason::Backend { message },
        }
    }

    /// How the goal counts for its client.
    pub fn end(&self) -> End {
        match self {
            Reason::Succeeded => End::Succeeded,
            Reason::Cancelled => End::Canceled,
            _ => End::Aborted,
        }
    }

    /// Whether the arm is to be stopped: not where the last chunk is meant to be followed to its end, or another goal
    /// takes over.
    pub fn stops_the_arm(&self) -> bool {
        !matches!(self, Reason::Succeeded | Reason::Replaced)
    }

    /// How the statistics count a prediction that ended so.
    pub fn kind(&self) -> FailureKind {
        match self {
            Reason::NonFinite { .. } => FailureKind::NonFinite,
            Reason::Limit { .. } => FailureKind::Limit,
            _ => FailureKind::Other,
        }
    }

    /// The number of the result message.
    pub fn number(&self) -> u8 {
        match self {
            Reason::Succeeded => ResultMessage::SUCCEEDED as u8,
            Reason::Cancelled => ResultMessage::CANCELLED as u8,
            Reason::Replaced => ResultMessage::REPLACED as u8,
            Reason::StaleInput { .. } => ResultMessage::STALE_INPUT as u8,
            Reason::BadInput { .. } => ResultMessage::BAD_INPUT as u8,
            Reason::ClockReset { .. } => ResultMessage::CLOCK_RESET as u8,
            Reason::Deadline { .. } => ResultMessage::DEADLINE as u8,
            Reason::MaxDuration { .. } => ResultMessage::MAX_DURATION as u8,
            Reason::NonFinite { .. } => ResultMessage::NON_FINITE_OUTPUT as u8,
            Reason::Limit { .. } => ResultMessage::LIMIT_EXCEEDED as u8,
            Reason::Backend { .. } => ResultMessage::BACKEND_FAULT as u8,
            Reason::Deactivated => ResultMessage::DEACTIVATED as u8,
            Reason::Shutdown => ResultMessage::SHUTDOWN as u8,
        }
    }

    /// Camera key, state group or topic that it is about.
    pub fn input(&self) -> &str {
        match self {
            Reason::StaleInput { input, .. } | Reason::BadInput { input, .. } => input,
            Reason::Deadline { lacking: Some(lacking), .. } => lacking.input(),
            _ => "",
        }
    }

    /// As a sentence.
    pub fn message(&self) -> String {
        match self {
            Reason::Succeeded => "all that was asked for is done".to_owned(),
            Reason::Cancelled => "a client cancelled it".to_owned(),
            Reason::Replaced => "a later goal took its place (parameter `preemption`)".to_owned(),
            Reason::StaleInput { message, .. }
            | Reason::BadInput { message, .. }
            | Reason::NonFinite { message }
            | Reason::Limit { message }
            | Reason::Backend { message } => message.clone(),
            Reason::ClockReset { by_s } => format!("the clock jumped by {by_s:.3} s"),
            Reason::Deadline { limit_ns, lacking } => {
                let lacking = lacking.as_ref().map(|lacking| format!("; it {}", lacking.message()));
                let lacking = lacking.unwrap_or_default();
                format!("it was not done within {} s{lacking}", seconds(*limit_ns))
            }
            Reason::MaxDuration { limit_ns } => format!(
                "it was not done within {} s (parameter `goal_max_duration_s`)",
                seconds(*limit_ns)
            ),
            Reason::Deactivated => "the node was deactivated".to_owned(),
            Reason::Shutdown => "the node was shut down".to_owned(),
        }
    }
}

/// What a prediction has come to.
pub type Outcome = Result<ActionChunk, Failure<PolicyError>>;
