//! Reduction by fractions: every output pixel is a weighted mean, in f32 and in a fixed order of operations.

use multiversion::multiversion;

use super::super::CHANNELS;
use super::super::lanes::Taps;
use super::super::view::{View, Window};
use super::{Axis, OutputRows, round_half_even};

/// Inputs that an output covers by less than this are left out.
const NEGLIGIBLE: f64 = 1e-3;
/// Samples added at once: a pixel and its right neighbour's first sample.
const LANES: usize = 4;

#[derive(Clone, Debug)]
pub(super) struct FractionReducer {
    columns: Columns,
    /// Per output row, the rows of the window that it covers.
    rows: Vec<Taps<f32>>,
    /// Two neighbouring rows of the picture, each with a spare pixel.
    pair: [Vec<f32>; 2],
    sources: [Vec<u8>; 2],
    /// Sums of the output row at hand, `[target width, 3]`.
    sums: Vec<f32>,
}

/// What each output pixel of a row reads from a row of the window.
#[derive(Clone, Debug)]
struct Columns {
    /// Inputs per output: those with fewer end in weights of zero.
    taps: usize,
    /// First sample that each output reads.
    starts: Vec<usize>,
    /// `[outputs, taps]`
    weights: Vec<f32>,
}

impl FractionReducer {
    pub fn new(horizontal: Axis, vertical: Axis, window: Window) -> Self {
        let columns = Columns::new(
            area_taps(horizontal).map(|taps| within(taps, window.left, window.size.width)),
        );
        let rows =
            area_taps(vertical).map(|taps| within(taps, window.top, window.size.height)).collect();
        let source = vec![0; columns.input_len().max(CHANNELS * window.size.width)];
        let reduced = vec![0.0; CHANNELS * (horizontal.target + 1)];
        Self {
            columns,
            rows,
            sources: [source.clone(), source],
            pair: [reduced.clone(), reduced],
            sums: vec![0.0; CHANNELS * horizontal.target],
        }
    }

    pub fn run(&mut self, picture: View<'_>, rows: OutputRows<'_>) {
        let mut reduced_pair = None;
        for (output, out) in rows.enumerate() {
            self.sums.fill(0.0);
            for tap in 0..self.rows[output].weights.len() {
                let y = self.rows[output].start + tap;
                // Rows are asked for from top to bottom, so that one pair at a time is enough.
                if reduced_pair != Some(y / 2) {
                    self.reduce_pair(picture, y / 2 * 2);
                    reduced_pair = Some(y / 2);
                }
                let weight = self.rows[output].weights[tap];
                add_weighted(&self.pair[y % 2], weight, &mut self.sums);
            }
            store(&self.sums, out);
        }
    }

    /// Reduces the widths of rows `y` and `y + 1` (of `y` twice where it is the last).
    fn reduce_pair(&mut self, picture: View<'_>, y: usize) {
        let len = self.columns.input_len();
        let [first, second] = &mut self.sources;
        let first = picture.row_and_beyond(y, len, first);
        let second = picture.row_and_beyond((y + 1).min(picture.height() - 1), len, second);
        let [reduced_first, reduced_second] = &mut self.pair;
        reduce(first, second, &self.columns, reduced_first, reduced_second);
    }
}

impl Columns {
    fn new(outputs: impl Iterator<Item = Taps<f32>>) -> Self {
        let outputs: Vec<_> = outputs.collect();
        let taps = outputs.iter().map(|output| output.weights.len()).max().unwrap_or(0).max(1);
        let mut weights = Vec::with_capacity(taps * outputs.len());
        for output in &outputs {
            weights.extend_from_slice(&output.weights);
            weights.resize(weights.len() + taps - output.weights.len(), 0.0);
        }
        let starts = outputs.iter().map(|output| CHANNELS * output.start).collect();
        Self { taps, starts, weights }
    }

