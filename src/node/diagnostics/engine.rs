//! The state of the engine: chunks, their times, and what they wait for.

use super::super::cause_counters::CauseCounters;
use super::super::stats::{EngineStats, GroupSeam, Jump, Seam};
use super::status::{Level, Status, in_ms, in_s};
use crate::history::{Cause, Waiting};
use crate::words::Number;

/// So long after the activation, an input that has not come yet is no error.
const START_NS: i64 = 3_000_000_000;

/// What the engine does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    Goal,
    Timer,
    /// There is neither a goal nor a timer.
    Idle,
    /// A goal has ended, and the timer waits for a new instruction.
    Rests,
}

impl Activity {
    fn sentence(self) -> &'static str {
        match self {
            Activity::Goal => "works on a goal",
            Activity::Timer => "predicts by the timer",
            Activity::Idle => "idle: no goal, and no timer (`rate_hz` is 0)",
            Activity::Rests => "idle: a goal has ended; the timer waits for a new instruction",
        }
    }
}

/// What is known of the engine.
pub struct EngineView<'a> {
    pub name: String,
    pub stats: &'a EngineStats,
    pub counts: &'a [(&'static str, u64)],
    /// How often there was no observation, by cause.
    pub causes: &'a CauseCounters,
    /// What there is no observation for now.
    pub waiting: Option<&'a Waiting>,
    pub activity: Activity,
    /// Steady clock.
    pub now_ns: i64,
}

impl EngineView<'_> {
    pub fn status(self) -> Status {
        let (level, message) = self.state();
        let Self { name, stats, counts, causes, waiting, activity, .. } = self;
        let mut status = Status::new(name, level, message);
        for (key, count) in counts {
            status.value(*key, count);
        }
        status.value("non-finite outputs", stats.non_finite());
        status.value("latest failure", stats.latest_failure().unwrap_or("none"));
        status.value("latest refusal", stats.latest_refusal().unwrap_or("none"));
        status.value("goals running", u8::from(activity == Activity::Goal));
        status.value("waiting for", waiting.map_or("nothing".to_owned(), Waiting::to_string));
        for (cause, count) in causes.iter() {
            status.value(format!("waited: {}", cause.name()), count);
        }
        status.value("predictions measured", stats.measured());
        for (what, spread) in stats.spreads() {
            status.value(format!("{what} p50 [ms]"), in_ms(spread.p50));
            status.value(format!("{what} p99 [ms]"), in_ms(spread.p99));
            status.value(format!("{what} max [ms]"), in_ms(spread.max));
        }
        seams(&mut status, stats);
        status
    }

    fn state(&self) -> (Level, String) {
        let Self { stats, now_ns, .. } = *self;
        if stats.fails(now_ns) {
            let reason = stats.latest_failure().unwrap_or_default();
            return (Level::Error, format!("predictions fail: {reason}"));
        }
        if let Some(waiting) = self.waiting {
            return (self.level(waiting), format!("waiting for {waiting}"));
        }
        if stats.stalled_recently(now_ns) {
            let stall = in_s(stats.seams.longest_stall_ns);
            let message = format!(
                "a chunk came when there was nothing left of the one before (longest gap {stall} s)"
            );
            return (Level::Warn, message);
        }
        if stats.missed_recently(now_ns) {
            let message = "predictions take longer than the timer's period: its moments are missed";
            return (Level::Warn, message.to_owned());
        }
        (Level::Ok, self.activity.sentence().to_owned())
    }

    /// An input that is bad or has stopped is an error; so is one that has not come for a while. A node that has nothing to
    /// do is well.
    fn level(&self, waiting: &Waiting) -> Level {
        let starts = self.now_ns - self.stats.begun_ns() < START_NS;
        let level = |cause| match cause {
            Cause::NoInstruction => Level::Ok,
            Cause::NoClock => Level::Warn,
            Cause::Missing | Cause::NoPose if starts => Level::Warn,
            _ => Level::Error,
        };
        waiting.causes().map(level).max().unwrap_or(Level::Ok)
    }
}

