//! Products with the matrices of the checkpoint.
//!
//! The columns of the result are cut into blocks for the threads; a block takes all rows, so that its weights come
//! from memory once. Which thread computes a block changes nothing in it (see [`super::tile`]).

use std::cell::Cell;

use half::bf16;
use pulp::{Arch, Simd, WithSimd, bytemuck};

use super::mat::{Bias, Mat, MatMut, WeightBlock};
use super::math;
use super::tile::{PackedRows, tile};
use crate::program::{Activation, Orientation};

/// Most columns of a block: few enough that the weights of a chunk stay in the second-level cache.
const MAX_BLOCK_COLUMNS: usize = 48;

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
        for_column_blocks(out, 0, width, &|first, out| {
            simd.vectorize(ColumnBlock { x: &x, weight, bias, activation, first, out });
        });
        PACKED_ROWS.set(scratch);
    }
}

fn block_columns(columns: usize) -> usize {
    let even = columns.div_ceil(BLOCKS_PER_THREAD * rayon::current_num_threads());
    even.next_multiple_of(COLUMN_STEP).clamp(COLUMN_STEP, MAX_BLOCK_COLUMNS)
}

/// Calls `work` with the first column and the view of each block of `width` columns, in parallel.
fn for_column_blocks(
    out: MatMut<'_>,
    first: usize,
    width: usize,
    work: &(impl Fn(usize, MatMut<'_>) + Sync),
) {
    let blocks = out.cols().div_ceil(width);
    if blocks <= 1 {
        return work(first, out);
    }
    let middle = blocks / 2 * width;
    let (left, right) = out.split_cols(middle);
    rayon::join(
        || for_column_blocks(left, first, width, work),
        || for_column_blocks(right, first + middle, width, work),
    );
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
            let chunk = Chunk { first, len, panel };
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
        let values: &mut [bf16] = bytemuck::cast_slice_mut(scratch);
        match self.weight.orientation() {
            Orientation::OutIn => {
                for (target, column) in values.chunks_exact_mut(padded).zip(columns) {
                    target[..k].copy_from_slice(self.weight.row(column));
                }
            }
            Orientation::InOut => {
                for input in 0..k {
                    let source = &self.weight.row(input)[columns.clone()];
                    for (column, value) in source.iter().enumerate() {
                        values[column * padded + input] = *value;
                    }
                }
            }
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
        let mut column = 0;
        while column + W <= self.out.cols() {
            self.add_tile::<S, H, W>(simd, chunk, row, column);
            column += W;
        }
        while column < self.out.cols() {
            self.add_tile::<S, H, 1>(simd, chunk, row, column);
            column += 1;
        }
    }

    #[inline(always)]
    fn add_tile<S: Simd, const H: usize, const W: usize>(
        &mut self,
        simd: S,
        chunk: Chunk<'_>,
        row: usize,
        column: usize,
    ) {
        let mut x = [const { &[] as &[[S::f32s; 2]] }; H];
        for (i, x) in x.iter_mut().enumerate() {
            *x = self.x.row::<S>(row + i, chunk.first, chunk.len);
        }
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
