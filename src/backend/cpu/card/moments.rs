//! What a norm needs to know of a row, gathered in one pass.

/// Columns that are summed up one after the other; the sums of such pieces are added afterwards.
pub const PIECE: usize = 32;

/// Sum and sum of squares of some values, in f32.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    pub sum: f32,
    pub squares: f32,
}

impl Moments {
    /// Of values one after the other: `sum += v`, `squares = v * v + squares` in one rounding.
    #[inline(always)]
    pub fn of(values: &[f32]) -> Self {
        let mut moments = Self::default();
        for value in values {
            moments.sum += value;
            moments.squares = value.mul_add(*value, moments.squares);
        }
        moments
    }

    /// Of a row or a group of columns: those of its pieces of [`PIECE`] columns, the last of which may be shorter, added in
    /// ascending order.
    #[inline(always)]
    pub fn of_row(values: &[f32]) -> Self {
        let pieces = values.chunks(PIECE);
        pieces.fold(Self::default(), |moments, piece| moments.add(Self::of(piece)))
    }

    /// With those of the values behind these.
    #[inline(always)]
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "`+` would not show that the order matters")]
    pub fn add(self, next: Self) -> Self {
        Self { sum: self.sum + next.sum, squares: self.squares + next.squares }
    }

    /// The mean of `n` values, and `1 / sqrt(variance + eps)` of their population variance.
    #[inline(always)]
    pub fn mean_and_factor(self, n: usize, eps: f32) -> (f32, f32) {
        let n = n as f32;
        let mean = self.sum / n;
        let variance = self.squares / n - mean * mean;
        // Below zero by rounding alone. Unlike `max`, keeps NaN.
        let variance = if variance < 0.0 { 0.0 } else { variance };
        (mean, 1.0 / (variance + eps).sqrt())
    }

    /// `1 / sqrt(mean of squares + eps)` of `n` values.
    #[inline(always)]
    pub fn rms_factor(self, n: usize, eps: f32) -> f32 {
        1.0 / (self.squares / n as f32 + eps).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{random, wide};
    use super::*;

    const EPS: f32 = 1e-6;

    #[test]
    fn sums_match_f64() {
        for len in [1, 2, 31, 32, 33, 64, 100, 2048] {
            let values = random(len as u64, len);
            let exact = wide(&values);
            let sum: f64 = exact.iter().sum();
            let squares: f64 = exact.iter().map(|v| v * v).sum();
            let found = Moments::of_row(&values);
            let tolerance = 1e-6 * (len as f64).sqrt();
            assert!((f64::from(found.sum) - sum).abs() <= tolerance, "{len}: {found:?}, {sum}");
            assert!((f64::from(found.squares) - squares).abs() <= squares * 1e-6, "{len}");
            let n = len as f64;
            let (mean, variance) = (sum / n, squares / n - (sum / n).powi(2));
            let (found_mean, factor) = found.mean_and_factor(len, EPS);
            assert!((f64::from(found_mean) - mean).abs() <= 1e-6, "{len}");
            let exact = 1.0 / (variance + f64::from(EPS)).sqrt();
            // A single value has no variance: then rounding of squares may show against `eps`.
            let close = if len == 1 { 0.1 } else { 1e-5 };
            assert!((f64::from(factor) / exact - 1.0).abs() <= close, "{len}: {factor}, {exact}");
            let exact = 1.0 / (squares / n + f64::from(EPS)).sqrt();
            assert!((f64::from(found.rms_factor(len, EPS)) / exact - 1.0).abs() <= 1e-6, "{len}");
        }
    }

    #[test]
    fn pieces_are_added_in_order() {
        let values = random(3, 100);
        let by_hand = values.chunks(PIECE).map(Moments::of).reduce(Moments::add);
        assert_eq!(by_hand, Some(Moments::of_row(&values)));
        // Not what one sum over all of them would be.
        assert_ne!(Moments::of(&values), Moments::of_row(&values));
        assert_eq!(Moments::of_row(&[]), Moments::default());
    }

    #[test]
    fn a_variance_is_never_negative_and_not_a_number_stays() {
        let flat = Moments::of_row(&[0.1; 96]);
        let (mean, factor) = flat.mean_and_factor(96, 1e-5);
        assert!((mean - 0.1).abs() < 1e-7);
        assert!(factor <= 1.0 / 1e-5_f32.sqrt() && factor > 300.0, "{factor}");
        let (mean, factor) = Moments::of_row(&[f32::NAN, 1.0]).mean_and_factor(2, 1e-5);
        assert!(mean.is_nan() && factor.is_nan());
        assert!(Moments::of_row(&[f32::NAN, 1.0]).rms_factor(2, 1e-5).is_nan());
    }
}
