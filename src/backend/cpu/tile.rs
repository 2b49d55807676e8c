//! Inner products of f32 rows with bf16 rows, several at once: the inside of every product with the checkpoint.
//!
//! Both sides are packed first, in the order in which the innermost loop reads them: one vector along `k` of each row of
//! a band, and one of each column of a tile. The weights are widened to f32 as they are packed, so that the loop does
//! nothing but multiply and add. A vector of 32-bit lanes holds pairs of bf16: shifting up leaves the even elements as
//! f32, masking leaves the odd ones. So both sides have the even and the odd elements of each block apart.
//!
//! Every sum is taken in one order: lane by lane along a chunk of `k`, then the lanes, then the chunks. It depends on
//! the vector width of the machine, not on the shape of a tile, on the number of rows or on threads.

use half::bf16;
use pulp::{Simd, WithSimd, bytemuck};
use rayon::prelude::*;

use super::mat::Mat;

/// Most elements of `k` worked on at a time: a band of rows then stays in the first-level cache.
const MAX_CHUNK: usize = 1152;

/// Where packed values start in memory.
const CACHE_LINE_BYTES: usize = 64;

/// Columns of a tile.
pub const TILE_COLUMNS: usize = 4;

/// Most rows of a tile: its sums, one vector of each row and one vector of weights fill the registers.
const fn tile_rows<S: Simd>() -> usize {
    if S::REGISTER_COUNT >= 32 { 6 } else { 3 }
}

/// Rows of the next band: all bands are as even as they can be.
pub fn band_height<S: Simd>(rows_left: usize) -> usize {
    rows_left.div_ceil(rows_left.div_ceil(tile_rows::<S>()))
}

/// Elements of `k` that are packed at a time: a vector of even and a vector of odd ones.
const fn block<S: Simd>() -> usize {
    2 * S::F32_LANES
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
        let padded = blocks * block::<S>();
        let chunks = padded.div_ceil(MAX_CHUNK).max(1);
        Self { padded, chunk: blocks.div_ceil(chunks).max(1) * block::<S>() }
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

/// The rows of a matrix, packed: for each chunk of `k` band after band, in a band vector after vector along `k`, of each
/// of these the band's rows. Filled up with zeros to whole vectors.
pub struct PackedRows<'a> {
    values: &'a [f32],
    rows: usize,
    depth: Depth,
}

impl<'a> PackedRows<'a> {
    /// Packs all rows of `x` into `scratch`, which grows when it is too short.
    pub fn pack<S: Simd>(simd: S, x: Mat<'_>, scratch: &'a mut Vec<f32>) -> Self {
        let depth = Depth::new::<S>(x.cols());
        let values = aligned(scratch, x.rows() * depth.padded);
        let mut bands = Vec::new();
        let mut rest = &mut *values;
        for (first, len) in depth.chunks() {
            let mut row = 0;
            while row < x.rows() {
                let height = band_height::<S>(x.rows() - row);
                let target;
                (target, rest) = rest.split_at_mut(height * len);
                bands.push(PackBand { x, row, height, first, len, target });
                row += height;
            }
        }
        bands.into_par_iter().with_min_len(PACKED_BANDS).for_each(|band| simd.vectorize(band));
        Self { values, rows: x.rows(), depth }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn depth(&self) -> Depth {
        self.depth
    }

    /// The vectors of the band of `H` rows that begins at `row`, in the chunk of `len` elements from `first` on.
    #[inline(always)]
    pub fn band<S: Simd, const H: usize>(
        &self,
        row: usize,
        first: usize,
        len: usize,
    ) -> &'a [[S::f32s; H]] {
        let band = &self.values[self.rows * first + row * len..][..H * len];
        S::as_simd_f32s(band).0.as_chunks().0
    }
}

/// Bands that are packed by one task.
const PACKED_BANDS: usize = 4;

/// The first `len` elements of `scratch` from the start of a cache line on; it grows when it is too short.
pub fn aligned(scratch: &mut Vec<f32>, len: usize) -> &mut [f32] {
    let spare = CACHE_LINE_BYTES / size_of::<f32>();
    if scratch.len() < len + spare {
        scratch.resize(len + spare, 0.0);
    }
    let start = scratch.as_ptr().align_offset(CACHE_LINE_BYTES);
    &mut scratch[start..start + len]
}

/// One band of rows along one chunk of `k`, to be packed.
struct PackBand<'x, 't> {
    x: Mat<'x>,
    row: usize,
    height: usize,
    first: usize,
    len: usize,
    target: &'t mut [f32],
}

