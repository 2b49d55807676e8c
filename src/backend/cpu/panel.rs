//! Weights of a tile, widened to f32 and laid out as the innermost loop of a product reads them: for each `k` one value
//! of every column.

use std::ops::Range;

use half::bf16;

use super::mat::WeightBlock;
use crate::program::Orientation;

/// Where a panel starts in memory.
const CACHE_LINE_BYTES: usize = 64;

/// The first `len` elements of `scratch` from the start of a cache line on; it grows when it is too short.
pub fn aligned(scratch: &mut Vec<f32>, len: usize) -> &mut [f32] {
    let spare = CACHE_LINE_BYTES / size_of::<f32>();
    if scratch.len() < len + spare {
        scratch.resize(len + spare, 0.0);
    }
    let start = scratch.as_ptr().align_offset(CACHE_LINE_BYTES);
    &mut scratch[start..start + len]
}

/// Fills `panel`, `[inputs, width]`, with the weights of some columns and inputs. Columns that are missing hold finite
/// values that mean nothing, or repeat the last one.
#[inline(always)]
pub fn pack(
    weight: WeightBlock<'_>,
    columns: Range<usize>,
    inputs: Range<usize>,
    width: usize,
    panel: &mut [f32],
) {
    if columns.len() < width {
        panel.fill(0.0);
    }
    match weight.orientation() {
        Orientation::InOut => {
            for (input, target) in inputs.zip(panel.chunks_exact_mut(width)) {
                for (target, value) in target.iter_mut().zip(&weight.row(input)[columns.clone()]) {
                    *target = widen(*value);
                }
            }
        }
        Orientation::OutIn => {
            #[cfg(target_arch = "x86_64")]
            if width.is_multiple_of(avx512::SIDE) && std::is_x86_feature_detected!("avx512f") {
                return avx512::transpose(weight, columns, inputs, width, panel);
            }
            transpose(weight, columns, inputs, width, panel);
        }
    }
}

