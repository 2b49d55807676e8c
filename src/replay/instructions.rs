//! What the robot was told to do, and from when on.

use super::chunks::Recorded;

/// Where an instruction comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Parameter,
    Argument,
    RecordedChunks,
}

impl Origin {
    pub fn name(self) -> &'static str {
        match self {
            Origin::Parameter => "parameter",
            Origin::Argument => "argument",
            Origin::RecordedChunks => "recorded chunks",
        }
    }
}

/// On which clock a change is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Time of reception, nanoseconds.
    Log(i64),
    /// The node's clock, nanoseconds.
    Node(i64),
}

/// Another instruction from a moment on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub due: Due,
    pub text: String,
}

/// All instructions of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// From the beginning; empty for none yet.
    pub first: String,
    pub origin: Origin,
    /// In the order of their moments.
    pub later: Vec<Change>,
}

/// What the arguments say.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given {
    pub first: Option<String>,
    /// Seconds since the recording's start.
    pub later: Vec<(f64, String)>,
}

impl Instructions {
    /// Arguments count more than recorded chunks, and those more than the parameter, which may have been another one when
    /// the recording was made.
    pub fn new(
        given: &Given,
        parameter: &str,
        recorded: &[Recorded],
        looks_back: bool,
        start_ns: i64,
    ) -> Self {
        if given.first.is_some() || !given.later.is_empty() {
            let mut later = given.later.clone();
            later.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            let change = |(seconds, text): (f64, String)| Change {
                due: Due::Log(start_ns.saturating_add((seconds * 1e9).round() as i64)),
                text,
            };
            return Self {
                first: given.first.clone().unwrap_or_else(|| parameter.to_owned()),
                origin: Origin::Argument,
                later: later.into_iter().map(change).collect(),
            };
        }
        let Some((first, rest)) = recorded.split_first() else {
            let (first, origin) = (parameter.to_owned(), Origin::Parameter);
            return Self { first, origin, later: Vec::new() };
        };
        let mut later: Vec<Change> = Vec::new();
        let mut current = &first.chunk.instruction;
        for Recorded { chunk, .. } in rest {
            if chunk.instruction != *current {
                // A policy that looks back sees no frame of an earlier instruction, so that its oldest frame tells when
                // the instruction came.
                let oldest = chunk.ages.iter().map(|reading| reading.stamp_ns).min();
                let known = oldest.filter(|_| looks_back);
                let due = Due::Node(known.unwrap_or_else(|| chunk.begin_ns()));
                later.push(Change { due, text: chunk.instruction.clone() });
                current = &chunk.instruction;
            }
        }
        Self { first: first.chunk.instruction.clone(), origin: Origin::RecordedChunks, later }
    }

    /// Whether there is ever one.
    pub fn are_none(&self) -> bool {
        self.first.trim().is_empty()
            && self.later.iter().all(|change| change.text.trim().is_empty())
    }

    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let later = self.later.iter().map(|change| change.text.as_str());
        std::iter::once(self.first.as_str()).chain(later).filter(|text| !text.trim().is_empty())
    }
}
