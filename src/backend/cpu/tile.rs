//! Inner products of f32 rows with bf16 rows, several at once: the inside of every product with the checkpoint.
//!
//! The weights are read as they lie in the file. One load of 32-bit lanes holds pairs of bf16: shifting up leaves the
//! even elements as f32, masking leaves the odd ones. So the f32 rows are packed with the even and odd elements of
//! each block apart, and the widening costs one instruction per vector of weights.
//!
//! Every sum is taken in one order: lane by lane along a chunk of `k`, then the lanes, then the chunks. It depends on
//! the vector width of the machine, not on the shape of a tile, on the number of rows or on threads.

use pulp::Simd;

use super::mat::Mat;

/// Most elements of `k` worked on at a time: the rows of a tile then stay in the first-level cache.
const MAX_CHUNK: usize = 1152;

/// Where the packed rows start in memory.
const CACHE_LINE_BYTES: usize = 64;

/// Elements of `k` that a tile takes at a time.
pub const fn block<S: Simd>() -> usize {
    2 * S::F32_LANES
}

/// The rows of a matrix, packed: for each chunk of `k` all rows, in each row block after block, the even elements
/// before the odd ones. Filled up with zeros to whole blocks.
pub struct PackedRows<'a> {
    values: &'a [f32],
    rows: usize,
    depth: Depth,
}

/// How `k` is cut up.
#[derive(Clone, Copy)]
pub struct Depth {
    /// A whole number of blocks.
    padded: usize,
    /// Length of every chunk but the last, a whole number of blocks.
    chunk: usize,
}

impl Depth {
    pub fn new<S: Simd>(k: usize) -> Self {
        let blocks = k.div_ceil(block::<S>());
        let chunks = (blocks * block::<S>()).div_ceil(MAX_CHUNK).max(1);
        Self { padded: blocks * block::<S>(), chunk: blocks.div_ceil(chunks).max(1) * block::<S>() }
    }

    pub fn padded(&self) -> usize {
        self.padded
    }

    /// First element and length of every chunk.
    pub fn chunks(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let Self { padded, chunk } = *self;
        (0..padded).step_by(chunk).map(move |first| (first, chunk.min(padded - first)))
    }
}

impl<'a> PackedRows<'a> {
    /// Packs all rows of `x` into `scratch`, which grows when it is too short.
    pub fn pack<S: Simd>(simd: S, x: Mat<'_>, scratch: &'a mut Vec<f32>) -> Self {
        let depth = Depth::new::<S>(x.cols());
        let len = x.rows() * depth.padded;
        let spare = CACHE_LINE_BYTES / size_of::<f32>();
        if scratch.len() < len + spare {
            scratch.resize(len + spare, 0.0);
        }
        let start = scratch.as_ptr().align_offset(CACHE_LINE_BYTES);
        let values = &mut scratch[start..start + len];
        let mut rest = &mut *values;
        for (first, len) in depth.chunks() {
            let chunk;
            (chunk, rest) = rest.split_at_mut(x.rows() * len);
            pack_chunk(simd, x, first, len, chunk);
        }
        Self { values, rows: x.rows(), depth }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// The vectors of one row in the chunk of `len` elements from `first` on.
    #[inline(always)]
    pub fn row<S: Simd>(&self, row: usize, first: usize, len: usize) -> &'a [[S::f32s; 2]] {
        let (vectors, _) = S::as_simd_f32s(&self.values[self.rows * first + row * len..][..len]);
        vectors.as_chunks().0
    }
}

/// Packs the elements `first .. first + len` of every row.
fn pack_chunk<S: Simd>(simd: S, x: Mat<'_>, first: usize, len: usize, target: &mut [f32]) {
    use rayon::prelude::*;
    target.par_chunks_exact_mut(len).with_min_len(PACK_ROWS).enumerate().for_each(
        |(row, target)| {
            let source = &x.row(row)[first..x.cols().min(first + len)];
            simd.vectorize(
                #[inline(always)]
                || pack_row::<S>(source, target),
            );
        },
    );
}

/// Rows that are packed by one task.
const PACK_ROWS: usize = 16;

#[inline(always)]
fn pack_row<S: Simd>(source: &[f32], target: &mut [f32]) {
    let blocks = source.chunks_exact(block::<S>());
    let rest = blocks.remainder();
    let mut targets = target.chunks_exact_mut(block::<S>());
    // The blocks come first: a zip that ends on them has not taken a target that the rest needs.
    for (source, target) in blocks.zip(targets.by_ref()) {
        let (even, odd) = target.split_at_mut(S::F32_LANES);
        for (pair, (even, odd)) in source.chunks_exact(2).zip(even.iter_mut().zip(odd)) {
            (*even, *odd) = (pair[0], pair[1]);
        }
    }
    if let Some(target) = targets.next() {
        target.fill(0.0);
        for (k, value) in rest.iter().enumerate() {
            target[k % 2 * S::F32_LANES + k / 2] = *value;
        }
    }
}

/// The inner products of `H` packed rows with `W` rows of weights, all of the same number of blocks.
#[inline(always)]
pub fn tile<S: Simd, const H: usize, const W: usize>(
    simd: S,
    x: [&[[S::f32s; 2]]; H],
    w: [&[S::u32s]; W],
) -> [[f32; W]; H] {
    let blocks = x[0].len();
    // Checked here, so that the loop need not.
    for row in x {
        assert_eq!(row.len(), blocks);
    }
    for column in w {
        assert_eq!(column.len(), blocks);
    }
    let odd_half = simd.splat_u32s(0xffff_0000);
    let half_width = simd.splat_u32s(16);
    let mut sums = [[simd.splat_f32s(0.0); W]; H];
    for block in 0..blocks {
        let mut even = [simd.splat_f32s(0.0); W];
        let mut odd = [simd.splat_f32s(0.0); W];
        for column in 0..W {
            let pairs = w[column][block];
            even[column] = simd.transmute_f32s_u32s(simd.wrapping_dyn_shl_u32s(pairs, half_width));
            odd[column] = simd.transmute_f32s_u32s(simd.and_u32s(pairs, odd_half));
        }
        for row in 0..H {
            let x = x[row][block][0];
            for column in 0..W {
                sums[row][column] = simd.mul_add_e_f32s(x, even[column], sums[row][column]);
            }
        }
        for row in 0..H {
            let x = x[row][block][1];
            for column in 0..W {
                sums[row][column] = simd.mul_add_e_f32s(x, odd[column], sums[row][column]);
            }
        }
    }
    let mut totals = [[0.0; W]; H];
    for row in 0..H {
        for column in 0..W {
            totals[row][column] = simd.reduce_sum_f32s(sums[row][column]);
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::{Arch, WithSimd};

    struct Pack<'a> {
        x: Mat<'a>,
        scratch: &'a mut Vec<f32>,
    }

    impl WithSimd for Pack<'_> {
        type Output = f32;

        /// The sum of everything that is packed, padding included.
        fn with_simd<S: Simd>(self, simd: S) -> f32 {
            PackedRows::pack(simd, self.x, self.scratch).values.iter().sum()
        }
    }

    #[test]
    fn rows_of_any_width_are_packed_whole_and_nothing_old_is_left() {
        let mut scratch = vec![1000.0; 1 << 14];
        for cols in [1, 7, 15, 16, 17, 36, 72, 588, 1151, 1153, 2305] {
            let values = vec![1.0; 3 * cols];
            let x = Mat::new(&values, 3, cols, cols);
            let sum = Arch::new().dispatch(Pack { x, scratch: &mut scratch });
            assert_eq!(sum, 3.0 * cols as f32, "{cols} columns");
        }
    }
}
