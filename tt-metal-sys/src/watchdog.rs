//! How long a replay may take, learned from those before it.

use std::collections::VecDeque;
use std::time::Duration;

/// When a replay is given up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WatchdogOptions {
    /// Times the 99th percentile.
    pub factor: f64,
    /// Never sooner than this.
    pub least: Duration,
    /// Until `samples` replays have been seen.
    pub first: Duration,
    pub samples: usize,
    /// As many replays are remembered.
    pub window: usize,
}

impl Default for WatchdogOptions {
    fn default() -> Self {
        Self {
            factor: 10.0,
            least: Duration::from_millis(100),
            first: Duration::from_secs(30),
            samples: 20,
            window: 1000,
        }
    }
}

/// Times of one kind of replay.
#[derive(Clone, Debug)]
pub struct Watchdog {
    options: WatchdogOptions,
    times: VecDeque<Duration>,
}

impl Watchdog {
    pub fn new(options: WatchdogOptions) -> Self {
        Self { options, times: VecDeque::new() }
    }

    pub fn saw(&mut self, time: Duration) {
        if self.times.len() >= self.options.window.max(1) {
            self.times.pop_front();
        }
        self.times.push_back(time);
    }

    /// The time that 99 of 100 replays do not exceed; `None` before the first one.
    pub fn p99(&self) -> Option<Duration> {
        let mut sorted: Vec<Duration> = self.times.iter().copied().collect();
        sorted.sort_unstable();
        // The nearest rank: the smallest time with at least 99 % of all times at or below it.
        let rank = (sorted.len() * 99).div_ceil(100);
        sorted.get(rank.checked_sub(1)?).copied()
    }

    /// When the next replay is given up.
    pub fn limit(&self) -> Duration {
        let known = self.times.len() >= self.options.samples.max(1);
        match self.p99().filter(|_| known) {
            None => self.options.first,
            Some(p99) => {
                let limit = Duration::try_from_secs_f64(p99.as_secs_f64() * self.options.factor);
                limit.unwrap_or(Duration::MAX).max(self.options.least)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(value: u64) -> Duration {
        Duration::from_millis(value)
    }

    fn watchdog() -> Watchdog {
        let least = milliseconds(5);
        Watchdog::new(WatchdogOptions { least, samples: 3, window: 200, ..Default::default() })
    }

    #[test]
    fn the_limit_follows_the_99th_percentile() {
        let mut watchdog = watchdog();
        assert_eq!((watchdog.p99(), watchdog.limit()), (None, Duration::from_secs(30)));
        (1..=100).for_each(|value| watchdog.saw(milliseconds(value)));
        assert_eq!((watchdog.p99(), watchdog.limit()), (Some(milliseconds(99)), milliseconds(990)));
    }

    #[test]
    fn few_times_do_not_count_and_small_ones_have_a_floor() {
        let mut watchdog = watchdog();
        watchdog.saw(Duration::from_micros(10));
        watchdog.saw(Duration::from_micros(10));
        assert_eq!(watchdog.limit(), Duration::from_secs(30));
        watchdog.saw(Duration::from_micros(10));
        assert_eq!(watchdog.limit(), milliseconds(5));
    }

    #[test]
    fn old_times_are_forgotten() {
        let mut watchdog = watchdog();
        watchdog.saw(Duration::from_secs(100));
        (0..200).for_each(|_| watchdog.saw(milliseconds(2)));
        assert_eq!(watchdog.p99(), Some(milliseconds(2)));
        assert_eq!(watchdog.limit(), milliseconds(20));
    }
}
