//! How two series of numbers go together.

/// Pearson's correlation, and Lin's concordance, which is lower where scale or offset differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlation {
    pub pcc: f64,
    pub concordance: f64,
}

impl Correlation {
    /// Of pairs; `None` where one side has the same value everywhere, or there are none.
    pub fn of(pairs: impl Iterator<Item = (f64, f64)> + Clone) -> Option<Self> {
        let (first_a, first_b) = pairs.clone().next()?;
        // Rounding of the mean would make values that are all the same look as if they moved.
        let moves_a = pairs.clone().any(|(a, _)| a != first_a);
        let moves_b = pairs.clone().any(|(_, b)| b != first_b);
        if !moves_a || !moves_b {
            return None;
        }
        let count = pairs.clone().count() as f64;
        let mean_a = pairs.clone().map(|(a, _)| a).sum::<f64>() / count;
        let mean_b = pairs.clone().map(|(_, b)| b).sum::<f64>() / count;
        let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
        for (a, b) in pairs {
            let (a, b) = (a - mean_a, b - mean_b);
            ab += a * b;
            aa += a * a;
            bb += b * b;
        }
        let offset = mean_a - mean_b;
        Some(Self {
            // The root of a square is exact, so that equal values have exactly 1.
            pcc: (ab / (aa * bb).sqrt()).clamp(-1.0, 1.0),
            concordance: 2.0 * ab / (aa + bb + count * offset * offset),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pcc(a: &[f64], b: &[f64]) -> Option<f64> {
        let pairs = a.iter().copied().zip(b.iter().copied());
        Correlation::of(pairs).map(|correlation| correlation.pcc)
    }

    #[test]
    fn of_series_by_hand() {
        let a = [1.0, 2.0, 3.0, 4.0];
        assert!((pcc(&a, &[2.0, 4.0, 6.0, 8.0]).unwrap() - 1.0).abs() < 1e-15);
        assert!((pcc(&a, &[4.0, 3.0, 2.0, 1.0]).unwrap() + 1.0).abs() < 1e-15);
        // Sums about the means: 1, over 5 and 2.
        assert!((pcc(&a, &[1.0, 0.0, 2.0, 1.0]).unwrap() - 1.0 / 10f64.sqrt()).abs() < 1e-12);
        assert_eq!(pcc(&a, &[1.0; 4]), None);
        assert_eq!(pcc(&[], &[]), None);
    }

    #[test]
    fn values_that_are_all_the_same_do_not_move_by_rounding() {
        let still = [f64::from(0.1f32); 112];
        let moving: Vec<f64> = (0..112).map(f64::from).collect();
        assert_eq!(pcc(&still, &moving), None);
        assert_eq!(pcc(&moving, &still), None);
    }
}
