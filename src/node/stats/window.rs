//! The spread of a time over the last predictions.

use std::collections::VecDeque;
use std::time::Duration;

/// Values that count.
const LENGTH: usize = 1000;

/// The last `LENGTH` values of a time.
#[derive(Clone, Debug, Default)]
pub struct Window {
    values: VecDeque<Duration>,
}

/// How the values of a window are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    pub p50: Duration,
    pub p99: Duration,
    pub max: Duration,
}

impl Window {
    pub fn add(&mut self, value: Duration) {
        if self.values.len() == LENGTH {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    /// Values that the spread is made of.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Percentiles are values that have occurred: the least one that is not below so many percent of all. `None` while
    /// there are none.
    pub fn spread(&self) -> Option<Spread> {
        let mut sorted: Vec<Duration> = self.values.iter().copied().collect();
        sorted.sort_unstable();
        let max = *sorted.last()?;
        let at = |percent: usize| sorted[(sorted.len() * percent).div_ceil(100) - 1];
        Some(Spread { p50: at(50), p99: at(99), max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(values: impl IntoIterator<Item = u64>) -> Window {
        let mut window = Window::default();
        values.into_iter().for_each(|ms| window.add(Duration::from_millis(ms)));
        window
    }

    fn in_ms(window: &Window) -> Option<[u128; 3]> {
        window.spread().map(|Spread { p50, p99, max }| [p50, p99, max].map(|time| time.as_millis()))
    }

    #[test]
    fn percentiles_are_values_that_have_occurred() {
        assert_eq!(in_ms(&window([])), None);
        assert_eq!(in_ms(&window([7])), Some([7, 7, 7]));
        assert_eq!(in_ms(&window([3, 1])), Some([1, 3, 3]));
        assert_eq!(in_ms(&window((1..=200).rev())), Some([100, 198, 200]));
    }

    #[test]
    fn only_the_last_thousand_count() {
        let made = window((1..=1000).chain([5000]));
        assert_eq!(made.count(), 1000);
        assert_eq!(in_ms(&made), Some([501, 991, 5000]));
        assert_eq!(in_ms(&window([9000].into_iter().chain(1..=1000))), Some([500, 990, 1000]));
    }
}
