//! Products with the matrices of the checkpoint.
//!
//! The columns of the result are cut into blocks for the threads; a block takes all rows, so that its weights come
//! from memory once. Which thread computes a block changes nothing in it (see [`super::tile`]).

use std::cell::Cell;
use std::ops::Range;

use half::bf16;
use pulp::{Arch, Simd, WithSimd, bytemuck};

use super::mat::{Bias, Mat, MatMut, WeightBlock};
use super::math;
use super::parallel::for_column_blocks;
use super::tile::{PackedRows, tile};
use crate::program::{Activation, Orientation};

/// Most columns of a block: few enough that the weights of a chunk stay in the second-level cache.
const MAX_BLOCK_COLUMNS: usize = 72;

/// Columns are dealt out in multiples of this many; every width of a tile divides it.
const COLUMN_STEP: usize = 12;

/// Blocks per thread that even out the load.
const BLOCKS_PER_THREAD: usize = 4;

thread_local! {
    /// Kept between calls, so that a running network does not allocate.
    static PACKED_ROWS: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
    static PANEL: Cell<Vec<u32>> = const { Cell::new(Vec::new()) };
}

/// `out = activation(x W^T + bias)`, or `x W` for a weight stored `[in, out]`.
///
/// The same input gives the same bytes on any number of threads. Panics when the shapes do not fit together.
pub fn linear(
    x: Mat<'_>,
    weight: WeightBlock<'_>,
    bias: Bias<'_>,
    activation: Activation,
    out: MatMut<'_>,
) {
    assert_eq!(x.cols(), weight.inputs(), "linear: inputs");
    assert_eq!((x.rows(), weight.outputs()), (out.rows(), out.cols()), "linear: result");
    assert!(bias.columns().is_none_or(|columns| columns == weight.outputs()), "linear: bias");
    Arch::new().dispatch(Product { x, weight, bias, activation, out });
}

struct Product<'a> {
    x: Mat<'a>,
    weight: WeightBlock<'a>,
    bias: Bias<'a>,
    activation: Activation,
    out: MatMut<'a>,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { x, weight, bias, activation, out } = self;
        let mut scratch = PACKED_ROWS.take();
        let x = PackedRows::pack(simd, x, &mut scratch);
        let width = block_columns(out.cols());
        for_column_blocks(out, width, &|first, out| {
            simd.vectorize(ColumnBlock { x: &x, weight, bias, activation, first, out });
        });
        PACKED_ROWS.set(scratch);
    }
}

fn block_columns(columns: usize) -> usize {
    let even = columns.div_ceil(BLOCKS_PER_THREAD * rayon::current_num_threads());
    even.next_multiple_of(COLUMN_STEP).clamp(COLUMN_STEP, MAX_BLOCK_COLUMNS)
}

/// Some columns of a product.
struct ColumnBlock<'a> {
    x: &'a PackedRows<'a>,
    weight: WeightBlock<'a>,
    bias: Bias<'a>,
    activation: Activation,
    /// Column of the product at which `out` starts.
    first: usize,
    out: MatMut<'a>,
}

impl WithSimd for ColumnBlock<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let mut scratch = PANEL.take();
        let panel = self.panel(&mut scratch);
        for row in 0..self.out.rows() {
            self.out.row_mut(row).fill(0.0);
        }
        for (first, len) in self.x.depth().chunks() {
            let next = match first + len {
                end if end < self.x.depth().padded() => end / 2,
                _ => self.out.cols() * panel.stride,
            };
            let chunk = Chunk { first, len, panel, next };
            let mut row = 0;
            while row < self.x.rows() {
                let height = band_height(self.x.rows() - row);
                match height {
                    1 => self.add_band::<S, 1, 4>(simd, chunk, row),
                    2 => self.add_band::<S, 2, 3>(simd, chunk, row),
                    3 => self.add_band::<S, 3, 3>(simd, chunk, row),
                    4 => self.add_band::<S, 4, 2>(simd, chunk, row),
                    _ => self.add_band::<S, 5, 2>(simd, chunk, row),
                }
                row += height;
            }
        }
        for row in 0..self.out.rows() {
            let out = self.out.row_mut(row);
            self.bias.add_to(self.first, out);
            math::activate_all(self.activation, out);
        }
        PANEL.set(scratch);
    }
}

/// Rows of the next band of tiles. A tile of five rows and two columns fills the registers best; what is left over
/// is dealt out so that no band is a single row.
fn band_height(rows_left: usize) -> usize {
    match rows_left {
        6 => 3,
        7 => 4,
        _ => rows_left.min(5),
    }
}

/// The weights of a column block along a chunk of `k`.
#[derive(Clone, Copy)]
struct Chunk<'a> {
    first: usize,
    len: usize,
    panel: Panel<'a>,
    /// Where in the panel the weights begin that will be worked on next.
    next: usize,
}