    /// Samples that a source row must have; those beyond the picture meet weights of zero.
    fn input_len(&self) -> usize {
        self.starts.iter().max().map_or(0, |start| start + CHANNELS * self.taps + 1)
    }
}

/// Reduces the widths of two rows at once.
fn reduce(
    first: &[u8],
    second: &[u8],
    columns: &Columns,
    reduced_first: &mut [f32],
    reduced_second: &mut [f32],
) {
    let mut pass = Pass { sources: [first, second], columns, reduced_first, reduced_second };
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return simd.vectorize(avx2::Vectorized { simd, pass });
    }
    pass.run(weighted);
}

/// Two rows on their way.
struct Pass<'a> {
    sources: [&'a [u8]; 2],
    columns: &'a Columns,
    reduced_first: &'a mut [f32],
    reduced_second: &'a mut [f32],
}

/// Sums for a pixel of each of the two rows.
type Sums = [[f32; LANES]; 2];

impl Pass<'_> {
    /// `weighted` computes the sums of one output from what it reads of each row and the weights.
    #[inline(always)]
    fn run(&mut self, weighted: impl Fn([&[u8]; 2], &[f32]) -> Sums) {
        with_known_count!(
            self.columns.taps,
            [2, 3, 4, 5, 6, 7, 8, 9],
            TAPS => self.run_with(TAPS, weighted),
            self.run_with(self.columns.taps, weighted)
        )
    }

    /// `taps` are the columns', here once more because the compiler may know them.
    #[inline(always)]
    fn run_with(&mut self, taps: usize, weighted: impl Fn([&[u8]; 2], &[f32]) -> Sums) {
        let span = CHANNELS * taps + 1;
        let [first, second] = self.sources;
        let outputs = self.columns.starts.iter().zip(self.columns.weights.chunks_exact(taps));
        for (output, (&start, weights)) in outputs.enumerate() {
            let rows = [&first[start..][..span], &second[start..][..span]];
            let sums = weighted(rows, &weights[..taps]);
            self.reduced_first[CHANNELS * output..][..LANES].copy_from_slice(&sums[0]);
            self.reduced_second[CHANNELS * output..][..LANES].copy_from_slice(&sums[1]);
        }
    }
}

/// Sums of weight times sample, pixel after pixel.
#[inline(always)]
fn weighted(rows: [&[u8]; 2], weights: &[f32]) -> Sums {
    let mut sums = [[0.0; LANES]; 2];
    for tap in 0..weights.len() {
        for row in 0..2 {
            let samples = &rows[row][CHANNELS * tap..][..LANES];
            for lane in 0..LANES {
                sums[row][lane] += f32::from(samples[lane]) * weights[tap];
            }
        }
    }
    sums
}

