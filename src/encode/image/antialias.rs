//! torch's antialiased bilinear resize of f32 pictures, bit for bit (spec n15 section 4, step 3): width first, then
//! height, each output a sum in index order of fused multiply-adds.
//!
//! The picture goes in as 8-bit samples and each row is scaled to 0 ..= 1 as it is read. Only the rows that the
//! vertical pass still needs are held, in a ring.

use multiversion::multiversion;

use super::CHANNELS;
use super::lanes::Taps;
use super::normalize::unit;
use super::view::{Size, View};

/// Samples of the horizontal pass that are computed at once: a pixel and its right neighbour's first sample.
const PIXEL_LANES: usize = 4;

/// Resizes pictures of one size to another.
#[derive(Clone, Debug)]
pub(super) struct AntialiasResizer {
    source: Size,
    target: Size,
    /// `None` where the width stays.
    columns: Option<AxisTable>,
    /// `None` where the height stays.
    rows: Option<AxisTable>,
    /// One input row in f32, with zeros behind it for taps that read beyond.
    row: Vec<f32>,
    /// Rows of the horizontal pass, `[ring rows, stride]`: input row `y` is in ring row `y % ring rows`.
    ring: Vec<f32>,
    /// Samples from one ring row to the next, with a lane for what the last pixel spills.
    stride: usize,
}

impl AntialiasResizer {
    pub fn new(source: Size, target: Size) -> Self {
        let axis = |source: usize, target: usize| {
            (source != target).then(|| AxisTable::new(&triangle_taps(source, target)))
        };
        let columns = axis(source.width, target.width);
        let rows = axis(source.height, target.height);
        let read = columns.as_ref().map_or(0, AxisTable::reach).max(source.width);
        let stride = CHANNELS * target.width + 1;
        let ring_rows = rows.as_ref().map_or(1, |rows| rows.taps);
        Self {
            source,
            target,
            columns,
            rows,
            row: vec![0.0; CHANNELS * read + 1],
            ring: vec![0.0; ring_rows * stride],
            stride,
        }
    }

    /// Resizes `picture` into `out`, `[target height, target width, 3]`, values from 0 to 1.
    pub fn run(&mut self, picture: View<'_>, out: &mut [f32]) {
        debug_assert_eq!(picture.size(), self.source);
        debug_assert_eq!(out.len(), self.target.bytes());
        let ring_rows = self.ring.len() / self.stride;
        let mut read = 0;
        for (y, out) in out.chunks_exact_mut(CHANNELS * self.target.width).enumerate() {
            let first = self.rows.as_ref().map_or(y, |rows| rows.starts[y]);
            // A row may be asked for beyond the picture, with a weight of zero; the ring then has an older one.
            let end = (first + ring_rows).min(self.source.height);
            while read < end {
                self.narrow_row(picture.row(read), read % ring_rows);
                read += 1;
            }
            match &self.rows {
                Some(rows) => {
                    combine(rows.weights_of(y), &self.ring, self.stride, first % ring_rows, out);
                }
                None => out.copy_from_slice(&self.ring[..out.len()]),
            }
        }
    }

    /// Horizontal pass of one row into a row of the ring.
    fn narrow_row(&mut self, samples: &[u8], ring_row: usize) {
        let out = &mut self.ring[ring_row * self.stride..][..self.stride];
        match &self.columns {
            Some(columns) => {
                widen(samples, &mut self.row);
                narrow(columns, &self.row, out);
            }
            None => widen(samples, out),
        }
    }
}

/// What every output of one axis reads, all with the same number of taps: weights of zero fill up. Adding zero
/// changes no sum, so a filled-up one is the same to the last bit.
#[derive(Clone, Debug)]
struct AxisTable {
    taps: usize,
    /// First input of each output.
    starts: Vec<usize>,
    /// `[outputs, taps]`
    weights: Vec<f32>,
}

impl AxisTable {
    fn new(outputs: &[Taps<f32>]) -> Self {
        let taps = outputs.iter().map(|output| output.weights.len()).max().unwrap_or(0);
        let starts = outputs.iter().map(|output| output.start).collect();
        let mut weights = Vec::with_capacity(outputs.len() * taps);
        for output in outputs {
            weights.extend_from_slice(&output.weights);
            weights.resize(weights.len() + taps - output.weights.len(), 0.0);
        }
        Self { taps, starts, weights }
    }

    fn weights_of(&self, output: usize) -> &[f32] {
        &self.weights[output * self.taps..][..self.taps]
    }

    /// Inputs that a row must have room for.
    fn reach(&self) -> usize {
        self.starts.last().map_or(0, |start| start + self.taps)
    }
}

/// 8-bit samples to 0 ..= 1; what `row` has beyond them stays.
#[multiversion(targets("x86_64+avx+avx2+fma"))]
fn widen(samples: &[u8], row: &mut [f32]) {
    for (value, sample) in row.iter_mut().zip(samples) {
        *value = unit(*sample);
    }
}

/// Horizontal pass of one row of interleaved samples.
#[multiversion(targets("x86_64+avx+avx2+fma"))]
fn narrow(columns: &AxisTable, row: &[f32], out: &mut [f32]) {
    with_known_count!(
        columns.taps,
        [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19],
        TAPS => narrow_with(TAPS, columns, row, out),
        narrow_with(columns.taps, columns, row, out)
    )
}