/// The weights of a column block, one row of bf16 pairs per column of the product.
#[derive(Clone, Copy)]
struct Panel<'a> {
    pairs: &'a [u32],
    stride: usize,
}

impl<'a> Chunk<'a> {
    #[inline(always)]
    fn column<S: Simd>(&self, column: usize) -> &'a [S::u32s] {
        let first = column * self.panel.stride + self.first / 2;
        S::as_simd_u32s(&self.panel.pairs[first..][..self.len / 2]).0
    }

    /// Calls up some cache lines of `column` of the next chunk.
    #[inline(always)]
    fn prefetch(&self, column: usize, lines: Range<usize>) {
        let start = self.next + column * self.panel.stride;
        for line in lines {
            if let Some(pair) = self.panel.pairs.get(start + line * CACHE_LINE_PAIRS) {
                prefetch(pair);
            }
        }
    }
}

const CACHE_LINE_PAIRS: usize = 16;

/// Calls up the cache line of a value.
#[inline(always)]
fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect that the program can observe.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

/// Inputs and columns that are transposed at a time: whole cache lines of the result, and no more of them than the
/// cache holds at any distance.
const TRANSPOSED_INPUTS: usize = 2 * CACHE_LINE_PAIRS;
const TRANSPOSED_COLUMNS: usize = 8;

/// Writes some columns of a weight stored `[in, out]` as rows of `stride` pairs, which are zero before.
fn transpose(weight: WeightBlock<'_>, columns: Range<usize>, stride: usize, pairs: &mut [u32]) {
    let inputs = weight.inputs();
    for first_input in (0..inputs).step_by(TRANSPOSED_INPUTS) {
        let last_input = inputs.min(first_input + TRANSPOSED_INPUTS);
        // The rows lie too far apart for the processor to see them coming.
        for input in last_input..inputs.min(last_input + TRANSPOSED_INPUTS) {
            for value in weight.row(input)[columns.clone()].iter().step_by(2 * CACHE_LINE_PAIRS) {
                prefetch(value);
            }
        }
        for first in columns.clone().step_by(TRANSPOSED_COLUMNS) {
            let last = columns.end.min(first + TRANSPOSED_COLUMNS);
            let target = &mut pairs[(first - columns.start) * stride..];
            for input in (first_input..last_input).step_by(2) {
                let even = &weight.row(input)[first..last];
                // The padding's partner of the last input is anything finite: there are zeros on the other side.
                let odd = &weight.row(inputs.min(input + 2) - 1)[first..last];
                for (column, (even, odd)) in even.iter().zip(odd).enumerate() {
                    let pair = u32::from(even.to_bits()) | u32::from(odd.to_bits()) << 16;
                    target[column * stride + input / 2] = pair;
                }
            }
        }
    }
}

