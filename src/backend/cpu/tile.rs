//! Products of f32 rows with a few columns of weights: the inside of every product with the checkpoint.
//!
//! The lanes of a vector are columns of the product. So every sum is taken in the order of `k`, in one lane: it does not
//! depend on the vector width of the machine, as long as it multiplies and adds in one step, on the shape of a tile, on
//! the number of rows or on threads.

use std::hint::black_box;

use pulp::Simd;

/// Vectors of columns in a tile.
pub const TILE_VECTORS: usize = 3;

/// Steps along `k` after which a tile does something else for a moment.
pub const STEPS: usize = 4;

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
/// `meanwhile` after every [`STEPS`] steps, with the number of calls before.
///
/// Everything here is arranged so that the sums never leave the registers and that the innermost loop does nothing but
/// load, multiply and add: an instruction for an address takes the place of a product.
#[inline(always)]
pub fn tile<S: Simd, const H: usize>(
    simd: S,
    x: [&[f32]; H],
    w: &[[S::f32s; TILE_VECTORS]],
    meanwhile: impl Fn(usize),
) -> [[S::f32s; TILE_VECTORS]; H] {
    assert!(x.iter().all(|x| x.len() == w.len()), "tile: rows and weights differ in length");
    // The compiler would derive all rows from the first one, by additions in the innermost loop.
    let x = black_box(x);
    let mut sums = [[simd.splat_f32s(0.0); TILE_VECTORS]; H];
    let (groups, rest) = w.as_chunks();
    for (group, [w0, w1, w2, w3]) in groups.iter().enumerate() {
        let k = group * STEPS;
        // SAFETY: `k + 3` is below the length of `w`, which is that of every row.
        unsafe {
            step(simd, &x, k, w0, &mut sums);
            step(simd, &x, k + 1, w1, &mut sums);
            step(simd, &x, k + 2, w2, &mut sums);
            step(simd, &x, k + 3, w3, &mut sums);
        }
        meanwhile(group);
    }
    for (k, w) in (groups.len() * STEPS..).zip(rest) {
        // SAFETY: as above.
        unsafe { step(simd, &x, k, w, &mut sums) };
    }
    sums
}

/// Adds the products of one `k`, which has to be within every row.
#[inline(always)]
unsafe fn step<S: Simd, const H: usize>(
    simd: S,
    x: &[&[f32]; H],
    k: usize,
    w: &[S::f32s; TILE_VECTORS],
    sums: &mut [[S::f32s; TILE_VECTORS]; H],
) {
    for row in 0..H {
        // SAFETY: the caller says that `k` is within the row.
        let x = simd.splat_f32s(unsafe { *x[row].get_unchecked(k) });
        for vector in 0..TILE_VECTORS {
            sums[row][vector] = simd.mul_add_e_f32s(x, w[vector], sums[row][vector]);
        }
    }
}
