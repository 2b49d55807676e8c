//! When to predict.

use std::collections::VecDeque;

use super::chunks::Recorded;

/// How long before and after the moment of a recorded prediction its readings are looked for: recorder and node do not
/// receive a message at the same time. Shorter than what a clock may go back without having jumped.
pub const SEARCH_NS: i64 = 90_000_000;

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// Every so many nanoseconds of the node's clock.
    Period(i64),
    /// At every so many frames of the first camera.
    Frames(u64),
    /// Where a node predicted while the recording was made.
    Goals,
}

/// The moments that are still to come.
#[derive(Debug)]
pub enum Moments {
    /// `next_ns` is `None` before the first look at the clock, and after it has jumped.
    Grid {
        period_ns: i64,
        next_ns: Option<i64>,
    },
    Frames {
        every: u64,
        seen: u64,
    },
    /// By the time at which each prediction began.
    Goals(VecDeque<(i64, Recorded)>),
}

impl Moments {
    pub fn new(when: When, recorded: Vec<Recorded>) -> Self {
        match when {
            When::Period(period_ns) => Moments::Grid { period_ns, next_ns: None },
            When::Frames(every) => Moments::Frames { every, seen: 0 },
            When::Goals => {
                let mut goals: Vec<(i64, Recorded)> = recorded
                    .into_iter()
                    .map(|recorded| (recorded.chunk.begin_ns(), recorded))
                    .collect();
                goals.sort_by_key(|(begin_ns, _)| *begin_ns);
                Moments::Goals(goals.into())
            }
        }
    }

    /// The next moment of the grid before `end_ns` (or at it, if `inclusive`); the grid begins with the first question.
    pub fn next_on_grid(&mut self, from_ns: i64, end_ns: i64, inclusive: bool) -> Option<i64> {
        let Moments::Grid { period_ns, next_ns } = self else { return None };
        let next = *next_ns.get_or_insert(from_ns);
        if next > end_ns || (next == end_ns && !inclusive) {
            return None;
        }
        *next_ns = Some(next.saturating_add(*period_ns));
        Some(next)
    }

    /// A clock that only shows some moments has come to `now_ns`: whether the grid has one until then. Those that are
    /// passed over are gone.
    pub fn passes_grid(&mut self, now_ns: i64) -> bool {
        let Moments::Grid { period_ns, next_ns } = self else { return false };
        let next = *next_ns.get_or_insert(now_ns);
        if next > now_ns {
            return false;
        }
        let passed = (now_ns - next) / *period_ns + 1;
        *next_ns = Some(next.saturating_add(passed.saturating_mul(*period_ns)));
        true
    }

    /// The clock has jumped.
    pub fn jumped(&mut self) {
        if let Moments::Grid { next_ns, .. } = self {
            *next_ns = None;
        }
    }

    /// A frame of the first camera was taken in: whether it is one to predict from.
    pub fn frame(&mut self) -> bool {
        let Moments::Frames { every, seen } = self else { return false };
        let is_one = seen.is_multiple_of(*every);
        *seen += 1;
        is_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_does_not_drift_and_begins_anew_after_a_jump() {
        let mut moments = Moments::new(When::Period(100), vec![]);
        let mut before = |end: i64| {
            std::iter::from_fn(|| moments.next_on_grid(50, end, false)).collect::<Vec<_>>()
        };
        assert_eq!(before(50), [] as [i64; 0]);
        assert_eq!(before(250), [50, 150]);
        assert_eq!(before(251), [250]);
        moments.jumped();
        assert_eq!(moments.next_on_grid(7, 7, true), Some(7));
        assert_eq!(moments.next_on_grid(7, 107, true), Some(107));
    }

    #[test]
    fn a_clock_in_steps_asks_once_a_step() {
        let mut moments = Moments::new(When::Period(100), vec![]);
        let asked: Vec<bool> =
            [1000, 1050, 1100, 1350, 1399, 1400].map(|now| moments.passes_grid(now)).into();
        assert_eq!(asked, [true, false, true, true, false, true]);
    }

    #[test]
    fn frames_are_counted_from_the_first() {
        let mut moments = Moments::new(When::Frames(3), vec![]);
        let asked: Vec<bool> = (0..7).map(|_| moments.frame()).collect();
        assert_eq!(asked, [true, false, false, true, false, false, true]);
        assert!(!moments.passes_grid(9));
    }
}
