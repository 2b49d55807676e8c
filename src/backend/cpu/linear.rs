//! Products with the matrices of the checkpoint.
//!
//! The columns of the result are cut into blocks for the threads; a block takes all rows, so that its weights come
//! from memory once. Which thread computes a block changes nothing in it (see [`super::tile`]).

use std::cell::Cell;
use std::ops::Range;

use half::bf16;
use pulp::{Arch, Simd, WithSimd};

use super::mat::{Bias, Mat, MatMut, WeightBlock};
use super::math;
use super::parallel::for_column_blocks;
use super::tile::{PackedRows, TILE_COLUMNS, aligned, band_height, pack_column, tile};
use crate::program::{Activation, Orientation};

/// Most columns of a block: few enough that the weights of a chunk stay in the second-level cache.
const MAX_BLOCK_COLUMNS: usize = 72;

/// Blocks per thread that even out the load.
const BLOCKS_PER_THREAD: usize = 4;

thread_local! {
    /// Kept between calls, so that a running network does not allocate.
    static PACKED_ROWS: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
    static PANEL: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
    static TRANSPOSED: Cell<Vec<bf16>> = const { Cell::new(Vec::new()) };
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
    even.next_multiple_of(TILE_COLUMNS).clamp(TILE_COLUMNS, MAX_BLOCK_COLUMNS)
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
        let (mut transposed, mut panel) = (TRANSPOSED.take(), PANEL.take());
        let columns = self.columns(&mut transposed);
        for row in 0..self.out.rows() {
            self.out.row_mut(row).fill(0.0);
        }
        for (first, len) in self.x.depth().chunks() {
            let chunk =
                Chunk { first, len, columns, panel: columns.pack(simd, first, len, &mut panel) };
            let mut row = 0;
            while row < self.x.rows() {
                let height = band_height::<S>(self.x.rows() - row);
                match height {
                    1 => self.add_band::<S, 1>(simd, chunk, row),
                    2 => self.add_band::<S, 2>(simd, chunk, row),
                    3 => self.add_band::<S, 3>(simd, chunk, row),
                    4 => self.add_band::<S, 4>(simd, chunk, row),
                    5 => self.add_band::<S, 5>(simd, chunk, row),
                    _ => self.add_band::<S, 6>(simd, chunk, row),
                }
                row += height;
            }
        }
        for row in 0..self.out.rows() {
            let out = self.out.row_mut(row);
            self.bias.add_to(self.first, out);
            math::activate_all(self.activation, out);
        }
        TRANSPOSED.set(transposed);
        PANEL.set(panel);
    }
}

/// The weights of a column block, `[columns, inputs]`, and all that follow them in memory.
#[derive(Clone, Copy)]
struct Columns<'a> {
    values: &'a [bf16],
    count: usize,
    inputs: usize,
}

/// A column block along a chunk of `k`.
#[derive(Clone, Copy)]
struct Chunk<'a> {
    first: usize,
    len: usize,
    columns: Columns<'a>,
    /// The weights of the chunk, tile after tile.
    panel: &'a [f32],
}

impl Columns<'_> {
    /// Packs the elements `first .. first + len` of every column; missing columns of the last tile are zero.
    #[inline(always)]
    fn pack<'s, S: Simd>(
        &self,
        simd: S,
        first: usize,
        len: usize,
        scratch: &'s mut Vec<f32>,
    ) -> &'s [f32] {
        let panel = aligned(scratch, self.count.next_multiple_of(TILE_COLUMNS) * len);
        for (index, tile) in panel.chunks_exact_mut(TILE_COLUMNS * len).enumerate() {
            let columns = index * TILE_COLUMNS..self.count.min((index + 1) * TILE_COLUMNS);
            if columns.len() < TILE_COLUMNS {
                tile.fill(0.0);
            }
            for (place, column) in columns.enumerate() {
                let column = &self.values[column * self.inputs..][..self.inputs];
                pack_column(simd, &column[first..self.inputs.min(first + len)], place, tile);
            }
        }
        panel
    }
}

