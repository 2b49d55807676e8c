//! Dealing a result out to the threads of the current pool.

use pulp::{Arch, Simd, WithSimd};

use super::mat::MatMut;

/// Elements below which a block of rows is not cut further: less work than handing it over costs.
const MIN_ELEMENTS: usize = 16 * 1024;

/// Calls `work` with the first column and the view of each block of `width` columns, in parallel.
pub fn for_column_blocks(
    out: MatMut<'_>,
    width: usize,
    work: &(impl Fn(usize, MatMut<'_>) + Sync),
) {
    column_blocks(out, 0, width, work);
}

fn column_blocks(
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
        || column_blocks(left, first, width, work),
        || column_blocks(right, first + middle, width, work),
    );
}

/// Calls `work` with the first row and the view of each block of `height` rows, in parallel.
pub fn for_row_blocks(out: MatMut<'_>, height: usize, work: &(impl Fn(usize, MatMut<'_>) + Sync)) {
    row_blocks(out, 0, height, work);
}

fn row_blocks(
    out: MatMut<'_>,
    first: usize,
    height: usize,
    work: &(impl Fn(usize, MatMut<'_>) + Sync),
) {
    let blocks = out.rows().div_ceil(height);
    if blocks <= 1 {
        return work(first, out);
    }
    let middle = blocks / 2 * height;
    let (upper, lower) = out.split_rows(middle);
    rayon::join(
        || row_blocks(upper, first, height, work),
        || row_blocks(lower, first + middle, height, work),
    );
}

/// Calls `work` with the number and the values of each row, in parallel where that pays, as vector code.
pub fn for_rows(out: MatMut<'_>, work: impl Fn(usize, &mut [f32]) + Sync) {
    let height = MIN_ELEMENTS.div_ceil(out.cols().max(1));
    for_row_blocks(out, height, &|first, mut out| {
        vectorized(
            #[inline(always)]
            || {
                for row in 0..out.rows() {
                    work(first + row, out.row_mut(row));
                }
            },
        );
    });
}

/// Runs `work` compiled for the vectors of this processor.
///
/// Closures handed to `pulp` as they are get called through a function of their own, which is compiled for the oldest
/// processors, without fused multiply-add.
pub fn vectorized(work: impl FnMut()) {
    struct Vectorized<F>(F);

    impl<F: FnMut()> WithSimd for Vectorized<F> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(mut self, _simd: S) {
            (self.0)();
        }
    }

    Arch::new().dispatch(Vectorized(work));
}
