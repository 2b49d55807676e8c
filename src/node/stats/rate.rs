//! How often something happens, over the last seconds.

use std::collections::VecDeque;

const NS_PER_S: f64 = 1e9;
/// Events are counted per so much time.
const BUCKET_NS: i64 = 100_000_000;
/// The rate is that of so much time.
const WINDOW_NS: i64 = 5_000_000_000;

/// Events by the time in which they happened; memory does not grow with their number.
#[derive(Clone, Debug, Default)]
pub struct Rate {
    /// Number of a bucket and how many events it has, oldest first; empty ones are left out.
    buckets: VecDeque<(i64, u64)>,
    /// Of the very first event.
    first_ns: Option<i64>,
}

impl Rate {
    /// Counts an event at a time that never goes back.
    pub fn count(&mut self, at_ns: i64) {
        self.first_ns.get_or_insert(at_ns);
        let number = at_ns.div_euclid(BUCKET_NS);
        match self.buckets.back_mut() {
            Some((last, events)) if *last >= number => *events += 1,
            _ => self.buckets.push_back((number, 1)),
        }
        let oldest = number - WINDOW_NS / BUCKET_NS;
        while self.buckets.front().is_some_and(|(number, _)| *number < oldest) {
            self.buckets.pop_front();
        }
    }

    /// Events per second over the last seconds, or since the first event; 0 where there is no time to speak of yet.
    pub fn hz(&self, now_ns: i64) -> f64 {
        let Some(first_ns) = self.first_ns else { return 0.0 };
        let end = now_ns.div_euclid(BUCKET_NS);
        // The first event begins the time that is looked at, so that its bucket is only part of it.
        let begin = (end - WINDOW_NS / BUCKET_NS).max(first_ns.div_euclid(BUCKET_NS) + 1);
        if end <= begin {
            return 0.0;
        }
        let inside = self.buckets.iter().filter(|(number, _)| (begin..end).contains(number));
        let events: u64 = inside.map(|(_, events)| events).sum();
        events as f64 * NS_PER_S / ((end - begin) * BUCKET_NS) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn the_rate_of_the_last_seconds() {
        let mut rate = Rate::default();
        assert_eq!(rate.hz(0), 0.0);
        (0..300).for_each(|i| rate.count(7 * MS + i * 33_333_333));
        let end = 10_000 * MS;
        assert!((rate.hz(end) - 30.0).abs() < 0.3, "{}", rate.hz(end));
        // Half of the window is silent, then all of it.
        assert!((rate.hz(end + 2_500 * MS) - 15.0).abs() < 0.3);
        assert_eq!(rate.hz(end + 6_000 * MS), 0.0);
        assert!(rate.buckets.len() <= 51);
    }

    #[test]
    fn a_rate_is_known_soon_after_the_first_event() {
        let mut rate = Rate::default();
        (0..100).for_each(|i| rate.count(i * 10 * MS));
        assert!((rate.hz(1_000 * MS) - 100.0).abs() < 1.0, "{}", rate.hz(1_000 * MS));
    }
}
