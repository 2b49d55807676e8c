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
    /// One row of means, and a spare pixel.
    means: Vec<u8>,
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
            means: vec![0; CHANNELS * (canvas.width / width + 1)],
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
            mean_row(&self.sums, self.block, &mut self.means);
            out.copy_from_slice(&self.means[..out.len()]);
        }
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn add_row(row: &[u8], sums: &mut [u16]) {
    for (sum, sample) in sums.iter_mut().zip(row) {
        *sum += u16::from(*sample);
    }
}

/// Means of the blocks whose column sums are `sums`.
#[multiversion(targets("x86_64+avx+avx2"))]
fn mean_row(sums: &[u16], block: Block, means: &mut [u8]) {
    let area = block.width * block.height;
    let halves_up = block.width == 2 && block.height == 2;
    let scale = 1.0 / area as f32;
    let outputs = means.len() / CHANNELS - 1;
    for output in 0..outputs {
        let columns = &sums[CHANNELS * block.width * output..][..CHANNELS * block.width + 1];
        let mut total = [0u32; LANES];
        for pixel in columns.windows(LANES).step_by(CHANNELS) {
            for lane in 0..LANES {
                total[lane] += u32::from(pixel[lane]);
            }
        }
        let mut mean = [0u8; LANES];
        for lane in 0..LANES {
            mean[lane] = if halves_up {
                ((total[lane] + 2) >> 2) as u8
            } else {
                round_half_even(total[lane] as f32 * scale)
            };
        }
        means[CHANNELS * output..][..LANES].copy_from_slice(&mean);
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