fn seams(status: &mut Status, stats: &EngineStats) {
    let seams = &stats.seams;
    status.value("seams", seams.count);
    status.value("stalls", seams.stalls);
    status.value("longest stall [s]", in_s(seams.longest_stall_ns));
    let Some(Seam { groups, stall_ns }) = &seams.latest else { return };
    status.value("last stall [s]", in_s(*stall_ns));
    for GroupSeam { group, jump, acceleration } in groups {
        match jump {
            Jump::Joints { largest } => {
                status.value(
                    format!("last jump of {group} [rad]"),
                    format!("{:.6}", Number(*largest)),
                );
            }
            Jump::Pose { metres, radians } => {
                status
                    .value(format!("last jump of {group} [m]"), format!("{:.6}", Number(*metres)));
                status.value(format!("last turn of {group} [rad]"), format!("{radians:.6}"));
            }
        }
        if let Some(acceleration) = acceleration {
            let key = format!("last acceleration of {group} [rad/s^2]");
            status.value(key, format!("{:.3}", Number(*acceleration)));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::super::stats::{ChunkTimes, FailureKind};
    use super::*;
    use crate::contract::StageTimings;
    use crate::history::{Lack, WaitingFor};

    const MS: i64 = 1_000_000;

    fn status(stats: &EngineStats, waiting: Option<&Waiting>, now_ms: i64) -> Status {
        let causes = CauseCounters::default();
        if let Some(waiting) = waiting {
            causes.count_all(waiting);
        }
        let view = EngineView {
            name: "policy: engine".to_owned(),
            stats,
            counts: &[("chunks", 3)],
            causes: &causes,
            waiting,
            activity: Activity::Timer,
            now_ns: now_ms * MS,
        };
        view.status()
    }

    fn camera(lack: Lack) -> Waiting {
        let (key, topic) = ("ego".to_owned(), "/ego".to_owned());
        Waiting(vec![WaitingFor::Camera { key, topic, lack }])
    }

    #[test]
    fn case_01_a_stale_camera_is_an_error_and_named() {
        let stale = Lack::Stale {
            age_ns: 400 * MS,
            max_age_ns: 250 * MS,
            silent_ns: Some(390 * MS),
            refusal: None,
        };
        let made = status(&EngineStats::default(), Some(&camera(stale)), 1000);
        assert_eq!(made.level, Level::Error);
        assert!(made.message.starts_with("waiting for camera 'ego'"), "{}", made.message);
        assert_eq!(made.get("waited: stale"), Some("1"));
        assert!(made.get("waiting for").is_some_and(|text| text.contains("0.400 s old")));
    }

    #[test]
    fn what_has_not_come_yet_is_an_error_after_a_while() {
        let missing = camera(Lack::Nothing { refusal: None });
        let mut stats = EngineStats::default();
        stats.begin(10_000 * MS);
        assert_eq!(status(&stats, Some(&missing), 12_000).level, Level::Warn);
        assert_eq!(status(&stats, Some(&missing), 13_500).level, Level::Error);
        let instruction = Waiting(vec![WaitingFor::Instruction]);
        let idle = status(&stats, Some(&instruction), 99_000);
        assert_eq!(idle.level, Level::Ok);
        assert!(idle.message.starts_with("waiting for an instruction: set"), "{}", idle.message);
        let both = Waiting([instruction.0, missing.0.clone()].concat());
        assert_eq!(status(&stats, Some(&both), 99_000).level, Level::Error);
        let made = status(&stats, None, 99_000);
        assert_eq!((made.level, made.get("waiting for")), (Level::Ok, Some("nothing")));
    }

    #[test]
    fn case_93_stages_misses_and_failures() {
        let mut stats = EngineStats::default();
        let stages = StageTimings { llm: Duration::from_micros(12_345), ..Default::default() };
        let times = ChunkTimes { stages, node: Duration::from_micros(600), latency_ns: 40 * MS };
        stats.chunk(&times, 1000 * MS);
        let made = status(&stats, None, 1100);
        assert_eq!(made.level, Level::Ok);
        for (key, value) in [
            ("llm p50 [ms]", "12.345"),
            ("predict p99 [ms]", "12.345"),
            ("node p99 [ms]", "0.600"),
            ("latency max [ms]", "40.000"),
            ("predictions measured", "1"),
            ("chunks", "3"),
        ] {
            assert_eq!(made.get(key), Some(value), "{key}");
        }
        stats.missed(1200 * MS);
        assert_eq!(status(&stats, None, 1300).level, Level::Warn);
        stats.stalled(1200 * MS);
        assert!(status(&stats, None, 1300).message.contains("nothing left"));
        stats.failed(FailureKind::NonFinite, "row 3 is NaN", 1400 * MS);
        let made = status(&stats, None, 1500);
        assert_eq!((made.level, made.get("non-finite outputs")), (Level::Error, Some("1")));
        assert_eq!(made.message, "predictions fail: row 3 is NaN");
    }
}
