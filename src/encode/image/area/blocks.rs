//! Reduction by integers: every output pixel is the mean of a block of input pixels.

use multiversion::multiversion;

use super::super::CHANNELS;
use super::super::view::{Size, View, Window};
use super::{OutputRows, round_half_even};

/// Samples added at once: a pixel and its right neighbour's first sample.
const LANES: usize = 4;

#[derive(Clone, Debug)]
pub(super) struct BlockReducer {
    window: Window,
    block: Block,
    /// Column sums over the rows of one row of blocks, `[canvas width, 3]` and a spare pixel; zero outside the
    /// window.
    sums: Vec<u16>,
    /// First sample of each block of a row. A table keeps the compiler from gathering one lane per block.
    starts: Vec<usize>,
    /// Sums of one row of blocks, `[blocks, 3]` and a spare pixel.
    totals: Vec<u32>,
}

/// Input pixels per output pixel.
#[derive(Clone, Copy, Debug)]
struct Block {
    width: usize,
    height: usize,
}

impl BlockReducer {
    /// Reduces `canvas` by `width` and `height`, its integer ratios to the target.
    pub fn new(canvas: Size, window: Window, width: usize, height: usize) -> Self {
        Self {
            window,
            block: Block { width, height },
            sums: vec![0; CHANNELS * (canvas.width + 1)],
            starts: (0..canvas.width / width).map(|block| CHANNELS * width * block).collect(),
            totals: vec![0; CHANNELS * (canvas.width / width + 1)],
        }
    }

    pub fn run(&mut self, picture: View<'_>, rows: OutputRows<'_>) {
        let bottom = self.window.top + self.window.size.height;
        for (row, out) in rows.enumerate() {
            let first = (row * self.block.height).max(self.window.top);
            let end = ((row + 1) * self.block.height).min(bottom);
            if first >= end {
                out.fill(0);
                continue;
            }
            let from = CHANNELS * self.window.left;
            let sums = &mut self.sums[from..][..CHANNELS * self.window.size.width];
            sums.fill(0);
            for y in first..end {
                add_row(picture.row(y - self.window.top), sums);
            }
            total_row(&self.sums, self.block.width, &self.starts, &mut self.totals);
            mean_row(&self.totals, self.block, out);
        }
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn add_row(row: &[u8], sums: &mut [u16]) {
    for (sum, sample) in sums.iter_mut().zip(row) {
        *sum += u16::from(*sample);
    }
}

/// Sums of the blocks whose column sums are `sums`, each of `width` columns from its sample in `starts` on.
#[multiversion(targets("x86_64+avx+avx2"))]
fn total_row(sums: &[u16], width: usize, starts: &[usize], totals: &mut [u32]) {
    with_known_count!(
        width,
        [1, 2, 3, 4, 5, 6, 7, 8],
        WIDTH => total_row_with(WIDTH, sums, starts, totals),
        total_row_with(width, sums, starts, totals)
    )
}

#[inline(always)]
fn total_row_with(width: usize, sums: &[u16], starts: &[usize], totals: &mut [u32]) {
    for (output, &start) in starts.iter().enumerate() {
        let columns = &sums[start..][..CHANNELS * width + 1];
        let mut total = [0; LANES];
        for column in 0..width {
            let pixel = &columns[CHANNELS * column..][..LANES];
            for lane in 0..LANES {
                total[lane] += u32::from(pixel[lane]);
            }
        }
        totals[CHANNELS * output..][..LANES].copy_from_slice(&total);
    }
}

/// Means of blocks of which `totals` are the sums; f32 holds these exactly.
#[multiversion(targets("x86_64+avx+avx2"))]
fn mean_row(totals: &[u32], block: Block, means: &mut [u8]) {
    let scale = 1.0 / (block.width * block.height) as f32;
    // The reference rounds the mean of 2 x 2 pixels half up, other means half to even. Quarters that are an
    // eighth too large round half up.
    let nudge = if block.width == 2 && block.height == 2 { 0.125 } else { 0.0 };
    for (mean, total) in means.iter_mut().zip(totals) {
        *mean = round_half_even(*total as i32 as f32 * scale + nudge);
    }
}

#[cfg(test)]
mod tests {
    use super::super::AreaResizer;
    use super::*;

    fn reduced(width: usize, height: usize, target: Size, rgb: &[u8]) -> Vec<u8> {
        let source = Size { width, height };
        let mut out = vec![0; target.bytes()];
        AreaResizer::new(source, Window::whole(source), target)
            .run(View::new(rgb, source), &mut out);
        out
    }

    #[test]
    fn blocks_of_two_by_two_round_halves_up() {
        let rgb = [0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0, 0];
        assert_eq!(reduced(2, 2, Size::square(1), &rgb), [1, 1, 0]);
        let rgb = [2, 0, 0, 3, 0, 0, 2, 0, 0, 3, 0, 0];
        assert_eq!(reduced(2, 2, Size::square(1), &rgb)[0], 3);
    }

    #[test]
    fn other_blocks_round_halves_to_even() {
        let one_by_two = Size { width: 1, height: 1 };
        assert_eq!(reduced(1, 2, one_by_two, &[2, 1, 0, 3, 2, 1]), [2, 2, 0]);
        // 8 of 16 make one half, 24 make one and a half.
        let mut rgb = [0; 48];
        for pixel in rgb.chunks_exact_mut(3).take(8) {
            pixel.copy_from_slice(&[1, 3, 0]);
        }
        assert_eq!(reduced(4, 4, Size::square(1), &rgb), [0, 2, 0]);
    }

    #[test]
    fn the_largest_blocks_do_not_overflow() {
        let rgb = vec![255; 3 * 146 * 146];
        assert_eq!(reduced(146, 146, Size::square(1), &rgb), [255; 3]);
    }
}
