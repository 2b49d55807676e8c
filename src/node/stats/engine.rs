//! What predictions have come to, and what becomes of their chunks.

use std::time::Duration;

use super::seams::Seams;
use super::window::{Spread, Window};
use crate::contract::StageTimings;

/// What happened so recently still counts for the state of the engine.
const RECENT_NS: i64 = 5_000_000_000;

/// The times of one published chunk.
#[derive(Clone, Copy, Debug)]
pub struct ChunkTimes {
    pub stages: StageTimings,
    /// What the node itself adds to the stages.
    pub node: Duration,
    /// From the stamp of the observation to the publication, nanoseconds of the node's clock.
    pub latency_ns: i64,
}

/// Predictions since the policy was configured; warm-up is not among them. Moments are of the steady clock.
#[derive(Debug, Default)]
pub struct EngineStats {
    stages: [(&'static str, Window); StageTimings::COUNT],
    predict: Window,
    node: Window,
    latency: Window,
    pub seams: Seams,
    /// The timer waits for a new instruction.
    pub timer_waits: bool,
    begun_ns: i64,
    missed_ns: Option<i64>,
    stalled_ns: Option<i64>,
    failed_ns: Option<i64>,
    chunk_ns: Option<i64>,
    non_finite: u64,
    latest_failure: Option<String>,
    latest_refusal: Option<String>,
}

/// Why a prediction has given no chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The output had values that are not finite.
    NonFinite,
    /// The chunk did not keep a limit.
    Limit,
    Other,
}

impl EngineStats {
    /// The node was activated.
    pub fn begin(&mut self, at_ns: i64) {
        self.begun_ns = at_ns;
        self.seams.interrupt();
        self.failed_ns = None;
        self.stalled_ns = None;
        self.missed_ns = None;
    }

    /// A chunk was published.
    pub fn chunk(&mut self, times: &ChunkTimes, at_ns: i64) {
        for ((name, window), (stage, time)) in self.stages.iter_mut().zip(times.stages.stages()) {
            *name = stage;
            window.add(time);
        }
        self.predict.add(times.stages.total());
        self.node.add(times.node);
        self.latency.add(Duration::from_nanos(u64::try_from(times.latency_ns).unwrap_or(0)));
        self.chunk_ns = Some(at_ns);
    }

    /// The published chunk came when there was nothing left of the one before.
    pub fn stalled(&mut self, at_ns: i64) {
        self.stalled_ns = Some(at_ns);
    }

    /// Moments of the timer were missed.
    pub fn missed(&mut self, at_ns: i64) {
        self.missed_ns = Some(at_ns);
    }

    pub fn failed(&mut self, kind: FailureKind, message: &str, at_ns: i64) {
        self.failed_ns = Some(at_ns);
        self.latest_failure = Some(message.to_owned());
        match kind {
            FailureKind::NonFinite => self.non_finite += 1,
            FailureKind::Limit => self.latest_refusal = Some(message.to_owned()),
            FailureKind::Other => {}
        }
    }

    /// Since when the node is active.
    pub fn begun_ns(&self) -> i64 {
        self.begun_ns
    }

    pub fn missed_recently(&self, now_ns: i64) -> bool {
        is_recent(self.missed_ns, now_ns)
    }

    pub fn stalled_recently(&self, now_ns: i64) -> bool {
        is_recent(self.stalled_ns, now_ns)
    }

    /// The latest prediction failed, or one did just now.
    pub fn fails(&self, now_ns: i64) -> bool {
        let is_latest = self.failed_ns.is_some() && self.failed_ns > self.chunk_ns;
        is_latest || is_recent(self.failed_ns, now_ns)
    }

    pub fn non_finite(&self) -> u64 {
        self.non_finite
    }

    pub fn latest_failure(&self) -> Option<&str> {
        self.latest_failure.as_deref()
    }

    /// Why the latest chunk that did not keep a limit was refused.
    pub fn latest_refusal(&self) -> Option<&str> {
        self.latest_refusal.as_deref()
    }

    /// Predictions that the spreads are made of.
    pub fn measured(&self) -> usize {
        self.predict.count()
    }

    /// Name and spread of every stage, of all of them together, of the node's own part and of the whole latency; empty
    /// before the first chunk.
    pub fn spreads(&self) -> Vec<(&'static str, Spread)> {
        let others = [("predict", &self.predict), ("node", &self.node), ("latency", &self.latency)];
        let stages = self.stages.iter().map(|(name, window)| (*name, window));
        let spread = |(name, window): (&'static str, &Window)| Some((name, window.spread()?));
        stages.chain(others).filter_map(spread).collect()
    }
}

fn is_recent(at_ns: Option<i64>, now_ns: i64) -> bool {
    at_ns.is_some_and(|at_ns| now_ns - at_ns <= RECENT_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn times(denoise_ms: u64) -> ChunkTimes {
        let stages =
            StageTimings { denoise: Duration::from_millis(denoise_ms), ..Default::default() };
        ChunkTimes { stages, node: Duration::from_micros(700), latency_ns: 80 * MS }
    }

    #[test]
    fn case_08_only_published_chunks_are_measured() {
        let mut stats = EngineStats::default();
        stats.begin(5);
        assert_eq!((stats.measured(), stats.spreads()), (0, vec![]));
        for number in 1..=100 {
            stats.chunk(&times(number), number as i64 * MS);
        }
        stats.failed(FailureKind::Other, "the backend panicked", 101 * MS);
        assert_eq!(stats.measured(), 100);
        let spreads = stats.spreads();
        let names: Vec<_> = spreads.iter().map(|(name, _)| *name).collect();
        let expected = [
            "encode", "vision", "llm", "adapter", "denoise", "decode", "predict", "node", "latency",
        ];
        assert_eq!(names, expected);
        let of = |name: &str| spreads.iter().find(|(known, _)| *known == name).expect(name).1;
        for name in ["denoise", "predict"] {
            let Spread { p50, p99, max } = of(name);
            assert_eq!([p50, p99, max].map(|time| time.as_millis()), [50, 99, 100]);
        }
        assert_eq!(of("node").p99, Duration::from_micros(700));
        assert_eq!(of("latency").max, Duration::from_millis(80));
    }

    #[test]
    fn case_16_a_failure_counts_until_there_is_a_chunk_again() {
        let mut stats = EngineStats::default();
        assert!(!stats.fails(0));
        stats.failed(FailureKind::NonFinite, "row 3 is NaN", 10 * MS);
        assert!(stats.fails(60_000 * MS));
        assert_eq!((stats.non_finite(), stats.latest_failure()), (1, Some("row 3 is NaN")));
        stats.chunk(&times(1), 60_001 * MS);
        assert!(!stats.fails(60_002 * MS));
        stats.failed(FailureKind::Limit, "joint 'a' beyond its limit", 60_003 * MS);
        stats.chunk(&times(1), 60_004 * MS);
        assert!(stats.fails(60_005 * MS) && !stats.fails(70_000 * MS));
        assert_eq!(stats.latest_refusal(), Some("joint 'a' beyond its limit"));
        assert_eq!(stats.non_finite(), 1);
    }

    #[test]
    fn misses_and_stalls_are_forgotten() {
        let mut stats = EngineStats::default();
        stats.missed(MS);
        stats.stalled(2000 * MS);
        assert!(stats.missed_recently(3000 * MS) && stats.stalled_recently(3000 * MS));
        assert!(!stats.missed_recently(6000 * MS) && stats.stalled_recently(6000 * MS));
    }
}
