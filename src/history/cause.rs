//! Why there is no observation, for counters, diagnostics and other programs.

use super::{Lack, Waiting, WaitingFor};

/// A kind of reason why there is no observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Simulated time has not started.
    NoClock,
    /// Nobody has said what to do.
    NoInstruction,
    /// Nothing has been received.
    Missing,
    /// The newest reading is too old.
    Stale,
    /// The transforms that were received give no pose.
    NoPose,
    /// What is received cannot be used.
    Refused,
    /// A camera sends the same picture again and again.
    Frozen,
    /// The newest frames of two cameras are too far apart.
    Skewed,
    /// A joint has moved faster than joints do.
    Jumped,
    /// A topic has too many publishers.
    Publishers,
}

impl Cause {
    /// Every cause, in the order of declaration.
    pub const ALL: [Cause; 10] = [
        Cause::NoClock,
        Cause::NoInstruction,
        Cause::Missing,
        Cause::Stale,
        Cause::NoPose,
        Cause::Refused,
        Cause::Frozen,
        Cause::Skewed,
        Cause::Jumped,
        Cause::Publishers,
    ];

    /// The name that programs go by.
    pub fn name(self) -> &'static str {
        match self {
            Cause::NoClock => "no_clock",
            Cause::NoInstruction => "no_instruction",
            Cause::Missing => "missing",
            Cause::Stale => "stale",
            Cause::NoPose => "no_pose",
            Cause::Refused => "refused",
            Cause::Frozen => "frozen",
            Cause::Skewed => "skewed",
            Cause::Jumped => "jumped",
            Cause::Publishers => "publishers",
        }
    }

    /// Whether an input comes, but cannot be used; else it is absent or old.
    pub fn is_bad(self) -> bool {
        match self {
            Cause::NoClock
            | Cause::NoInstruction
            | Cause::Missing
            | Cause::Stale
            | Cause::NoPose => false,
            Cause::Refused | Cause::Frozen | Cause::Skewed | Cause::Jumped | Cause::Publishers => {
                true
            }
        }
    }
}

impl Waiting {
    /// Every cause, each once.
    pub fn causes(&self) -> impl Iterator<Item = Cause> {
        let is_one = |cause: &Cause| self.0.iter().any(|waiting_for| waiting_for.cause() == *cause);
        Cause::ALL.into_iter().filter(is_one)
    }
}

impl WaitingFor {
    pub fn cause(&self) -> Cause {
        match self {
            WaitingFor::Clock => Cause::NoClock,
            WaitingFor::Instruction => Cause::NoInstruction,
            WaitingFor::Skew { .. } => Cause::Skewed,
            WaitingFor::Camera { lack, .. } | WaitingFor::State { lack, .. } => lack.cause(),
        }
    }

    /// What it is about: the camera's key; the topic of the states (for a transform, what stands in its place); the name
    /// of the parameter or the topic that everything waits for. Of two cameras, the one that is behind.
    pub fn input(&self) -> &str {
        match self {
            WaitingFor::Clock => "/clock",
            WaitingFor::Instruction => "instruction",
            WaitingFor::Skew { older: key, .. } | WaitingFor::Camera { key, .. } => key,
            WaitingFor::State { topic, .. } => topic,
        }
    }

    /// See [`Cause::is_bad`].
    pub fn is_bad(&self) -> bool {
        self.cause().is_bad()
    }
}

impl Lack {
    fn cause(&self) -> Cause {
        match self {
            Lack::Nothing { refusal: None } | Lack::NothingSince { refusal: None, .. } => {
                Cause::Missing
            }
            Lack::Nothing { refusal: Some(_) } | Lack::NothingSince { refusal: Some(_), .. } => {
                Cause::Refused
            }
            Lack::NoPose { .. } => Cause::NoPose,
            Lack::Stale { refusal: Some(_), .. } if !self.is_silence() => Cause::Refused,
            Lack::Stale { .. } => Cause::Stale,
            Lack::Frozen { .. } => Cause::Frozen,
            Lack::Jumped { .. } => Cause::Jumped,
            Lack::Publishers { .. } => Cause::Publishers,
        }
    }
}
