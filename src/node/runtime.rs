//! What the tasks of the running node share: clock, settings, parameters, readings, counters.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::action::goals::GoalId;
use super::cause_counters::CauseCounters;
use super::graph::GraphFindings;
use super::intake::Intake;
use super::monitor::Monitor;
use super::params::Params;
use super::sensors::Sensors;
use super::settings::Settings;
use super::topics::Topics;
use crate::contract::{Embodiment, Version};
use crate::encode::{FrameShapes, InstructionCheck};
use crate::history::Moment;
pub use crate::locked::locked;
use crate::observations::Recorder;
pub use crate::throttle::{Throttle, WARNING_PERIOD, and_more};

/// Everything that the tasks share.
pub struct Shared {
    pub clock: NodeClock,
    /// The snapshot directory of the checkpoint.
    pub snapshot: PathBuf,
    pub version: Version,
    pub embodiment: Embodiment,
    /// Every tag that the checkpoint serves.
    pub served: Vec<String>,
    /// What computes the chunks.
    pub backend: String,
    /// What the gate has seen of the policy.
    pub fidelity: String,
    /// Where predictions are recorded, if they are.
    pub recorder: Mutex<Option<Recorder>>,
    /// Rows and columns of the initial noise.
    pub noise_shape: [usize; 2],
    /// Whether the policy's prompt can hold an instruction.
    pub instruction_check: InstructionCheck,
    /// Frames of other shapes are refused when they come.
    pub frame_shapes: FrameShapes,
    pub settings: Settings,
    pub topics: Topics,
    pub params: Arc<Mutex<Params>>,
    /// Locked before `params` where both are needed.
    pub sensors: Mutex<Sensors>,
    /// `None` for a policy that has no use for frames ahead of a request.
    pub intake: Option<Intake>,
    pub counters: Counters,
    /// What is measured for the diagnostics.
    pub monitor: Monitor,
    pub graph: GraphFindings,
}

/// What happened since the start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Predictions begun; each becomes a chunk, or fails, or is dropped.
    pub predictions: AtomicU64,
    /// Chunks published.
    pub chunks: AtomicU64,
    /// Predictions that nobody wanted any more when they ended: the goal, the activation or the time line was over.
    pub dropped_predictions: AtomicU64,
    /// Ticks of the timer on which the previous prediction still ran.
    pub missed_ticks: AtomicU64,
    /// Ticks of the timer on which something was missing or stale.
    pub waiting_ticks: AtomicU64,
    /// Causes for which there was no observation.
    pub refused_observations: CauseCounters,
    /// Predictions that gave no chunk.
    pub failed_predictions: AtomicU64,
    /// Messages that could not be read or not be used.
    pub refused_messages: AtomicU64,
    /// Frames passed over for a newer one, since reading them takes longer than they come.
    pub overtaken_frames: AtomicU64,
    /// Trajectory points that were already due.
    pub dropped_points: AtomicU64,
    /// Values of chunks that were brought to a limit.
    pub limited_values: AtomicU64,
    /// Chunks that had such values.
    pub limited_chunks: AtomicU64,
    /// Chunks that were dropped since they did not keep a limit.
    pub refused_chunks: AtomicU64,
}

impl Counters {
    /// What the diagnostics tell.
    pub fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("chunks", &self.chunks),
            ("predictions begun", &self.predictions),
            ("predictions without a chunk", &self.failed_predictions),
            ("predictions dropped", &self.dropped_predictions),
            ("timer moments missed", &self.missed_ticks),
            ("timer moments waited", &self.waiting_ticks),
            ("trajectory points dropped", &self.dropped_points),
            ("values limited", &self.limited_values),
            ("chunks limited", &self.limited_chunks),
            ("chunks refused", &self.refused_chunks),
        ]
        .map(|(name, counter)| (name, counter.load(Ordering::Relaxed)))
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        write!(
            f,
            "predictions {}, chunks {}, predictions failed {}, predictions dropped {}, ticks while predicting {}, ticks while waiting {}, messages \
             refused {}, frames overtaken {}, trajectory points dropped {}, values limited {} in {} chunks, chunks beyond a limit {}; causes of waiting: {}",
            count(&self.predictions),
            count(&self.chunks),
            count(&self.failed_predictions),
            count(&self.dropped_predictions),
            count(&self.missed_ticks),
            count(&self.waiting_ticks),
            count(&self.refused_messages),
            count(&self.overtaken_frames),
            count(&self.dropped_points),
            count(&self.limited_values),
            count(&self.limited_chunks),
            count(&self.refused_chunks),
            self.refused_observations
        )
    }
}

/// The node's clock (system time, or `/clock`) beside one that only goes forward.
#[derive(Clone)]
pub struct NodeClock {
    ros: Arc<Mutex<r2r::Clock>>,
    start: Instant,
}

impl NodeClock {
    pub fn new(ros: Arc<Mutex<r2r::Clock>>) -> Self {
        Self { ros, start: Instant::now() }
    }

    /// Now, on both clocks; the node's clock reads 0 while simulated time has not started.
    pub fn now(&self) -> Moment {
        let ros = locked(&self.ros).get_now().unwrap_or_default();
        Moment { ros_ns: nanoseconds(ros), steady_ns: self.steady_ns(Instant::now()) }
    }

    /// A moment on the clock that only goes forward.
    pub fn steady_ns(&self, at: Instant) -> i64 {
        nanoseconds(at.saturating_duration_since(self.start))
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// A message stamp.
pub fn time_message(ns: i64) -> r2r::builtin_interfaces::msg::Time {
    const NS_PER_S: i64 = 1_000_000_000;
    r2r::builtin_interfaces::msg::Time {
        sec: i32::try_from(ns.div_euclid(NS_PER_S)).unwrap_or(i32::MAX),
        nanosec: ns.rem_euclid(NS_PER_S) as u32,
    }
}

/// A duration message; what it cannot hold becomes its largest.
pub fn duration_message(ns: i64) -> r2r::builtin_interfaces::msg::Duration {
    const NS_PER_S: i64 = 1_000_000_000;
    r2r::builtin_interfaces::msg::Duration {
        sec: i32::try_from(ns.div_euclid(NS_PER_S)).unwrap_or(i32::MAX),
        nanosec: ns.rem_euclid(NS_PER_S) as u32,
    }
}

/// Seconds and nanoseconds of a message as nanoseconds.
pub fn from_message(sec: i32, nanosec: u32) -> i64 {
    i64::from(sec) * 1_000_000_000 + i64::from(nanosec)
}

/// The id of a goal as a message.
pub fn uuid_message(id: &GoalId) -> r2r::unique_identifier_msgs::msg::UUID {
    r2r::unique_identifier_msgs::msg::UUID { uuid: id.to_vec() }
}
