//! A line through two points that both are given, for grippers and the like: never a scale that is guessed.

use crate::words::Number;

/// Share of the source's range by which a value may lie outside of it.
const MARGIN: f64 = 0.05;

/// The line that takes `from[0]` to `to[0]` and `from[1]` to `to[1]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AffineMap {
    from: [f64; 2],
    to: [f64; 2],
}

/// Why two ranges make no map.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AffineMapError {
    #[error("has {found} values; it needs both ends: [first, second]")]
    Ends { found: usize },
    #[error("is [{end}, {end}]; its two ends must differ", end = Number(*.0))]
    NoRange(f64),
    #[error("has {0}, not a finite number")]
    NotFinite(f64),
}

/// Why a value is not mapped.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "{} is outside of the source's range {} to {} by more than {} %",
    Number(*.value), Number(ends[0]), Number(ends[1]), MARGIN * 100.0
)]
pub struct OutOfRange {
    pub value: f64,
    pub ends: [f64; 2],
}

/// Checks one range of a map.
///
/// # Errors
/// Not two values, two equal ones, or one that is not finite.
pub fn ends(range: &[f64]) -> Result<[f64; 2], AffineMapError> {
    let &[first, second] = range else {
        return Err(AffineMapError::Ends { found: range.len() });
    };
    if let Some(value) = [first, second].into_iter().find(|value| !value.is_finite()) {
        return Err(AffineMapError::NotFinite(value));
    }
    if first == second {
        return Err(AffineMapError::NoRange(first));
    }
    Ok([first, second])
}

impl AffineMap {
    /// The map between ranges that [`ends`] has accepted.
    pub fn new(from: [f64; 2], to: [f64; 2]) -> Self {
        Self { from, to }
    }

    pub fn from(&self) -> [f64; 2] {
        self.from
    }

    pub fn to(&self) -> [f64; 2] {
        self.to
    }

    /// The value on the line, unbounded. Both ends are met exactly.
    pub fn apply(&self, value: f64) -> f64 {
        let ([from_first, from_second], [to_first, to_second]) = (self.from, self.to);
        let share = (value - from_first) / (from_second - from_first);
        to_first * (1.0 - share) + to_second * share
    }

    /// The value of a measurement.
    ///
    /// # Errors
    /// It lies so far outside that another unit or another device is likely.
    pub fn measured(&self, value: f64) -> Result<f64, OutOfRange> {
        let [first, second] = self.from;
        let margin = MARGIN * (second - first).abs();
        let inside = first.min(second) - margin..=first.max(second) + margin;
        if inside.contains(&value) {
            Ok(self.apply(value))
        } else {
            Err(OutOfRange { value, ends: self.from })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn case_43_both_ends_are_met_and_foreign_scales_refused() {
        // 0 to 0.085 m, open wide, for a policy whose 1 is closed.
        let map = AffineMap::new([0.0, 0.085], [1.0, 0.0]);
        assert_eq!(map.measured(0.0), Ok(1.0));
        assert_eq!(map.measured(0.085), Ok(0.0));
        assert!((map.measured(0.0425).expect("inside") - 0.5).abs() < 1e-15);
        assert!(map.measured(0.0892).is_ok(), "within 5 % of the range");
        for value in [0.0893, -0.0043, 1.0, 100.0, f64::NAN, f64::INFINITY] {
            let error = map.measured(value).expect_err("outside").to_string();
            assert!(error.contains("range 0 to 0.085 by more than 5 %"), "{error}");
        }
    }

    #[test]
    fn ranges_need_two_different_ends() {
        for (range, expected) in [
            (&[][..], "has 0 values"),
            (&[1.0], "has 1 values"),
            (&[0.0, 1.0, 2.0], "both ends"),
            (&[0.5, 0.5], "must differ"),
            (&[0.0, f64::NAN], "not a finite number"),
        ] {
            let error = ends(range).expect_err("no range").to_string();
            assert!(error.contains(expected), "{range:?}: {error}");
        }
        assert_eq!(ends(&[1.0, -1.0]), Ok([1.0, -1.0]));
    }

    proptest! {
        #[test]
        fn reading_back_gives_the_value(
            from in -10.0..10.0f64,
            length in prop_oneof![-10.0..-0.1f64, 0.1..10.0f64],
            share in -0.04..1.04f64,
        ) {
            let map = AffineMap::new([from, from + length], [0.0, 1.0]);
            let value = from + share * length;
            let there = map.measured(value).expect("inside");
            prop_assert!((AffineMap::new(map.to(), map.from()).apply(there) - value).abs() < 1e-12);
        }
    }
}