/// The same with both rows in one vector, which the compiler does not find by itself: half as many conversions,
/// products and sums.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::__m128i;

    use pulp::x86::V3;

    use super::{CHANNELS, LANES, Pass, Sums};

    pub struct Vectorized<'a> {
        pub simd: V3,
        pub pass: Pass<'a>,
    }

    impl pulp::NullaryFnOnce for Vectorized<'_> {
        type Output = ();

        #[inline(always)]
        fn call(mut self) {
            let simd = self.simd;
            self.pass.run(
                #[inline(always)]
                |rows, weights| weighted(simd, rows, weights),
            );
        }
    }

    #[inline(always)]
    fn weighted(simd: V3, [first, second]: [&[u8]; 2], weights: &[f32]) -> Sums {
        let mut sums = simd.avx._mm256_setzero_ps();
        for (tap, weight) in weights.iter().enumerate() {
            let pixels =
                simd.sse2._mm_unpacklo_epi32(pixel(simd, first, tap), pixel(simd, second, tap));
            let samples = simd.avx._mm256_cvtepi32_ps(simd.avx2._mm256_cvtepu8_epi32(pixels));
            let weight = simd.avx._mm256_set1_ps(*weight);
            sums = simd.avx._mm256_add_ps(sums, simd.avx._mm256_mul_ps(samples, weight));
        }
        pulp::cast(sums)
    }

    /// A pixel and the first sample of the next.
    #[inline(always)]
    fn pixel(simd: V3, row: &[u8], number: usize) -> __m128i {
        let samples = &row[CHANNELS * number..][..LANES];
        let bytes = [samples[0], samples[1], samples[2], samples[3]];
        simd.sse2._mm_cvtsi32_si128(i32::from_le_bytes(bytes))
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn add_weighted(row: &[f32], weight: f32, sums: &mut [f32]) {
    for (sum, sample) in sums.iter_mut().zip(row) {
        *sum += weight * sample;
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn store(sums: &[f32], out: &mut [u8]) {
    for (out, sum) in out.iter_mut().zip(sums) {
        *out = round_half_even(*sum);
    }
}

/// The inputs that each output covers, and by how much, in the order in which they are added up.
fn area_taps(axis: Axis) -> impl Iterator<Item = Taps<f32>> {
    let scale = axis.scale();
    let source = axis.source as f64;
    (0..axis.target).map(move |output| {
        let from = output as f64 * scale;
        let to = from + scale;
        let cell = scale.min(source - from);
        let last = to.floor().min(source - 1.0);
        let first = from.ceil().min(last);
        let mut weights = Vec::new();
        let leading = first - from > NEGLIGIBLE;
        if leading {
            weights.push(((first - from) / cell) as f32);
        }
        let whole = (last - first) as usize;
        weights.resize(weights.len() + whole, (1.0 / cell) as f32);
        if to - last > NEGLIGIBLE {
            weights.push(((to - last).min(1.0).min(cell) / cell) as f32);
        }
        Taps { start: first as usize - usize::from(leading), weights }
    })
}

/// The part of `taps` inside a window of `len` inputs from `from` on, counted from there. What lies outside is
/// black, and adding nothing to a sum leaves it as it is.
fn within(taps: Taps<f32>, from: usize, len: usize) -> Taps<f32> {
    let first = taps.start.clamp(from, from + len);
    let end = (taps.start + taps.weights.len()).clamp(first, from + len);
    let weights = if first < end {
        taps.weights[first - taps.start..end - taps.start].to_vec()
    } else {
        Vec::new()
    };
    Taps { start: first - from, weights }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taps(source: usize, target: usize) -> Vec<Taps<f32>> {
        area_taps(Axis { source, target }).collect()
    }

    #[test]
    fn weights_of_a_ratio_of_two_and_a_half() {
        let expected = [
            Taps { start: 0, weights: vec![0.4, 0.4, 0.2] },
            Taps { start: 2, weights: vec![0.2, 0.4, 0.4] },
        ];
        assert_eq!(taps(5, 2), expected);
    }

    #[test]
    fn every_input_is_covered_once_in_total() {
        for (source, target) in
            [(257, 256), (640, 256), (1920, 256), (4095, 256), (1000, 999), (71, 2)]
        {
            let mut covered = vec![0.0; source];
            for output in taps(source, target) {
                for (input, weight) in (output.start..).zip(output.weights) {
                    covered[input] += f64::from(weight) * source as f64 / target as f64;
                }
            }
            for (input, covered) in covered.iter().enumerate() {
                assert!(
                    (covered - 1.0).abs() < 3e-3,
                    "{source} -> {target}, input {input}: {covered}"
                );
            }
        }
    }

    #[test]
    fn a_window_keeps_only_its_own_inputs() {
        let all = Taps { start: 3, weights: vec![1.0, 2.0, 3.0] };
        assert_eq!(within(all.clone(), 0, 9), all);
        assert_eq!(within(all.clone(), 4, 1), Taps { start: 0, weights: vec![2.0] });
        assert_eq!(within(all.clone(), 5, 9), Taps { start: 0, weights: vec![3.0] });
        assert!(within(all.clone(), 7, 2).weights.is_empty());
        assert!(within(all, 0, 3).weights.is_empty());
    }
}
