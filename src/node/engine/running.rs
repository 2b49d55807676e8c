//! A goal in work.

use std::time::{Duration, Instant};

use r2r::gr00t_blackhole::action::PredictChunk::{Feedback, Result as ResultMessage};
use r2r::gr00t_blackhole::msg::{ActionChunk as ChunkMessage, ObservationAge, StageTiming};

use super::super::action::goal::Goal;
use super::super::action::goals::GoalId;
use super::super::publish::age_message;
use super::super::runtime::{Throttle, duration_message};
use super::Pace;
use super::ending::Reason;
use crate::contract::StageTimings;
use crate::history::Reading;

/// A client that waits for inputs hears of it this often.
const WAITING_PERIOD: Duration = Duration::from_millis(500);

/// A goal that was accepted and is not worked on yet.
pub struct Queued {
    pub id: GoalId,
    pub goal: Goal,
    pub accepted_ns: i64,
}

/// The goal in work.
pub struct Running {
    pub id: GoalId,
    pub goal: Goal,
    pub accepted_ns: i64,
    pub pace: Pace,
    /// Chunks published.
    pub chunks: u32,
    /// Since when an observation is wanted and not to be had.
    pub lacking_since_ns: Option<i64>,
    /// What was missing when a chunk was last wanted; `None` once there is one in work.
    pub lacks: Option<Reason>,
    /// It is to end for this reason, once the prediction in work has ended; since when.
    pub ending: Option<(Reason, Instant)>,
    pub waiting_feedback: Throttle,
    last_chunk: ChunkMessage,
    /// Inputs of the chunk in work.
    ages: Vec<ObservationAge>,
    /// Time of every stage over all chunks.
    sums: Vec<(&'static str, Duration)>,
}

impl Running {
    pub fn new(queued: Queued, pace: Pace) -> Self {
        let Queued { id, goal, accepted_ns } = queued;
        Self {
            id,
            goal,
            accepted_ns,
            pace,
            chunks: 0,
            lacking_since_ns: None,
            lacks: None,
            ending: None,
            waiting_feedback: Throttle::new(WAITING_PERIOD),
            last_chunk: ChunkMessage::default(),
            ages: Vec::new(),
            sums: Vec::new(),
        }
    }

    pub fn elapsed_ns(&self, now_ns: i64) -> i64 {
        // A clock that was set back makes no time negative.
        now_ns.saturating_sub(self.accepted_ns).max(0)
    }

    /// A chunk is begun from these readings.
    pub fn chunk_begins(&mut self, readings: &[Reading], begin_ns: i64) {
        self.lacking_since_ns = None;
        self.lacks = None;
        self.ages = ages(readings, begin_ns);
    }

    /// A chunk was published.
    pub fn chunk_made(&mut self, message: ChunkMessage, timings: &StageTimings) {
        self.chunks += 1;
        self.last_chunk = message;
        let stages = timings.stages();
        if self.sums.is_empty() {
            self.sums = stages.to_vec();
            return;
        }
        for ((_, sum), (_, time)) in self.sums.iter_mut().zip(stages) {
            *sum += time;
        }
    }

    /// Feedback while a stage is in work.
    pub fn in_stage(&self, stage: &str, now_ns: i64) -> Feedback {
        self.feedback(stage, String::new(), self.ages.clone(), now_ns)
    }

    /// Feedback while inputs are waited for; `newest` is what there is of them.
    pub fn waits(&self, waiting_for: String, newest: &[Reading], now_ns: i64) -> Feedback {
        self.feedback("waiting", waiting_for, ages(newest, now_ns), now_ns)
    }

    fn feedback(
        &self,
        stage: &str,
        waiting_for: String,
        ages: Vec<ObservationAge>,
        now_ns: i64,
    ) -> Feedback {
        Feedback {
            stage: stage.to_owned(),
            chunk_index: self.chunks,
            waiting_for,
            ages,
            elapsed: duration_message(self.elapsed_ns(now_ns)),
        }
    }

    pub fn result(self, reason: &Reason, now_ns: i64) -> ResultMessage {
        let elapsed = duration_message(self.elapsed_ns(now_ns));
        let mean = |(stage, sum): &(&'static str, Duration)| StageTiming {
            stage: (*stage).to_owned(),
            seconds: sum.as_secs_f64() / f64::from(self.chunks.max(1)),
        };
        ResultMessage {
            reason: reason.number(),
            message: reason.message(),
            input: reason.input().to_owned(),
            chunks: self.chunks,
            timings: self.sums.iter().map(mean).collect(),
            last_chunk: self.last_chunk,
            elapsed,
        }
    }
}

fn ages(readings: &[Reading], now_ns: i64) -> Vec<ObservationAge> {
    readings.iter().map(|reading| age_message(reading, now_ns)).collect()
}