/// `bf16::to_f32` without its care for signalling NaN, which keeps loops from becoming vector code.
#[inline(always)]
fn widen(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

/// Inputs that are transposed at a time, so that their part of the panel stays in the first-level cache.
const TRANSPOSED_INPUTS: usize = 64;

/// As [`pack`], for weights stored `[out, in]`.
#[inline(always)]
fn transpose(
    weight: WeightBlock<'_>,
    columns: Range<usize>,
    inputs: Range<usize>,
    width: usize,
    panel: &mut [f32],
) {
    for first in inputs.clone().step_by(TRANSPOSED_INPUTS) {
        let part = first..inputs.end.min(first + TRANSPOSED_INPUTS);
        let target = &mut panel[(first - inputs.start) * width..];
        for (place, column) in columns.clone().enumerate() {
            let values = &weight.row(column)[part.clone()];
            for (target, value) in target.chunks_exact_mut(width).zip(values) {
                target[place] = widen(*value);
            }
        }
    }
}

/// Transposing squares of values inside the registers instead of moving them one by one.
#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::*;
    use std::ops::Range;

    use half::bf16;

    use super::super::mat::WeightBlock;

    /// Columns that are transposed at a time.
    pub const SIDE: usize = 16;
    /// Inputs that are transposed at a time: half a vector of pairs of bf16.
    const INPUTS: usize = SIDE;

    /// As [`super::transpose`], for processors with AVX-512 and panels whose width is a multiple of [`SIDE`].
    pub fn transpose(
        weight: WeightBlock<'_>,
        columns: Range<usize>,
        inputs: Range<usize>,
        width: usize,
        panel: &mut [f32],
    ) {
        let whole = inputs.len() / INPUTS * INPUTS;
        let (squares, rest) = panel.split_at_mut(whole * width);
        for place in (0..columns.len()).step_by(SIDE) {
            // A column that is missing repeats the last one.
            let band = std::array::from_fn(|i| {
                let column = (columns.start + place + i).min(columns.end - 1);
                &weight.row(column)[inputs.start..inputs.start + whole]
            });
            // SAFETY: the caller has seen that the processor has AVX-512.
            unsafe { transpose_band(band, width, place, squares) };
        }
        super::transpose(weight, columns, inputs.start + whole..inputs.end, width, rest);
    }

    /// Writes 16 columns of whole squares as rows of `panel`, `width` apart, from `place` on in each.
    #[target_feature(enable = "avx512f")]
    fn transpose_band(columns: [&[bf16]; SIDE], width: usize, place: usize, panel: &mut [f32]) {
        let len = columns[0].len();
        assert!(columns.iter().all(|column| column.len() == len) && len.is_multiple_of(INPUTS));
        assert!(panel.len() == len * width && place + SIDE <= width, "{len} rows of {width}");
        for first in (0..len).step_by(INPUTS) {
            // SAFETY: `INPUTS` values of every column and as many rows of the panel begin at `first`.
            unsafe {
                let target = panel.as_mut_ptr().add(first * width + place);
                transpose_square(&columns, first, width, target);
            }
        }
    }

    /// Writes 16 columns of 16 values, which begin at `first`, as 16 rows of 16 values, `width` apart.
    #[target_feature(enable = "avx512f")]
    #[inline]
    unsafe fn transpose_square(
        columns: &[&[bf16]; SIDE],
        first: usize,
        width: usize,
        target: *mut f32,
    ) {
        let zero = _mm512_setzero_si512();
        let (mut a, mut b) = ([zero; 8], [zero; 8]);
        for (i, pairs) in a.iter_mut().enumerate() {
            // Two columns in one vector, chosen so that all come out in order.
            let low = if i < 4 { i } else { i + 4 };
            // SAFETY: the caller says that there are 16 values; the loads ask for no alignment.
            let [low, high] = unsafe {
                [low, low + 4].map(
                    #[inline(always)]
                    |column| _mm256_loadu_si256(columns[column].as_ptr().add(first).cast()),
                )
            };
            *pairs = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
        }
        for i in (0..8).step_by(2) {
            b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
            b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
        }
        for i in [0, 4] {
            a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
            a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
            a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
            a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
        }
        // Now the quarters of a[j] hold the pairs j, 4 + j of columns 0 to 3 and of columns 4 to 7, and those of a[4 + j]
        // the same of the columns 8 to 15.
        for j in 0..4 {
            b[j] = _mm512_shuffle_i32x4::<0b10_00_10_00>(a[j], a[4 + j]);
            b[4 + j] = _mm512_shuffle_i32x4::<0b11_01_11_01>(a[j], a[4 + j]);
        }
        let odd_half = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
        for (pair, pairs) in b.iter().enumerate() {
            let even = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(*pairs));
            let odd = _mm512_castsi512_ps(_mm512_and_si512(*pairs, odd_half));
            // SAFETY: the caller says that there are 16 rows.
            unsafe {
                _mm512_storeu_ps(target.add(2 * pair * width), even);
                _mm512_storeu_ps(target.add((2 * pair + 1) * width), odd);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::random_bf16;
    use super::*;

    #[test]
    fn every_weight_comes_to_its_place() {
        let (out, inputs) = (70, 203);
        let values = random_bf16(1, out * inputs);
        for orientation in [Orientation::OutIn, Orientation::InOut] {
            let (rows, cols) = match orientation {
                Orientation::OutIn => (out, inputs),
                Orientation::InOut => (inputs, out),
            };
            let weight = WeightBlock::new(&values, rows, cols, orientation);
            for width in [3, 24, 48] {
                for columns in [0..width, out - width..out, 69..70, 2..2] {
                    for inputs in [0..203, 0..32, 5..5, 17..130, 202..203] {
                        check(weight, columns.clone(), inputs, width);
                    }
                }
            }
        }
    }

    fn check(weight: WeightBlock<'_>, columns: Range<usize>, inputs: Range<usize>, width: usize) {
        let mut panel = vec![f32::NAN; inputs.len() * width];
        pack(weight, columns.clone(), inputs.clone(), width, &mut panel);
        for (input, row) in inputs.clone().zip(panel.chunks_exact(width)) {
            for (place, found) in row.iter().enumerate() {
                let column = columns.start + place;
                let expected = match weight.orientation() {
                    _ if column >= columns.end => continue,
                    Orientation::OutIn => weight.row(column)[input].to_f32(),
                    Orientation::InOut => weight.row(input)[column].to_f32(),
                };
                assert_eq!(*found, expected, "{width} {columns:?} {inputs:?}: {column} {input}");
            }
        }
    }
}