impl WithSimd for PackBand<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let end = self.x.cols().min(self.first + self.len);
        for place in 0..self.height {
            let source = &self.x.row(self.row + place)[self.first..end];
            let targets = self.target.chunks_exact_mut(self.height * block::<S>());
            let mut blocks = source.chunks_exact(block::<S>());
            let mut last = [0.0; MAX_BLOCK];
            last[..blocks.remainder().len()].copy_from_slice(blocks.remainder());
            for target in targets {
                let source = blocks.next().unwrap_or(&last[..block::<S>()]);
                let (even, odd) = target.split_at_mut(self.height * S::F32_LANES);
                let even = &mut even[place * S::F32_LANES..][..S::F32_LANES];
                let odd = &mut odd[place * S::F32_LANES..][..S::F32_LANES];
                for (pair, (even, odd)) in source.chunks_exact(2).zip(even.iter_mut().zip(odd)) {
                    (*even, *odd) = (pair[0], pair[1]);
                }
            }
        }
    }
}

/// The longest block of any processor.
const MAX_BLOCK: usize = 32;

/// Widens a column of weights and packs it as number `place` of a tile, filled up with zeros.
#[inline(always)]
pub fn pack_column<S: Simd>(simd: S, column: &[bf16], place: usize, tile: &mut [f32]) {
    let tile = S::as_mut_simd_f32s(tile).0.as_chunks_mut::<TILE_COLUMNS>().0.as_chunks_mut::<2>().0;
    let mut blocks = column.chunks_exact(block::<S>());
    let mut last = [bf16::ZERO; MAX_BLOCK];
    last[..blocks.remainder().len()].copy_from_slice(blocks.remainder());
    let odd_half = simd.splat_u32s(0xffff_0000);
    let half_width = simd.splat_u32s(16);
    for [even, odd] in tile {
        let block = blocks.next().unwrap_or(&last[..block::<S>()]);
        // Tensors may start anywhere between two multiples of four bytes.
        let pairs: S::u32s = bytemuck::pod_read_unaligned(bytemuck::cast_slice(block));
        even[place] = simd.transmute_f32s_u32s(simd.wrapping_dyn_shl_u32s(pairs, half_width));
        odd[place] = simd.transmute_f32s_u32s(simd.and_u32s(pairs, odd_half));
    }
}

/// The inner products of a band of `H` rows with the columns of a tile.
#[inline(always)]
pub fn tile<S: Simd, const H: usize>(
    simd: S,
    x: &[[S::f32s; H]],
    w: &[[S::f32s; TILE_COLUMNS]],
) -> [[f32; TILE_COLUMNS]; H] {
    let mut sums = [[simd.splat_f32s(0.0); TILE_COLUMNS]; H];
    for (x, w) in x.iter().zip(w) {
        for column in 0..TILE_COLUMNS {
            for row in 0..H {
                sums[row][column] = simd.mul_add_e_f32s(x[row], w[column], sums[row][column]);
            }
        }
    }
    let mut totals = [[0.0; TILE_COLUMNS]; H];
    for row in 0..H {
        totals[row] = reduce(simd, sums[row]);
    }
    totals
}

/// The sums over the lanes of four vectors.
#[inline(always)]
fn reduce<S: Simd>(simd: S, sums: [S::f32s; TILE_COLUMNS]) -> [f32; TILE_COLUMNS] {
    let mut totals = [0.0; TILE_COLUMNS];
    if S::F32_LANES < TILE_COLUMNS {
        for column in 0..TILE_COLUMNS {
            totals[column] = simd.reduce_sum_f32s(sums[column]);
        }
        return totals;
    }
    // Lane l of each of these is a lane of sum l % 4.
    let [a, b, c, d] = simd.interleave_shfl_f32s(sums);
    let mixed = simd.add_f32s(simd.add_f32s(a, b), simd.add_f32s(c, d));
    let lanes: &[f32] = bytemuck::cast_slice(std::slice::from_ref(&mixed));
    for quad in lanes.as_chunks::<TILE_COLUMNS>().0 {
        for (total, lane) in totals.iter_mut().zip(quad) {
            *total += lane;
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::Arch;

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

    struct Reduce;

    impl WithSimd for Reduce {
        type Output = [f32; TILE_COLUMNS];

        fn with_simd<S: Simd>(self, simd: S) -> [f32; TILE_COLUMNS] {
            let mut sums = [simd.splat_f32s(0.0); TILE_COLUMNS];
            for (column, sum) in sums.iter_mut().enumerate() {
                let lanes: &mut [f32] = bytemuck::cast_slice_mut(std::slice::from_mut(sum));
                lanes.fill(10f32.powi(column as i32) / lanes.len() as f32);
            }
            reduce(simd, sums)
        }
    }

    #[test]
    fn lanes_are_summed_by_column() {
        let expected = [1.0, 10.0, 100.0, 1000.0];
        assert_eq!(Arch::new().dispatch(Reduce), expected);
        assert_eq!(Reduce.with_simd(pulp::Scalar), expected);
        assert_eq!(Reduce.with_simd(pulp::Scalar128b), expected);
        assert_eq!(Reduce.with_simd(pulp::Scalar256b), expected);
        assert_eq!(Reduce.with_simd(pulp::Scalar512b), expected);
    }
}