/// `taps` are the table's, here once more because the compiler may know them.
#[inline(always)]
fn narrow_with(taps: usize, columns: &AxisTable, row: &[f32], out: &mut [f32]) {
    let outputs = columns.starts.iter().zip(columns.weights.chunks_exact(taps));
    for (output, (&start, weights)) in outputs.enumerate() {
        let inputs = &row[CHANNELS * start..][..CHANNELS * taps + 1];
        let mut sums = [0.0; PIXEL_LANES];
        for tap in 0..taps {
            let pixel = &inputs[CHANNELS * tap..][..PIXEL_LANES];
            for lane in 0..PIXEL_LANES {
                sums[lane] = pixel[lane].mul_add(weights[tap], sums[lane]);
            }
        }
        // The last lane is spilled into the next pixel, which overwrites it.
        out[CHANNELS * output..][..PIXEL_LANES].copy_from_slice(&sums);
    }
}

/// Vertical pass of one output row, whose first input is in row `first` of the ring.
#[multiversion(targets("x86_64+avx+avx2+fma"))]
fn combine(weights: &[f32], ring: &[f32], stride: usize, first: usize, out: &mut [f32]) {
    let (before, from_first) = ring.split_at(first * stride);
    let rows = from_first.chunks_exact(stride).chain(before.chunks_exact(stride));
    out.fill(0.0);
    for (row, &weight) in rows.zip(weights) {
        for (sum, sample) in out.iter_mut().zip(row) {
            *sum = sample.mul_add(weight, *sum);
        }
    }
}

/// Weights of each output along one axis of `source` inputs, rounded to f32 where the reference rounds.
fn triangle_taps(source: usize, target: usize) -> Vec<Taps<f32>> {
    let scale = source as f32 / target as f32;
    let (support, inverse) =
        if scale >= 1.0 { (scale, (1.0 / f64::from(scale)) as f32) } else { (1.0, 1.0) };
    let most = 2 * support.ceil() as usize + 1;
    let taps_of = |output: usize| {
        let centre = (f64::from(scale) * (output as f64 + 0.5)) as f32;
        // `as` truncates toward zero and takes a negative start to 0.
        let start = (f64::from(centre - support) + 0.5) as usize;
        let end = ((f64::from(centre + support) + 0.5) as usize).min(source);
        let count = end.saturating_sub(start).min(most);
        let weight = |tap: usize| {
            let distance = f64::from((start + tap) as f32 - centre) + 0.5;
            let distance = ((distance * f64::from(inverse)) as f32).abs();
            if distance < 1.0 { 1.0 - distance } else { 0.0 }
        };
        let total = (0..count).fold(0.0f32, |total, tap| total + weight(tap));
        Taps { start, weights: (0..count).map(|tap| weight(tap) / total).collect() }
    };
    (0..target).map(taps_of).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One axis as it is defined: the first product alone, the others fused, in index order.
    fn plain(taps: &Taps<f32>, input: impl Fn(usize) -> f32) -> f32 {
        let mut sum = input(taps.start) * taps.weights[0];
        for (tap, &weight) in taps.weights.iter().enumerate().skip(1) {
            sum = input(taps.start + tap).mul_add(weight, sum);
        }
        sum
    }

    fn plain_resize(rgb: &[u8], source: Size, target: Size) -> Vec<f32> {
        let columns = triangle_taps(source.width, target.width);
        let rows = triangle_taps(source.height, target.height);
        let sample = |y: usize, x: usize, channel: usize| {
            f32::from(rgb[3 * (y * source.width + x) + channel]) / 255.0
        };
        let narrowed = |y: usize, x: usize, channel: usize| match source.width == target.width {
            true => sample(y, x, channel),
            false => plain(&columns[x], |input| sample(y, input, channel)),
        };
        let value = |i: usize| {
            let (y, x, channel) = (i / 3 / target.width, i / 3 % target.width, i % 3);
            match source.height == target.height {
                true => narrowed(y, x, channel),
                false => plain(&rows[y], |input| narrowed(input, x, channel)),
            }
        };
        (0..target.bytes()).map(value).collect()
    }

    fn assert_same(source: Size, target: Size, rgb: &[u8]) {
        let mut out = vec![f32::NAN; target.bytes()];
        let mut resizer = AntialiasResizer::new(source, target);
        // Twice, because the second run meets the ring as the first one left it.
        for _ in 0..2 {
            resizer.run(View::new(rgb, source), &mut out);
            let expected = plain_resize(rgb, source, target);
            let different = out.iter().zip(&expected).position(|(a, b)| a.to_bits() != b.to_bits());
            assert_eq!(different, None, "{source:?} to {target:?}");
        }
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            width in 1usize..70, height in 1usize..70,
            to_width in 1usize..40, to_height in 1usize..40, seed in any::<u32>(),
        ) {
            let source = Size { width, height };
            let noise = |i: usize| (i as u32).wrapping_mul(2_654_435_761).wrapping_add(seed);
            let rgb: Vec<u8> = (0..source.bytes()).map(|i| (noise(i) >> 13) as u8).collect();
            assert_same(source, Size { width: to_width, height: to_height }, &rgb);
        }
    }

    #[test]
    fn weights_of_every_output_sum_to_one() {
        for (source, target) in [(243, 224), (60, 224), (1216, 224), (3891, 224), (3, 7), (7, 3)] {
            for (output, taps) in triangle_taps(source, target).iter().enumerate() {
                let sum: f64 = taps.weights.iter().map(|weight| f64::from(*weight)).sum();
                assert!((sum - 1.0).abs() < 1e-5, "{source} -> {target}, output {output}: {sum}");
                assert!(taps.start + taps.weights.len() <= source);
            }
        }
    }
}
