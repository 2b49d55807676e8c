//! Pillow's bicubic resize of 8-bit pictures: fixed-point weights with 22 fractional bits, width first, then
//! height, rounded to 8 bits after each (spec n16 section 4.4).

use multiversion::multiversion;

use super::CHANNELS;
use super::lanes::{LANES, LaneTable, Taps};
use super::view::{Size, View};

/// Fractional bits of the weights.
const PRECISION: u32 = 22;
/// One half, added before the shift.
const HALF: i32 = 1 << (PRECISION - 1);
/// Reach of the bicubic kernel in input pixels, before it is widened for a reduction.
const REACH: f64 = 2.0;

/// Resizes pictures of one size to another.
#[derive(Clone, Debug)]
pub(super) struct BicubicResizer {
    source: Size,
    target: Size,
    /// `None` where the width stays.
    columns: Option<LaneTable<i32>>,
    /// `None` where the height stays.
    rows: Option<Vec<Taps<i32>>>,
    /// One input row, and what the last vectors read beyond it.
    padded: Vec<u8>,
    /// Result of the horizontal pass, `[source height, stride]`.
    narrowed: Vec<u8>,
    stride: usize,
    /// One row of the vertical pass, `[stride]`.
    combined: Vec<u8>,
}

impl BicubicResizer {
    pub fn new(source: Size, target: Size) -> Self {
        let columns = (source.width != target.width)
            .then(|| LaneTable::new(&bicubic_taps(source.width, target.width), source.width));
        let rows =
            (source.height != target.height).then(|| bicubic_taps(source.height, target.height));
        // Whole vectors per row, so that the vertical pass needs no remainder.
        let stride = (CHANNELS * target.width).next_multiple_of(LANES);
        let spill = columns.as_ref().map_or(0, LaneTable::output_len);
        let padded = columns.as_ref().map_or(0, LaneTable::input_len);
        Self {
            source,
            target,
            columns,
            rows,
            padded: vec![0; padded],
            narrowed: vec![0; stride * source.height + spill],
            stride,
            combined: vec![0; stride],
        }
    }

    /// Resizes `picture` into `out`, `[target height, target width, 3]`.
    pub fn run(&mut self, picture: View<'_>, out: &mut [u8]) {
        debug_assert_eq!(picture.size(), self.source);
        debug_assert_eq!(out.len(), self.target.bytes());
        let width = CHANNELS * self.target.width;
        for y in 0..self.source.height {
            let narrowed = &mut self.narrowed[y * self.stride..];
            match &self.columns {
                Some(table) => {
                    let row = picture.row_and_beyond(y, table.input_len(), &mut self.padded);
                    narrow(table, row, narrowed);
                }
                None => narrowed[..width].copy_from_slice(picture.row(y)),
            }
        }
        for (y, out) in out.chunks_exact_mut(width).enumerate() {
            match &self.rows {
                Some(rows) => {
                    let inputs = &self.narrowed[rows[y].start * self.stride..];
                    combine(&rows[y].weights, inputs, self.stride, &mut self.combined);
                    out.copy_from_slice(&self.combined[..width]);
                }
                None => out.copy_from_slice(&self.narrowed[y * self.stride..][..width]),
            }
        }
    }
}

/// From the fixed-point sum to 8 bits.
#[inline(always)]
fn rounded(sum: i32) -> u8 {
    (sum >> PRECISION).clamp(0, 255) as u8
}

/// Horizontal pass of one row.
#[multiversion(targets("x86_64+avx+avx2"))]
fn narrow(table: &LaneTable<i32>, input: &[u8], output: &mut [u8]) {
    table.run(input, HALF, output, rounded);
}

