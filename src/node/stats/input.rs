//! The messages of one topic, counted.

use std::collections::VecDeque;
use std::time::Duration;

use super::rate::Rate;
use super::stamps::Stamps;

/// What was refused or lost so recently still counts for the state of the topic.
const RECENT_NS: i64 = 5_000_000_000;
/// Readings whose way into the history is remembered: a second at 60 Hz.
const REMEMBERED: usize = 64;

/// What is known about the messages of one topic since the node was activated. Times of receipt are of the steady
/// clock.
#[derive(Clone, Debug, Default)]
pub struct InputStats {
    received: u64,
    refused: u64,
    overtaken: u64,
    latest_refusal: Option<String>,
    refused_ns: Option<i64>,
    lost_ns: Option<i64>,
    rate: Rate,
    stamps: Stamps,
    newest_stamp_ns: Option<i64>,
    /// Stamps, and how long it took to take in what has them.
    intake: VecDeque<(i64, Duration)>,
}

impl InputStats {
    /// A message was taken in. `sent_ns` is the stamp that its sender has given it, `stamp_ns` the one that it goes by;
    /// it was `took` on its way from the receipt into the history.
    pub fn taken(&mut self, sent_ns: Option<i64>, stamp_ns: i64, at_ns: i64, took: Duration) {
        self.arrived(at_ns);
        let lost = self.stamps.lost();
        match sent_ns {
            Some(sent_ns) => self.stamps.note(sent_ns),
            None => self.stamps.note_unread(),
        }
        if self.stamps.lost() > lost {
            self.lost_ns = Some(at_ns);
        }
        self.newest_stamp_ns = self.newest_stamp_ns.max(Some(stamp_ns));
        if self.intake.len() == REMEMBERED {
            self.intake.pop_front();
        }
        self.intake.push_back((stamp_ns, took));
    }

    /// A message that is not a reading with one stamp was taken in.
    pub fn taken_unstamped(&mut self, at_ns: i64) {
        self.arrived(at_ns);
        self.stamps.note_unread();
    }

    /// A message was of no use.
    pub fn refused(&mut self, reason: &str, at_ns: i64) {
        self.arrived(at_ns);
        self.stamps.note_unread();
        self.useless(reason, at_ns);
    }

    /// A message that was taken in turned out to be of no use when the policy looked at it.
    pub fn useless(&mut self, reason: &str, at_ns: i64) {
        self.refused += 1;
        self.latest_refusal = Some(reason.to_owned());
        self.refused_ns = Some(at_ns);
    }

    /// A message was passed over for a newer one.
    pub fn overtaken(&mut self, at_ns: i64) {
        self.arrived(at_ns);
        self.stamps.note_unread();
        self.overtaken += 1;
    }

    fn arrived(&mut self, at_ns: i64) {
        self.received += 1;
        self.rate.count(at_ns);
    }

    /// The clock has jumped: stamps until now mean nothing.
    pub fn forget_stamps(&mut self) {
        self.stamps.forget();
        self.newest_stamp_ns = None;
        self.intake.clear();
    }

    /// Messages, whatever became of them.
    pub fn received(&self) -> u64 {
        self.received
    }

    pub fn refused_count(&self) -> u64 {
        self.refused
    }

    pub fn overtaken_count(&self) -> u64 {
        self.overtaken
    }

    pub fn lost(&self) -> u64 {
        self.stamps.lost()
    }

    pub fn latest_refusal(&self) -> Option<&str> {
        self.latest_refusal.as_deref()
    }

    pub fn refused_recently(&self, now_ns: i64) -> bool {
        self.refused_ns.is_some_and(|at_ns| now_ns - at_ns <= RECENT_NS)
    }

    pub fn lost_recently(&self, now_ns: i64) -> bool {
        self.lost_ns.is_some_and(|at_ns| now_ns - at_ns <= RECENT_NS)
    }

    /// Messages per second that come.
    pub fn hz(&self, now_ns: i64) -> f64 {
        self.rate.hz(now_ns)
    }

    /// Messages per second that were sent, as far as the stamps tell.
    pub fn expected_hz(&self) -> Option<f64> {
        self.stamps.expected_hz()
    }

    pub fn newest_stamp_ns(&self) -> Option<i64> {
        self.newest_stamp_ns
    }

    /// How long the reading with this stamp took from its receipt into the history.
    pub fn intake(&self, stamp_ns: i64) -> Option<Duration> {
        self.intake.iter().rev().find(|(stamp, _)| *stamp == stamp_ns).map(|(_, took)| *took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn everything_that_comes_is_received_and_only_gaps_are_lost() {
        let mut stats = InputStats::default();
        let took = Duration::from_micros(300);
        for i in 0..100i64 {
            let at = i * 40 * MS;
            match i {
                40 => stats.refused("its step is 7", at),
                50 | 51 => stats.overtaken(at),
                60 => {}
                _ => stats.taken(Some(at - 3 * MS), at - 3 * MS, at, took),
            }
        }
        assert_eq!((stats.received(), stats.refused_count(), stats.overtaken_count()), (99, 1, 2));
        assert_eq!(stats.lost(), 1);
        assert_eq!(stats.latest_refusal(), Some("its step is 7"));
        assert_eq!(stats.newest_stamp_ns(), Some((99 * 40 - 3) * MS));
        let now = 100 * 40 * MS;
        assert!((stats.hz(now) - 25.0).abs() < 1.0, "{}", stats.hz(now));
        assert!((stats.expected_hz().expect("known") - 25.0).abs() < 1e-6);
        assert!(stats.refused_recently(now) && stats.lost_recently(now));
        assert!(!stats.refused_recently(now + 3000 * MS) && stats.lost_recently(now + 3000 * MS));
        assert_eq!(stats.intake((98 * 40 - 3) * MS), Some(took));
        assert_eq!(stats.intake(1), None);
    }

    #[test]
    fn a_jump_of_the_clock_is_no_loss() {
        let mut stats = InputStats::default();
        let mut send = |from: i64| {
            for i in 0..50 {
                let stamp = (from + i * 40) * MS;
                stats.taken(Some(stamp), stamp, i * 40 * MS, Duration::ZERO);
            }
            stats.forget_stamps();
        };
        send(100_000);
        send(5_000);
        assert_eq!((stats.lost(), stats.newest_stamp_ns()), (0, None));
        assert_eq!(stats.received(), 100);
    }
}
