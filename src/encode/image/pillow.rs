//! The bicubic resize of 8-bit pictures that Pillow and torchvision share: fixed-point weights, width first, then
//! height, rounded to 8 bits after each. They differ in the number of fractional bits (spec n16 section 4.4, spec n17
//! section 4.2).

use multiversion::multiversion;

use super::CHANNELS;
use super::lanes::{LANES, LaneTable, Taps};
use super::view::{Size, View};

/// Most fractional bits that weights have.
const MOST_PRECISION: u32 = 22;
/// Reach of the bicubic kernel in input pixels, before it is widened for a reduction.
const REACH: f64 = 2.0;

/// How the weights are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To 22 fractional bits.
    Pillow,
    /// To as many fractional bits, up to 22, as the largest weight of an axis leaves in 16 bits.
    Torchvision,
}

/// Resizes pictures of one size to another.
#[derive(Clone, Debug)]
pub(super) struct BicubicResizer {
    source: Size,
    target: Size,
    /// `None` where the width stays.
    columns: Option<Columns>,
    /// `None` where the height stays.
    rows: Option<FixedPoint>,
    /// One input row, and what the last vectors read beyond it.
    padded: Vec<u8>,
    /// Result of the horizontal pass, `[source height, stride]`.
    narrowed: Vec<u8>,
    stride: usize,
    /// One row of the vertical pass, `[stride]`.
    combined: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Columns {
    table: LaneTable<i32>,
    precision: u32,
}

/// Integer weights of each output along one axis.
#[derive(Clone, Debug)]
struct FixedPoint {
    outputs: Vec<Taps<i32>>,
    /// Fractional bits.
    precision: u32,
}

impl BicubicResizer {
    pub fn new(source: Size, target: Size, rounding: Rounding) -> Self {
        let axis = |source: usize, target: usize| {
            (source != target).then(|| FixedPoint::new(source, target, rounding))
        };
        let columns = axis(source.width, target.width).map(|axis| Columns {
            table: LaneTable::new(&axis.outputs, source.width),
            precision: axis.precision,
        });
        let rows = axis(source.height, target.height);
        // Whole vectors per row, so that the vertical pass needs no remainder.
        let stride = (CHANNELS * target.width).next_multiple_of(LANES);
        let spill = columns.as_ref().map_or(0, |columns| columns.table.output_len());
        let padded = columns.as_ref().map_or(0, |columns| columns.table.input_len());
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
                Some(Columns { table, precision }) => {
                    let row = picture.row_and_beyond(y, table.input_len(), &mut self.padded);
                    narrow(table, *precision, row, narrowed);
                }
                None => narrowed[..width].copy_from_slice(picture.row(y)),
            }
        }
        for (y, out) in out.chunks_exact_mut(width).enumerate() {
            match &self.rows {
                Some(FixedPoint { outputs, precision }) => {
                    let inputs = &self.narrowed[outputs[y].start * self.stride..];
                    let weights = &outputs[y].weights;
                    combine(weights, *precision, inputs, self.stride, &mut self.combined);
                    out.copy_from_slice(&self.combined[..width]);
                }
                None => out.copy_from_slice(&self.narrowed[y * self.stride..][..width]),
            }
        }
    }
}

/// One half in fixed point, added before the shift.
#[inline(always)]
fn half(precision: u32) -> i32 {
    1 << (precision - 1)
}

/// From the fixed-point sum to 8 bits.
#[inline(always)]
fn rounded(sum: i32, precision: u32) -> u8 {
    (sum >> precision).clamp(0, 255) as u8
}

/// Horizontal pass of one row.
#[multiversion(targets("x86_64+avx+avx2"))]
fn narrow(table: &LaneTable<i32>, precision: u32, input: &[u8], output: &mut [u8]) {
    table.run(input, half(precision), output, |sum| rounded(sum, precision));
}

/// Vertical pass of one output row: the first `weights.len()` rows of `inputs`, `stride` apart. `output` is at most
/// `stride` long.
#[multiversion(targets("x86_64+avx+avx2"))]
fn combine(weights: &[i32], precision: u32, inputs: &[u8], stride: usize, output: &mut [u8]) {
    with_known_count!(
        weights.len(),
        [4, 5, 6],
        TAPS => combine_unrolled::<TAPS>(weights, precision, inputs, stride, output),
        for (x, output) in output.iter_mut().enumerate() {
            let column = inputs[x..].iter().step_by(stride);
            let sum = weights.iter().zip(column).map(|(w, sample)| w * i32::from(*sample));
            *output = rounded(half(precision) + sum.sum::<i32>(), precision);
        }
    )
}

#[inline(always)]
fn combine_unrolled<const TAPS: usize>(
    weights: &[i32],
    precision: u32,
    inputs: &[u8],
    stride: usize,
    output: &mut [u8],
) {
    let weights: [i32; TAPS] = std::array::from_fn(|tap| weights[tap]);
    let rows: [&[u8]; TAPS] = std::array::from_fn(|tap| &inputs[tap * stride..][..output.len()]);
    for (x, output) in output.iter_mut().enumerate() {
        let mut sum = half(precision);
        for tap in 0..TAPS {
            sum += weights[tap] * i32::from(rows[tap][x]);
        }
        *output = rounded(sum, precision);
    }
}

impl FixedPoint {
    fn new(source: usize, target: usize, rounding: Rounding) -> Self {
        let exact = bicubic_taps(source, target);
        let precision = match rounding {
            Rounding::Pillow => MOST_PRECISION,
            Rounding::Torchvision => precision_of_16_bits(&exact),
        };
        let fixed = |weight: &f64| fixed_point(*weight, precision);
        let outputs = exact
            .iter()
            .map(|taps| Taps {
                start: taps.start,
                weights: taps.weights.iter().map(fixed).collect(),
            })
            .collect();
        Self { outputs, precision }
    }
}

/// The most fractional bits with which every weight fits 16 bits.
fn precision_of_16_bits(outputs: &[Taps<f64>]) -> u32 {
    let weights = outputs.iter().flat_map(|taps| &taps.weights);
    let largest = weights.fold(0.0, |largest: f64, weight| largest.max(*weight));
    let fits = |precision: &u32| fixed_point(largest, *precision) <= i32::from(i16::MAX);
    (1..=MOST_PRECISION).take_while(fits).last().unwrap_or(0)
}

/// Weights of each output along one axis of `source` inputs; they sum to 1.
fn bicubic_taps(source: usize, target: usize) -> Vec<Taps<f64>> {
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
        Taps { start, weights: (start..end).map(|input| weight(input) / total).collect() }
    };
    (0..target).map(taps_of).collect()
}

fn fixed_point(weight: f64, precision: u32) -> i32 {
    let scaled = weight * f64::from(1 << precision);
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
            let axis = FixedPoint::new(source, target, Rounding::Pillow);
            for (output, taps) in axis.outputs.iter().enumerate() {
                let sum: i32 = taps.weights.iter().sum();
                let error = (sum - (1 << axis.precision)).unsigned_abs() as usize;
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
        BicubicResizer::new(source, target, Rounding::Pillow)
            .run(View::new(&rgb, source), &mut out);
        assert_eq!(out, [9u8, 200, 255].repeat(61 * 40));
    }

    #[test]
    fn an_axis_that_keeps_its_size_is_copied() {
        let size = Size { width: 5, height: 4 };
        let rgb: Vec<u8> = (0..60).map(|i| (i * 37) as u8).collect();
        let mut out = vec![0; 60];
        BicubicResizer::new(size, size, Rounding::Pillow).run(View::new(&rgb, size), &mut out);
        assert_eq!(out, rgb);
    }
}