/// Vertical pass of one output row: the first `weights.len()` rows of `inputs`, `stride` apart. `output` is at most
/// `stride` long.
#[multiversion(targets("x86_64+avx+avx2"))]
fn combine(weights: &[i32], inputs: &[u8], stride: usize, output: &mut [u8]) {
    with_known_count!(
        weights.len(),
        [4, 5, 6],
        TAPS => combine_unrolled::<TAPS>(weights, inputs, stride, output),
        for (x, output) in output.iter_mut().enumerate() {
            let column = inputs[x..].iter().step_by(stride);
            let sum = weights.iter().zip(column).map(|(w, sample)| w * i32::from(*sample));
            *output = rounded(HALF + sum.sum::<i32>());
        }
    )
}

#[inline(always)]
fn combine_unrolled<const TAPS: usize>(
    weights: &[i32],
    inputs: &[u8],
    stride: usize,
    output: &mut [u8],
) {
    let weights: [i32; TAPS] = std::array::from_fn(|tap| weights[tap]);
    let rows: [&[u8]; TAPS] = std::array::from_fn(|tap| &inputs[tap * stride..][..output.len()]);
    for (x, output) in output.iter_mut().enumerate() {
        let mut sum = HALF;
        for tap in 0..TAPS {
            sum += weights[tap] * i32::from(rows[tap][x]);
        }
        *output = rounded(sum);
    }
}

/// Integer weights of each output along one axis of `source` inputs.
fn bicubic_taps(source: usize, target: usize) -> Vec<Taps<i32>> {
    let scale = source as f64 / target as f64;
    let widening = scale.max(1.0);
    let reach = REACH * widening;
    let narrowing = 1.0 / widening;
    let taps_of = |output: usize| {
        let centre = (output as f64 + 0.5) * scale;
        // `as` truncates toward zero and takes a negative start to 0.
        let start = (centre - reach + 0.5) as usize;
        let end = ((centre + reach + 0.5) as usize).min(source);
        let weight = |input: usize| bicubic((input as f64 - centre + 0.5) * narrowing);
        let total: f64 = (start..end).map(weight).sum();
        let weights = (start..end).map(|input| fixed_point(weight(input) / total)).collect();
        Taps { start, weights }
    };
    (0..target).map(taps_of).collect()
}

fn fixed_point(weight: f64) -> i32 {
    let scaled = weight * f64::from(1 << PRECISION);
    (scaled + 0.5f64.copysign(weight)) as i32
}

/// The bicubic kernel with a = -0.5, in the reference's order of evaluation.
fn bicubic(x: f64) -> f64 {
    const A: f64 = -0.5;
    let x = x.abs();
    if x < 1.0 {
        ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * A
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_every_output_sum_to_one() {
        for (source, target) in
            [(256, 252), (240, 252), (455, 448), (1000, 980), (3, 56), (900, 28)]
        {
            for (output, taps) in bicubic_taps(source, target).iter().enumerate() {
                let sum: i32 = taps.weights.iter().sum();
                let error = (sum - (1 << PRECISION)).unsigned_abs() as usize;
                assert!(
                    error <= taps.weights.len(),
                    "{source} -> {target}, output {output}: {sum}"
                );
                assert!(taps.start + taps.weights.len() <= source);
            }
        }
    }

    #[test]
    fn a_flat_picture_stays_flat() {
        let (source, target) = (Size { width: 70, height: 33 }, Size { width: 61, height: 40 });
        let rgb = [9u8, 200, 255].repeat(70 * 33);
        let mut out = vec![0; target.bytes()];
        BicubicResizer::new(source, target).run(View::new(&rgb, source), &mut out);
        assert_eq!(out, [9u8, 200, 255].repeat(61 * 40));
    }

    #[test]
    fn an_axis_that_keeps_its_size_is_copied() {
        let size = Size { width: 5, height: 4 };
        let rgb: Vec<u8> = (0..60).map(|i| (i * 37) as u8).collect();
        let mut out = vec![0; 60];
        BicubicResizer::new(size, size).run(View::new(&rgb, size), &mut out);
        assert_eq!(out, rgb);
    }
}
