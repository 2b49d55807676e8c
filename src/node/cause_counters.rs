//! How often there was no observation, by cause.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::history::{Cause, Waiting};

/// One counter per [`Cause`].
#[derive(Debug, Default)]
pub struct CauseCounters([AtomicU64; Cause::ALL.len()]);

impl CauseCounters {
    /// Counts one cause.
    pub fn count(&self, cause: Cause) {
        self.0[cause as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts every cause of a missing observation once.
    pub fn count_all(&self, waiting: &Waiting) {
        waiting.causes().for_each(|cause| self.count(cause));
    }

    /// Every cause and its number.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, u64)> {
        let count =
            |(cause, counter): (Cause, &AtomicU64)| (cause, counter.load(Ordering::Relaxed));
        Cause::ALL.into_iter().zip(&self.0).map(count)
    }
}

/// The causes that have occurred, such as `missing 12, stale 3`; `none` for none.
impl fmt::Display for CauseCounters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let occurred = self.iter().filter(|(_, count)| *count > 0);
        let texts: Vec<String> =
            occurred.map(|(cause, count)| format!("{} {count}", cause.name())).collect();
        if texts.is_empty() { f.write_str("none") } else { f.write_str(&texts.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Lack, WaitingFor};

    #[test]
    fn every_cause_of_a_refusal_counts_once() {
        let counters = CauseCounters::default();
        assert_eq!(counters.to_string(), "none");
        let camera = |key: &str, lack| WaitingFor::Camera {
            key: key.to_owned(),
            topic: format!("/{key}"),
            lack,
        };
        let missing = || Lack::Nothing { refusal: None };
        let frozen = Lack::Frozen { repeats: 30, limit: 30 };
        counters.count_all(&Waiting(vec![
            camera("a", missing()),
            camera("b", missing()),
            camera("c", frozen),
        ]));
        counters.count_all(&Waiting(vec![WaitingFor::Clock, camera("a", missing())]));
        assert_eq!(counters.to_string(), "no_clock 1, missing 2, frozen 1");
        let counted = counters.iter().find(|(cause, _)| *cause == Cause::Missing);
        assert_eq!(counted, Some((Cause::Missing, 2)));
    }

    #[test]
    fn causes_stand_in_the_order_of_their_numbers() {
        for (number, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, number, "{}", cause.name());
        }
    }
}