impl<'a> Chunk<'a> {
    /// The vectors of the tile that begins at `column`.
    #[inline(always)]
    fn tile<S: Simd>(&self, column: usize) -> &'a [[S::f32s; TILE_COLUMNS]] {
        let tile = &self.panel[column * self.len..][..TILE_COLUMNS * self.len];
        S::as_simd_f32s(tile).0.as_chunks().0
    }

    /// Calls up some cache lines of a column's weights that are worked on after this chunk: those of the next chunk,
    /// or of the next column block.
    #[inline(always)]
    fn prefetch(&self, column: usize, lines: Range<usize>) {
        let Columns { values, count, inputs } = self.columns;
        let end = self.first + self.len;
        let next = if end < inputs { end } else { count * inputs };
        for line in lines {
            if let Some(value) = values.get(next + column * inputs + line * CACHE_LINE) {
                prefetch(value);
            }
        }
    }
}

/// Weights in a cache line.
const CACHE_LINE: usize = 32;

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
const TRANSPOSED_INPUTS: usize = CACHE_LINE;
const TRANSPOSED_COLUMNS: usize = 8;

/// Writes some columns of a weight stored `[in, out]` as rows.
fn transpose(weight: WeightBlock<'_>, columns: Range<usize>, rows: &mut [bf16]) {
    let inputs = weight.inputs();
    for first_input in (0..inputs).step_by(TRANSPOSED_INPUTS) {
        let last_input = inputs.min(first_input + TRANSPOSED_INPUTS);
        // The rows lie too far apart for the processor to see them coming.
        for input in last_input..inputs.min(last_input + TRANSPOSED_INPUTS) {
            for value in weight.row(input)[columns.clone()].iter().step_by(CACHE_LINE) {
                prefetch(value);
            }
        }
        for first in columns.clone().step_by(TRANSPOSED_COLUMNS) {
            let last = columns.end.min(first + TRANSPOSED_COLUMNS);
            let target = &mut rows[(first - columns.start) * inputs..];
            for input in first_input..last_input {
                for (column, value) in weight.row(input)[first..last].iter().enumerate() {
                    target[column * inputs + input] = *value;
                }
            }
        }
    }
}

impl ColumnBlock<'_> {
    /// The weights as they lie in the checkpoint, or transposed in `scratch`.
    fn columns<'s>(&self, scratch: &'s mut Vec<bf16>) -> Columns<'s>
    where
        Self: 's,
    {
        let (inputs, count) = (self.weight.inputs(), self.out.cols());
        let values = match self.weight.orientation() {
            Orientation::OutIn => self.weight.rows_from(self.first),
            Orientation::InOut => {
                scratch.resize(count * inputs, bf16::ZERO);
                transpose(self.weight, self.first..self.first + count, scratch);
                &scratch[..]
            }
        };
        Columns { values, count, inputs }
    }

    /// Adds the products along one chunk to `H` rows, tile by tile.
    #[inline(always)]
    fn add_band<S: Simd, const H: usize>(&mut self, simd: S, chunk: Chunk<'_>, row: usize) {
        let x = self.x.band::<S, H>(row, chunk.first, chunk.len);
        // Each band calls up its share, so that all that comes next is there by the time the last row is done.
        let lines = chunk.len.div_ceil(CACHE_LINE);
        let share = row * lines / self.x.rows()..(row + H) * lines / self.x.rows();
        for column in (0..self.out.cols()).step_by(TILE_COLUMNS) {
            for next in column..column + TILE_COLUMNS {
                chunk.prefetch(next, share.clone());
            }
            let sums = tile::<S, H>(simd, x, chunk.tile::<S>(column));
            for (i, sums) in sums.iter().enumerate() {
                let out = &mut self.out.row_mut(row + i)[column..];
                // Apart, so that a whole tile is added as one vector.
                match out.first_chunk_mut::<TILE_COLUMNS>() {
                    Some(out) => add(out, sums),
                    None => add(out, sums),
                }
            }
        }
    }
}

/// Adds as many sums as there are elements.
#[inline(always)]
fn add(out: &mut [f32], sums: &[f32]) {
    for (out, sum) in out.iter_mut().zip(sums) {
        *out += sum;
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
