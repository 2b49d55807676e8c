//! Pictures cut into the patches that the Qwen3-VL vision tower reads.

use super::CHANNELS;
use super::normalize::split_row;
use super::view::View;

/// Side of a patch in pixels.
pub const PATCH: usize = 16;
/// Patches along each side of a block, which becomes one token.
pub const MERGE: usize = 2;
/// How often a picture is repeated along the time axis of a patch.
pub const TIMES: usize = 2;
/// Side of a block in pixels; sides of pictures are multiples of it.
pub const BLOCK: usize = PATCH * MERGE;
/// Values of one patch, `[3, times, patch, patch]`.
pub const PATCH_VALUES: usize = CHANNELS * TIMES * PATCH * PATCH;

/// Cuts pictures of one width into patches.
#[derive(Clone, Debug, Default)]
pub(super) struct Patcher {
    /// One row of pixels as planes, `[3, width]`.
    planes: Vec<f32>,
}

impl Patcher {
    /// Writes `picture`, normalised to -1 ..= 1, as rows of patches, `[patches, 3, times, patch, patch]`.
    ///
    /// Blocks are in raster order, and so are the patches of a block (spec n17 section 4). Both sides of the
    /// picture are multiples of [`BLOCK`], and `out` has exactly the length.
    pub fn run(&mut self, picture: View<'_>, out: &mut [f32]) {
        let width = picture.width();
        debug_assert_eq!(out.len(), TIMES * CHANNELS * width * picture.height());
        self.planes.resize(CHANNELS * width, 0.0);
        let block_row = TIMES * CHANNELS * BLOCK * width;
        for (y, out) in out.chunks_exact_mut(block_row).enumerate() {
            for row in 0..BLOCK {
                let (red, rest) = self.planes.split_at_mut(width);
                let (green, blue) = rest.split_at_mut(width);
                split_row(picture.row(y * BLOCK + row), red, green, blue);
                scatter(&self.planes, width, row, out);
            }
        }
    }
}

/// Writes one row of pixels, given as planes, into the patches of its row of blocks; `row` counts within the block.
fn scatter(planes: &[f32], width: usize, row: usize, out: &mut [f32]) {
    let (inner, y) = (row / PATCH, row % PATCH);
    for (column, patches) in out.chunks_exact_mut(MERGE * MERGE * PATCH_VALUES).enumerate() {
        for side in 0..MERGE {
            let patch = &mut patches[(MERGE * inner + side) * PATCH_VALUES..][..PATCH_VALUES];
            let x = column * BLOCK + side * PATCH;
            for channel in 0..CHANNELS {
                let pixels = &planes[channel * width + x..][..PATCH];
                for time in 0..TIMES {
                    let at = ((channel * TIMES + time) * PATCH + y) * PATCH;
                    patch[at..at + PATCH].copy_from_slice(pixels);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::image::view::Size;

    #[test]
    fn every_value_stands_where_the_formula_puts_it() {
        let size = Size { width: 3 * BLOCK, height: 2 * BLOCK };
        let rgb: Vec<u8> = (0..size.bytes()).map(|i| (i * 7919 >> 3) as u8).collect();
        let mut out = vec![f32::NAN; TIMES * size.bytes()];
        Patcher::default().run(View::new(&rgb, size), &mut out);
        let mut values = out.iter();
        for block in 0..6 {
            for patch in 0..4 {
                let top = block / 3 * 32 + patch / 2 * 16;
                let left = block % 3 * 32 + patch % 2 * 16;
                for channel in 0..3 {
                    for pixel in (0..256).chain(0..256) {
                        let (y, x) = (top + pixel / 16, left + pixel % 16);
                        let sample = rgb[3 * (y * size.width + x) + channel];
                        let expected = (f32::from(sample) - 127.5) / 127.5;
                        assert_eq!(*values.next().unwrap(), expected);
                    }
                }
            }
        }
        assert!(values.next().is_none());
    }
}
