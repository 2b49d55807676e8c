//! The initial noise of the flow-matching head.

use rand_mt::Mt;

use crate::contract::Noise;

/// Values that the reference's generator transforms together; it has another algorithm below this count.
const BLOCK: usize = 16;

/// Why there is no noise to start from.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoiseError {
    #[error("the explicit noise has {found} values; the model needs {rows} x {cols} = {expected}")]
    Length { rows: usize, cols: usize, expected: usize, found: usize },
    #[error(
        "the explicit noise has {value} at row {row}, column {col}; every value must be finite"
    )]
    NotFinite { row: usize, col: usize, value: f32 },
    #[error(
        "noise of {rows} x {cols} values cannot be drawn: the generator is reproduced for {BLOCK} values and more"
    )]
    Size { rows: usize, cols: usize },
}

/// The noise that a request asks for, `[rows, cols]`, row-major.
///
/// # Errors
/// Explicit noise of another length or with a value that is not finite; a size that cannot be drawn.
pub fn initial_noise(noise: &Noise, rows: usize, cols: usize) -> Result<Vec<f32>, NoiseError> {
    let expected = rows.checked_mul(cols).ok_or(NoiseError::Size { rows, cols })?;
    match noise {
        Noise::Seed(_) if expected < BLOCK => Err(NoiseError::Size { rows, cols }),
        Noise::Seed(seed) => Ok(seeded_normal(*seed, expected)),
        Noise::Explicit(values) if values.len() != expected => {
            Err(NoiseError::Length { rows, cols, expected, found: values.len() })
        }
        Noise::Explicit(values) => match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values.clone()),
            Some(at) => {
                Err(NoiseError::NotFinite { row: at / cols, col: at % cols, value: values[at] })
            }
        },
    }
}

/// `count >= 16` standard normal values, as `torch.randn` draws them in f32 on a CPU (spec N1.6, section 7.5).
///
/// Like there, only the low 32 bits of the seed reach the generator: seeds that differ by 2^32 give the same noise.
fn seeded_normal(seed: u64, count: usize) -> Vec<f32> {
    let mut generator = Mt::new(seed as u32);
    let mut values: Vec<f32> = (0..count).map(|_| uniform(&mut generator)).collect();
    for block in values.chunks_exact_mut(BLOCK) {
        to_normal(block);
    }
    if !count.is_multiple_of(BLOCK) {
        // A last block that is not full is drawn anew, together with the values in front of it that fill it up.
        let last = &mut values[count - BLOCK..];
        last.fill_with(|| uniform(&mut generator));
        to_normal(last);
    }
    values
}

/// Uniform in [0, 1) with 24 bits.
fn uniform(generator: &mut Mt) -> f32 {
    const BITS: u32 = 24;
    (generator.next_u32() & ((1 << BITS) - 1)) as f32 / (1 << BITS) as f32
}

/// Box-Muller over one block: radii from its first half, angles from its second. Radius and angle are rounded to
/// f32 where the reference rounds them; the functions between are f64, which its own approximations come close to.
fn to_normal(block: &mut [f32]) {
    let (radii, angles) = block.split_at_mut(BLOCK / 2);
    for (first, second) in radii.iter_mut().zip(angles) {
        let logarithm = f64::from(1.0 - *first).ln() as f32;
        let radius = (-2.0 * logarithm).sqrt();
        let angle = f64::from(std::f32::consts::TAU * *second);
        *first = radius * angle.cos() as f32;
        *second = radius * angle.sin() as f32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn case_23_noise_is_a_function_of_the_seed_alone() {
        let first = seeded_normal(42, 640);
        let other = seeded_normal(43, 640);
        assert_ne!(first, other);
        assert_eq!(first, seeded_normal(42, 640));
    }

    #[test]
    fn only_the_low_32_bits_of_a_seed_count() {
        assert_eq!(seeded_normal(7, 32), seeded_normal(7 + (1 << 32), 32));
        assert_ne!(seeded_normal(7, 32), seeded_normal(8, 32));
    }

    #[test]
    fn a_last_block_that_is_not_full_is_drawn_anew() {
        let full = seeded_normal(5, 48);
        let values = seeded_normal(5, 37);
        assert_eq!(values[..21], full[..21], "blocks in front of the last 16 are untouched");
        // The last 16 values come from draws 38 to 53 of the generator.
        let mut generator = Mt::new(5);
        let draws: Vec<f32> = (0..53).map(|_| uniform(&mut generator)).collect();
        let mut last = draws[37..].to_vec();
        to_normal(&mut last);
        assert_eq!(values[21..], last);
    }

    #[test]
    fn the_extremes_of_the_uniform_stay_finite() {
        let largest = 1.0 - 1.0 / (1 << 24) as f32;
        let mut block = [largest; BLOCK];
        to_normal(&mut block);
        assert!(block.iter().all(|value| value.is_finite()), "{block:?}");
        let mut block = [0.0; BLOCK];
        to_normal(&mut block);
        assert_eq!(block, [0.0; BLOCK]);
    }

    #[test]
    fn mean_and_variance_are_those_of_a_standard_normal() {
        let values = seeded_normal(1, 1 << 16);
        let count = values.len() as f64;
        let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / count;
        let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / count;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }

    #[test]
    fn explicit_noise_is_passed_on_or_refused() {
        let values: Vec<f32> = (0..6).map(|v| v as f32).collect();
        assert_eq!(initial_noise(&Noise::Explicit(values.clone()), 2, 3).unwrap(), values);
        let error = initial_noise(&Noise::Explicit(values.clone()), 2, 4).unwrap_err();
        assert!(matches!(error, NoiseError::Length { expected: 8, found: 6, .. }));
        let mut bad = values;
        bad[4] = f32::NAN;
        let error = initial_noise(&Noise::Explicit(bad), 2, 3).unwrap_err();
        assert!(matches!(error, NoiseError::NotFinite { row: 1, col: 1, .. }), "{error}");
    }

    #[test]
    fn sizes_that_cannot_be_drawn_are_refused() {
        for (rows, cols) in [(0, 128), (3, 5), (usize::MAX, 2)] {
            let error = initial_noise(&Noise::Seed(0), rows, cols).unwrap_err();
            assert_eq!(error, NoiseError::Size { rows, cols });
        }
        assert_eq!(initial_noise(&Noise::Seed(0), 4, 4).unwrap().len(), 16);
    }

    proptest! {
        #[test]
        fn every_seed_and_size_gives_finite_values(seed in any::<u64>(), count in 16usize..200) {
            let values = seeded_normal(seed, count);
            prop_assert_eq!(values.len(), count);
            prop_assert!(values.iter().all(|value| value.is_finite()));
        }
    }
}
