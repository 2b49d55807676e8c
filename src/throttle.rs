//! Log lines and messages that do not come more often than somebody reads them.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::locked::locked;

/// Something that comes again and again is written to the log once in this time.
pub const WARNING_PERIOD: Duration = Duration::from_secs(2);

/// Lets something through at most once in a while.
#[derive(Debug)]
pub struct Throttle {
    period: Duration,
    last: Option<Instant>,
    held_back: u64,
}

impl Throttle {
    pub fn new(period: Duration) -> Self {
        Self { period, last: None, held_back: 0 }
    }

    /// How many were held back since the last one that passed, or `None` if this one is held back too.
    pub fn pass(&mut self) -> Option<u64> {
        if self.last.is_some_and(|last| last.elapsed() < self.period) {
            self.held_back += 1;
            return None;
        }
        self.last = Some(Instant::now());
        Some(std::mem::take(&mut self.held_back))
    }
}

/// Warnings that any thread may give, of which one in [`WARNING_PERIOD`] is written to the log.
#[derive(Debug)]
pub struct Warnings(Mutex<Throttle>);

impl Default for Warnings {
    fn default() -> Self {
        Self(Mutex::new(Throttle::new(WARNING_PERIOD)))
    }
}

impl Warnings {
    /// What the sentence ends with, as of [`and_more`], or `None` if it is not to be written.
    pub fn pass(&self) -> Option<String> {
        // A panic elsewhere leaves the counters as they are.
        locked(&self.0).pass().map(and_more)
    }
}

/// How many more there were, as the end of a sentence; empty for none.
pub fn and_more(held_back: u64) -> String {
    match held_back {
        0 => String::new(),
        n => format!(" ({n} more since the last time)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_back_is_counted() {
        let mut never = Throttle::new(Duration::MAX);
        assert_eq!(never.pass(), Some(0));
        assert_eq!(never.pass(), None);
        let mut always = Throttle::new(Duration::ZERO);
        assert_eq!((always.pass(), always.pass()), (Some(0), Some(0)));
        never.period = Duration::ZERO;
        assert_eq!((never.pass(), never.pass()), (Some(1), Some(0)));
        assert_eq!(
            (and_more(0), and_more(3)),
            (String::new(), " (3 more since the last time)".into())
        );
    }
}
