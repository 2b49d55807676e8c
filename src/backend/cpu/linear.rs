//! Products with the matrices of the checkpoint.
//!
//! The columns of the result are cut into tiles for the threads; a tile takes all rows, so that its weights come from
//! memory once. Which thread computes a tile changes nothing in it (see `super::tile`).

use std::cell::Cell;
use std::ops::Range;

use pulp::{Arch, Simd, WithSimd, bytemuck};

use super::ahead::{Ahead, LINE};
use super::mat::{Bias, Mat, MatMut, WeightBlock};
use super::math;
use super::panel::{aligned, pack};
use super::parallel::for_column_blocks;
use super::tile::{TILE_VECTORS, band_height, tile, tile_columns};
use crate::program::Activation;

/// Most elements of `k` worked on at a time: the weights of a tile then stay in the second-level cache.
const MAX_CHUNK: usize = 2048;

thread_local! {
    /// Kept between calls, so that a running network does not allocate.
    static PANEL: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
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
        for_column_blocks(out, tile_columns::<S>(), &|first, out| {
            simd.vectorize(ColumnTile { x, weight, bias, activation, first, out });
        });
    }
}

/// The columns of a product that make up one tile, or less.
struct ColumnTile<'a> {
    x: Mat<'a>,
    weight: WeightBlock<'a>,
    bias: Bias<'a>,
    activation: Activation,
    /// Column of the product at which `out` starts.
    first: usize,
    out: MatMut<'a>,
}

impl WithSimd for ColumnTile<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(mut self, simd: S) {
        let mut scratch = PANEL.take();
        let (k, width) = (self.x.cols(), tile_columns::<S>());
        let columns = self.first..self.first + self.out.cols();
        let chunk_len = k.div_ceil(k.div_ceil(MAX_CHUNK).max(1)).next_multiple_of(LINE);
        let mut bias = [simd.splat_f32s(0.0); TILE_VECTORS];
        let terms: &mut [f32] = bytemuck::cast_slice_mut(&mut bias);
        self.bias.add_to(self.first, &mut terms[..columns.len()]);
        // An empty product is a chunk as well: of no inputs.
        for first in (0..k.max(1)).step_by(chunk_len.max(1)) {
            let inputs = first..k.min(first + chunk_len);
            let panel = aligned(&mut scratch, inputs.len() * width);
            pack(self.weight, columns.clone(), inputs.clone(), width, panel);
            let chunk = Chunk { inputs, panel, bias };
            let mut row = 0;
            while row < self.x.rows() {
                let height = band_height::<S>(self.x.rows() - row);
                match height {
                    1 => self.add_band::<S, 1>(simd, &chunk, row),
                    2 => self.add_band::<S, 2>(simd, &chunk, row),
                    3 => self.add_band::<S, 3>(simd, &chunk, row),
                    4 => self.add_band::<S, 4>(simd, &chunk, row),
                    5 => self.add_band::<S, 5>(simd, &chunk, row),
                    6 => self.add_band::<S, 6>(simd, &chunk, row),
                    7 => self.add_band::<S, 7>(simd, &chunk, row),
                    _ => self.add_band::<S, 8>(simd, &chunk, row),
                }
                row += height;
            }
        }
        PANEL.set(scratch);
    }
}

/// A tile along a part of `k`.
struct Chunk<'a, S: Simd> {
    inputs: Range<usize>,
    /// Its weights, `[inputs, width of a tile]`.
    panel: &'a [f32],
    /// Of the tile's columns.
    bias: [S::f32s; TILE_VECTORS],
}

impl ColumnTile<'_> {
    /// What comes after `chunk`: these columns further along `k`, or the columns beside them from the start. Every row
    /// of the product calls up its share, so that all of it is there when the last row is done.
    fn ahead<S: Simd>(&self, chunk: &Chunk<'_, S>, rows: Range<usize>) -> Ahead {
        let width = self.out.cols();
        let (first_column, first_input) = match chunk.inputs.end {
            end if end < self.x.cols() => (self.first, end),
            _ => (self.first + width, 0),
        };
        let share = |row: usize| first_column + row * width / self.x.rows();
        Ahead::new(self.weight, share(rows.start)..share(rows.end), first_input)
    }

    /// Adds the products along one chunk to `H` rows; the first chunk begins them, the last one adds bias and activation.
    #[inline(always)]
    fn add_band<S: Simd, const H: usize>(&mut self, simd: S, chunk: &Chunk<'_, S>, row: usize) {
        let mut x = [const { &[] as &[f32] }; H];
        for (i, x) in x.iter_mut().enumerate() {
            *x = &self.x.row(row + i)[chunk.inputs.clone()];
        }
        let panel = S::as_simd_f32s(chunk.panel).0.as_chunks::<TILE_VECTORS>().0;
        let ahead = self.ahead(chunk, row..row + H);
        let mut sums = tile::<S, H>(
            simd,
            x,
            panel,
            #[inline(always)]
            |call| ahead.prefetch(call),
        );
        let is_first = chunk.inputs.start == 0;
        let is_last = chunk.inputs.end == self.x.cols();
        for (i, sums) in sums.iter_mut().enumerate() {
            let out = self.out.row_mut(row + i);
            if !is_first {
                for (sum, before) in sums.iter_mut().zip(&load::<S>(simd, out)) {
                    *sum = simd.add_f32s(*before, *sum);
                }
            }
            if is_last {
                for (sum, bias) in sums.iter_mut().zip(&chunk.bias) {
                    *sum = simd.add_f32s(*sum, *bias);
                }
            }
            store::<S>(out, sums);
            if is_last {
                math::activate_all(self.activation, out);
            }
        }
    }
}

/// The columns of a tile in one row; those that are missing are zero.
#[inline(always)]
fn load<S: Simd>(simd: S, row: &[f32]) -> [S::f32s; TILE_VECTORS] {
    if let Some(whole) = S::as_simd_f32s(row).0.first_chunk() {
        return *whole;
    }
    let mut vectors = [simd.splat_f32s(0.0); TILE_VECTORS];
    let values: &mut [f32] = bytemuck::cast_slice_mut(&mut vectors);
    values[..row.len()].copy_from_slice(row);
    vectors
}

/// Writes as many columns as the row has.
#[inline(always)]
fn store<S: Simd>(row: &mut [f32], vectors: &[S::f32s; TILE_VECTORS]) {
    if let Some(whole) = S::as_mut_simd_f32s(row).0.first_chunk_mut() {
        *whole = *vectors;
        return;
    }
    let values: &[f32] = bytemuck::cast_slice(vectors);
    let columns = row.len();
    row.copy_from_slice(&values[..columns]);
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::super::testing::{assert_close, on_threads, random, random_bf16};
    use super::*;
    use crate::program::Orientation;

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

        /// Rounding of a sum of `inputs` products of numbers below one, taken one after the other: half an ulp of the
        /// running sum at every step.
        fn tolerance(&self) -> f64 {
            2e-6 * (self.inputs as f64).sqrt()
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
            // All but the first multiply and add in one step.
            for found in &results[2..] {
                assert_eq!(found, &results[1]);
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
