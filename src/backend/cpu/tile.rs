//! Products of f32 rows with a few columns of weights: the inside of every product with the checkpoint.
//!
//! The lanes of a vector are columns of the product. So every sum is taken in the order of `k`, in one lane: it does not
//! depend on the vector width of the machine, as long as it multiplies and adds in one step, on the shape of a tile, on
//! the number of rows or on threads.

use pulp::Simd;

/// Vectors of columns in a tile.
pub const TILE_VECTORS: usize = 3;

/// Steps along `k` after which a tile does something else for a moment.
pub const STRIDE: usize = 32;

/// Columns of a tile.
pub const fn tile_columns<S: Simd>() -> usize {
    TILE_VECTORS * S::F32_LANES
}

/// Most rows of a tile: its sums, a vector of each column and one value of a row fill the registers.
const fn tile_rows<S: Simd>() -> usize {
    if S::REGISTER_COUNT >= 32 { 8 } else { 4 }
}

/// Rows of the next band of tiles: all bands are as even as they can be.
pub fn band_height<S: Simd>(rows_left: usize) -> usize {
    rows_left.div_ceil(rows_left.div_ceil(tile_rows::<S>()))
}

/// The inner products of `H` rows with the columns of a tile, whose weights lie vector by vector along `k`. Calls
/// `meanwhile` after every [`STRIDE`] steps, with their number.
#[inline(always)]
pub fn tile<S: Simd, const H: usize>(
    simd: S,
    x: [&[f32]; H],
    w: &[[S::f32s; TILE_VECTORS]],
    meanwhile: impl Fn(usize),
) -> [[S::f32s; TILE_VECTORS]; H] {
    let mut sums = [[simd.splat_f32s(0.0); TILE_VECTORS]; H];
    for (stride, w) in w.chunks(STRIDE).enumerate() {
        let mut part = [const { &[] as &[f32] }; H];
        for row in 0..H {
            // Cut here, so that the loop need not check.
            part[row] = &x[row][stride * STRIDE..][..w.len()];
        }
        for (k, w) in w.iter().enumerate() {
            for row in 0..H {
                let x = simd.splat_f32s(part[row][k]);
                for vector in 0..TILE_VECTORS {
                    sums[row][vector] = simd.mul_add_e_f32s(x, w[vector], sums[row][vector]);
                }
            }
        }
        meanwhile(stride);
    }
    sums
}
