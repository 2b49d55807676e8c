//! Rounding to what the card stores.

use super::super::mat::MatMut;
use super::super::parallel::for_rows;
use crate::backend::blackhole::numerics::round_to_bf16;

/// All bits of a bf16.
pub const ALL_BITS: u16 = 0xffff;

/// The bf16 nearest to a value, ties to even; of its bits those of `mask` are kept.
#[inline(always)]
pub fn rounded(value: f32, mask: u16) -> f32 {
    // Unlike `bf16::to_f32`, becomes vector code.
    f32::from_bits(u32::from(round_to_bf16(value).to_bits() & mask) << 16)
}

/// Rounds every value to bf16.
pub fn round(values: MatMut<'_>) {
    for_rows(
        values,
        #[inline(always)]
        |_, row| {
            for value in row {
                *value = rounded(*value, ALL_BITS);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::super::super::testing::random;
    use super::*;

    #[test]
    fn values_are_those_of_bf16_and_gaps_stay() {
        let (rows, cols, stride) = (70, 300, 301);
        let before = random(1, rows * stride);
        let mut values = before.clone();
        round(MatMut::new(&mut values, rows, cols, stride));
        for (index, (before, found)) in before.iter().zip(&values).enumerate() {
            let is_gap = index % stride == cols;
            let expected = if is_gap { *before } else { bf16::from_f32(*before).to_f32() };
            assert_eq!(*found, expected, "{index}");
        }
        let again = values.clone();
        round(MatMut::new(&mut values, rows, cols, stride));
        assert_eq!(values, again);
    }

    #[test]
    fn masks_cut_towards_zero() {
        // 1 + 1/128 + 1/256 lies between two bf16 and goes to the even one; of that, bits are cut off.
        let value = 1.0 + 1.0 / 128.0 + 1.0 / 256.0;
        assert_eq!(rounded(value, ALL_BITS), 1.0 + 2.0 / 128.0);
        assert_eq!(rounded(1.0 + 3.0 / 128.0, 0xfffe), 1.0 + 2.0 / 128.0);
        assert_eq!(rounded(-1.0 - 3.0 / 128.0, 0xfffe), -1.0 - 2.0 / 128.0);
        assert_eq!(rounded(1.0 + 15.0 / 128.0, 0xfff8), 1.0 + 8.0 / 128.0);
        assert!(rounded(f32::NAN, 0xfff8).is_nan());
        assert_eq!(rounded(f32::INFINITY, 0xfff8), f32::INFINITY);
    }
}
