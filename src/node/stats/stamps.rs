//! What the stamps of messages tell of those that have not come.

use std::collections::VecDeque;

const NS_PER_S: f64 = 1e9;
/// Stamps that the interval is measured over.
const LENGTH: usize = 64;
/// Before there are so many stamps, nothing is said.
const ENOUGH: usize = 10;
/// A longer gap is a pause of the source, not a loss on the way: no message is missed in it.
const PAUSE_NS: i64 = 1_000_000_000;

/// The stamps of one topic.
#[derive(Clone, Debug, Default)]
pub struct Stamps {
    /// In the order of their times.
    recent: VecDeque<i64>,
    /// Messages without a stamp since the newest one with.
    unread: u64,
    lost: u64,
    /// Lost in the latest gap; messages that come too soon after it were late, not lost.
    in_latest_gap: u64,
}

impl Stamps {
    /// Notes the stamp of a message.
    pub fn note(&mut self, stamp_ns: i64) {
        let Some(&newest_ns) = self.recent.back() else {
            self.recent.push_back(stamp_ns);
            return;
        };
        let came = std::mem::take(&mut self.unread) + 1;
        if let Some(interval_ns) = self.interval_ns() {
            let gap_ns = stamp_ns.saturating_sub(newest_ns);
            self.count_lost(gap_ns, interval_ns, came);
        }
        if stamp_ns > newest_ns {
            self.recent.push_back(stamp_ns);
        }
        if self.recent.len() > LENGTH {
            self.recent.pop_front();
        }
    }

    /// Notes a message whose stamp is not known, since it was not read or is of no use.
    pub fn note_unread(&mut self) {
        self.unread += 1;
    }

    /// Forgets the stamps, which later ones cannot be compared with.
    pub fn forget(&mut self) {
        *self = Self { lost: self.lost, ..Self::default() };
    }

    fn count_lost(&mut self, gap_ns: i64, interval_ns: i64, came: u64) {
        if gap_ns > PAUSE_NS.max(3 * interval_ns) {
            self.in_latest_gap = 0;
            return;
        }
        let steps = (gap_ns.max(0) as f64 / interval_ns as f64).round() as u64;
        if steps >= came {
            self.in_latest_gap = steps - came;
            self.lost += self.in_latest_gap;
        } else {
            let late = (came - steps).min(self.in_latest_gap);
            self.in_latest_gap -= late;
            self.lost -= late;
        }
    }

    /// The usual time between two messages: the median over three neighbours, halved, so that jitter cancels.
    fn interval_ns(&self) -> Option<i64> {
        if self.recent.len() < ENOUGH {
            return None;
        }
        let later = self.recent.iter().skip(2);
        let mut spans: Vec<i64> =
            later.zip(&self.recent).map(|(later, first)| later - first).collect();
        let middle = spans.len() / 2;
        let (_, median, _) = spans.select_nth_unstable(middle);
        Some((*median / 2).max(1))
    }

    /// Messages per second that the source sends, as far as the stamps tell.
    pub fn expected_hz(&self) -> Option<f64> {
        self.interval_ns().map(|interval_ns| NS_PER_S / interval_ns as f64)
    }

    /// Messages that the stamps leave a place for and that have not come.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn noted(stamps: impl IntoIterator<Item = i64>) -> Stamps {
        let mut made = Stamps::default();
        stamps.into_iter().for_each(|ms| made.note(ms * MS));
        made
    }

    #[test]
    fn every_gap_is_counted() {
        let whole = noted((0..200).map(|i| i * 33));
        assert_eq!(whole.lost(), 0);
        assert!((whole.expected_hz().expect("known") - 1000.0 / 33.0).abs() < 1e-9);
        let missing = [50, 90, 91, 92, 150];
        let kept = (0..200).filter(|i| !missing.contains(i));
        assert_eq!(noted(kept.map(|i| i * 33)).lost(), missing.len() as u64);
    }

    #[test]
    fn jitter_is_no_loss() {
        // Every second message is 13 ms late, and one of them 25 ms.
        let late = |i: i64| if i == 60 { 25 } else { 13 * (i % 2) };
        let stamps = noted((0..200).map(|i| i * 33 + late(i)));
        assert_eq!(stamps.lost(), 0);
        assert!((stamps.expected_hz().expect("known") - 1000.0 / 33.0).abs() < 0.1);
    }

    #[test]
    fn what_was_received_and_not_read_is_not_lost() {
        let mut stamps = noted((0..50).map(|i| i * 33));
        stamps.note_unread();
        stamps.note_unread();
        stamps.note(53 * 33 * MS);
        assert_eq!(stamps.lost(), 1);
    }

    #[test]
    fn a_message_that_comes_after_a_later_one_is_not_lost() {
        let mut stamps = noted((0..50).map(|i| i * 33));
        stamps.note(52 * 33 * MS);
        assert_eq!(stamps.lost(), 2);
        stamps.note(51 * 33 * MS);
        assert_eq!(stamps.lost(), 1);
    }

    #[test]
    fn a_pause_is_no_loss() {
        let stamps = noted((0..50).chain(10_000..10_050).map(|i| i * 33));
        assert_eq!(stamps.lost(), 0);
    }

    #[test]
    fn nothing_is_said_too_soon() {
        let stamps = noted([0, 33, 66, 400, 433]);
        assert_eq!((stamps.expected_hz(), stamps.lost()), (None, 0));
    }
}