impl ColumnBlock<'_> {
    /// The weights as they lie in the checkpoint where that is possible, else rearranged in `scratch`.
    fn panel<'s>(&self, scratch: &'s mut Vec<u32>) -> Panel<'s>
    where
        Self: 's,
    {
        let (k, padded) = (self.weight.inputs(), self.x.depth().padded());
        let stride = padded / 2;
        let columns = self.first..self.first + self.out.cols();
        if self.weight.orientation() == Orientation::OutIn && k == padded {
            // Fails where a tensor starts between two multiples of four bytes.
            if let Ok(pairs) = bytemuck::try_cast_slice(self.weight.rows_from(columns.start)) {
                return Panel { pairs, stride };
            }
        }
        scratch.clear();
        scratch.resize(columns.len() * stride, 0);
        match self.weight.orientation() {
            Orientation::OutIn => {
                let values: &mut [bf16] = bytemuck::cast_slice_mut(scratch);
                for (target, column) in values.chunks_exact_mut(padded).zip(columns) {
                    target[..k].copy_from_slice(self.weight.row(column));
                }
            }
            Orientation::InOut => transpose(self.weight, columns, stride, scratch),
        }
        Panel { pairs: scratch, stride }
    }

    /// Adds the products along one chunk to `H` rows, in tiles of `W` columns.
    #[inline(always)]
    fn add_band<S: Simd, const H: usize, const W: usize>(
        &mut self,
        simd: S,
        chunk: Chunk<'_>,
        row: usize,
    ) {
        let mut x = [const { &[] as &[[S::f32s; 2]] }; H];
        for (i, x) in x.iter_mut().enumerate() {
            *x = self.x.row::<S>(row + i, chunk.first, chunk.len);
        }
        // Each band calls up its share, so that the whole next chunk has come by the time the last row is done.
        let lines = (chunk.len / 2).div_ceil(CACHE_LINE_PAIRS);
        let share = row * lines / self.x.rows()..(row + H) * lines / self.x.rows();
        let mut column = 0;
        while column + W <= self.out.cols() {
            for j in 0..W {
                chunk.prefetch(column + j, share.clone());
            }
            self.add_tile::<S, H, W>(simd, x, chunk, row, column);
            column += W;
        }
        while column < self.out.cols() {
            chunk.prefetch(column, share.clone());
            self.add_tile::<S, H, 1>(simd, x, chunk, row, column);
            column += 1;
        }
    }

    #[inline(always)]
    fn add_tile<S: Simd, const H: usize, const W: usize>(
        &mut self,
        simd: S,
        x: [&[[S::f32s; 2]]; H],
        chunk: Chunk<'_>,
        row: usize,
        column: usize,
    ) {
        let mut w = [const { &[] as &[S::u32s] }; W];
        for (j, w) in w.iter_mut().enumerate() {
            *w = chunk.column::<S>(column + j);
        }
        let sums = tile::<S, H, W>(simd, x, w);
        for (i, sums) in sums.iter().enumerate() {
            let out = &mut self.out.row_mut(row + i)[column..column + W];
            for (out, sum) in out.iter_mut().zip(sums) {
                *out += sum;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_close, on_threads, random, random_bf16};
    use super::*;

    /// A product to compute: `x` has `gap` columns between its rows that belong to nobody, and so has the result.
    #[derive(Clone, Copy, Debug)]
    struct Case {
        rows: usize,
        inputs: usize,
        outputs: usize,
        orientation: Orientation,
        gap: usize,
    }

    const UNTOUCHED: f32 = 7.5;

    impl Case {
        fn x(&self) -> Vec<f32> {
            random(1, self.rows * (self.inputs + self.gap))
        }

        fn weight(&self) -> Vec<bf16> {
            random_bf16(2, self.inputs * self.outputs)
        }

        fn block<'a>(&self, weight: &'a [bf16]) -> WeightBlock<'a> {
            let (rows, cols) = match self.orientation {
                Orientation::OutIn => (self.outputs, self.inputs),
                Orientation::InOut => (self.inputs, self.outputs),
            };
            WeightBlock::new(weight, rows, cols, self.orientation)
        }

        /// All of the result's memory, gaps included.
        fn run(&self, bias: Bias<'_>, activation: Activation) -> Vec<f32> {
            let (x, weight) = (self.x(), self.weight());
            let stride = self.outputs + self.gap;
            let mut out = vec![UNTOUCHED; self.rows * stride];
            linear(
                Mat::new(&x, self.rows, self.inputs, self.inputs + self.gap),
                self.block(&weight),
                bias,
                activation,
                MatMut::new(&mut out, self.rows, self.outputs, stride),
            );
            out
        }

        /// The result without bias and activation, in f64.
        fn exact(&self) -> Vec<f64> {
            let (x, weight) = (self.x(), self.weight());
            let mut exact = Vec::new();
            for row in 0..self.rows {
                let x = &x[row * (self.inputs + self.gap)..][..self.inputs];
                for column in 0..self.outputs {
                    let product = |k: usize| {
                        let w = match self.orientation {
                            Orientation::OutIn => weight[column * self.inputs + k],
                            Orientation::InOut => weight[k * self.outputs + column],
                        };
                        f64::from(x[k]) * w.to_f64()
                    };
                    exact.push((0..self.inputs).map(product).sum());
                }
            }
            exact
        }

        fn without_gaps(&self, out: &[f32]) -> Vec<f32> {
            let mut values = Vec::new();
            for row in out.chunks_exact(self.outputs + self.gap) {
                let (row, gap) = row.split_at(self.outputs);
                assert!(gap.iter().all(|value| *value == UNTOUCHED), "{self:?} wrote into a gap");
                values.extend(row);
            }
            values
        }

        /// Rounding of a sum of `inputs` products of numbers below one.
        fn tolerance(&self) -> f64 {
            1e-6 * (self.inputs as f64).sqrt()
        }
    }

    fn cases() -> Vec<Case> {
        let mut cases = Vec::new();
        for orientation in [Orientation::OutIn, Orientation::InOut] {
            for rows in [1, 2, 3, 4, 5, 6, 7, 11, 36, 49, 51, 81, 116] {
                for (inputs, outputs) in [(48, 72), (72, 48), (33, 1), (1, 17), (588, 128)] {
                    cases.push(Case { rows, inputs, outputs, orientation, gap: rows % 3 });
                }
            }
        }
        let orientation = Orientation::OutIn;
        cases.push(Case { rows: 324, inputs: 1152, outputs: 77, orientation, gap: 0 });
        cases.push(Case { rows: 3, inputs: 4304, outputs: 145, orientation, gap: 1 });
        cases.push(Case { rows: 1, inputs: 6144, outputs: 1152, orientation, gap: 0 });
        cases
    }

    #[test]
    fn products_match_f64() {
        for case in cases() {
            let found = case.run(Bias::None, Activation::Identity);
            let found = case.without_gaps(&found);
            assert_close(&format!("{case:?}"), &found, &case.exact(), case.tolerance());
        }
    }

    #[test]
    fn bias_and_activation_match_f64() {
        let (rows, inputs, outputs) = (7, 64, 90);
        for orientation in [Orientation::OutIn, Orientation::InOut] {
            let case = Case { rows, inputs, outputs, orientation, gap: 2 };
            let narrow = random_bf16(3, outputs);
            let bias: Vec<f32> = narrow.iter().map(|value| value.to_f32()).collect();
            let expected = |index: usize, sum: &f64| {
                let x = sum + f64::from(bias[index % outputs]);
                x / (1.0 + (-x).exp())
            };
            let exact: Vec<f64> =
                case.exact().iter().enumerate().map(|(index, sum)| expected(index, sum)).collect();
            for bias in [Bias::Bf16(&narrow), Bias::F32(&bias)] {
                let found = case.without_gaps(&case.run(bias, Activation::Silu));
                assert_close(&format!("{case:?}"), &found, &exact, 2.0 * case.tolerance());
            }
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_byte() {
        for case in cases().into_iter().filter(|case| case.rows % 5 == 1) {
            let run = || case.run(Bias::None, Activation::GeluTanh);
            let one = on_threads(1, run);
            for threads in [2, 3, 16] {
                let many = on_threads(threads, run);
                let same = one.iter().zip(&many).all(|(a, b)| a.to_bits() == b.to_bits());
                assert!(same, "{case:?} on {threads} threads");
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_the_rows_beside_it() {
        let case =
            |rows| Case { rows, inputs: 100, outputs: 50, orientation: Orientation::OutIn, gap: 0 };
        let all = case(13).run(Bias::None, Activation::Identity);
        for rows in 1..13 {
            let some = case(rows).run(Bias::None, Activation::Identity);
            assert_eq!(some, all[..some.len()], "{rows} rows");
        }
    }

    /// The same products for every vector width, and for weights that do not start at a multiple of four bytes.
    #[test]
    fn vector_widths_and_alignments_agree() {
        let case =
            Case { rows: 6, inputs: 160, outputs: 14, orientation: Orientation::OutIn, gap: 0 };
        let (x, weight) = (case.x(), case.weight());
        let exact = case.exact();
        for shift in [0, 1] {
            let mut shifted = vec![bf16::ONE; shift];
            shifted.extend(&weight);
            let mut results = Vec::new();
            let mut run = |product: &dyn Fn(Product<'_>)| {
                let mut out = vec![0.0; case.rows * case.outputs];
                product(Product {
                    x: Mat::new(&x, case.rows, case.inputs, case.inputs),
                    weight: case.block(&shifted[shift..]),
                    bias: Bias::None,
                    activation: Activation::Identity,
                    out: MatMut::new(&mut out, case.rows, case.outputs, case.outputs),
                });
                results.push(out);
            };
            run(&|product| product.with_simd(pulp::Scalar));
            run(&|product| product.with_simd(pulp::Scalar128b));
            run(&|product| product.with_simd(pulp::Scalar256b));
            run(&|product| product.with_simd(pulp::Scalar512b));
            run(&|product| Arch::new().dispatch(product));
            for (kind, found) in results.iter().enumerate() {
                assert_close(&format!("kind {kind}"), found, &exact, case.tolerance());
            }
        }
    }

    #[test]
    fn not_a_number_stays_in_its_row() {
        let weight = vec![bf16::ONE; 20 * 40];
        let mut x = random(1, 3 * 40);
        x[40] = f32::NAN;
        let mut out = vec![0.0; 3 * 20];
        linear(
            Mat::new(&x, 3, 40, 40),
            WeightBlock::new(&weight, 20, 40, Orientation::OutIn),
            Bias::None,
            Activation::Relu,
            MatMut::new(&mut out, 3, 20, 20),
        );
        for (index, value) in out.iter().enumerate() {
            assert_eq!(value.is_nan(), index / 20 == 1, "element {index}");
        }
    }

    #[test]
    fn nothing_to_do_is_fine() {
        let case = Case { rows: 0, inputs: 8, outputs: 8, orientation: Orientation::OutIn, gap: 0 };
        assert!(case.run(Bias::None, Activation::Relu).is_empty());
        let case = Case { rows: 2, outputs: 0, ..case };
        assert!(case.run(Bias::None, Activation::Relu).is_empty());
    }
}
