//! Pictures cut into the patches that the Qwen3-VL vision tower reads.

use multiversion::multiversion;

use super::CHANNELS;
use super::normalize::normalized;
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
    /// One row of patches as planes, `[3, patch, width]`.
    planes: Vec<u8>,
}

impl Patcher {
    /// Writes `picture`, normalised to -1 ..= 1, as rows of patches, `[patches, 3, times, patch, patch]`.
    ///
    /// Blocks are in raster order, and so are the patches of a block (spec n17 section 4). Both sides of the
    /// picture are multiples of [`BLOCK`], and `out` has exactly the length.
    pub fn run(&mut self, picture: View<'_>, out: &mut [f32]) {
        let width = picture.width();
        debug_assert_eq!(out.len(), TIMES * CHANNELS * width * picture.height());
        self.planes.resize(CHANNELS * PATCH * width, 0);
        let block_row = TIMES * CHANNELS * BLOCK * width;
        for (block_y, blocks) in out.chunks_exact_mut(block_row).enumerate() {
            for inner_y in 0..MERGE {
                let top = block_y * BLOCK + inner_y * PATCH;
                self.take_planes(picture, top);
                // Patches are written from end to end: the output is far larger than any cache.
                let blocks = blocks.chunks_exact_mut(MERGE * MERGE * PATCH_VALUES);
                for (block_x, block) in blocks.enumerate() {
                    let patches = &mut block[inner_y * MERGE * PATCH_VALUES..];
                    let patches = patches.chunks_exact_mut(PATCH_VALUES).take(MERGE);
                    for (inner_x, patch) in patches.enumerate() {
                        let left = block_x * BLOCK + inner_x * PATCH;
                        write_patch(&self.planes, width, left, patch);
                    }
                }
            }
        }
    }

    /// Splits the rows of one row of patches, from `top` on, into planes.
    fn take_planes(&mut self, picture: View<'_>, top: usize) {
        let width = picture.width();
        let (red, rest) = self.planes.split_at_mut(PATCH * width);
        let (green, blue) = rest.split_at_mut(PATCH * width);
        for y in 0..PATCH {
            let row = y * width..(y + 1) * width;
            let planes = [&mut red[row.clone()], &mut green[row.clone()], &mut blue[row]];
            split(picture.row(top + y), planes);
        }
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn split(row: &[u8], planes: [&mut [u8]; CHANNELS]) {
    let [red, green, blue] = planes;
    let samples = red.iter_mut().zip(green).zip(blue);
    for (pixel, ((red, green), blue)) in row.chunks_exact(CHANNELS).zip(samples) {
        (*red, *green, *blue) = (pixel[0], pixel[1], pixel[2]);
    }
}

/// Writes the patch whose left side is at `left`, `[3, times, patch, patch]`.
#[multiversion(targets("x86_64+avx+avx2"))]
fn write_patch(planes: &[u8], width: usize, left: usize, patch: &mut [f32]) {
    const ONE_TIME: usize = PATCH * PATCH;
    let channels = planes.chunks_exact(PATCH * width);
    for (plane, times) in channels.zip(patch.chunks_exact_mut(TIMES * ONE_TIME)) {
        let (first, others) = times.split_at_mut(ONE_TIME);
        for (row, out) in plane.chunks_exact(width).zip(first.chunks_exact_mut(PATCH)) {
            for (out, sample) in out.iter_mut().zip(&row[left..left + PATCH]) {
                *out = normalized(*sample);
            }
        }
        for other in others.chunks_exact_mut(ONE_TIME) {
            other.copy_from_slice(first);
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
        let rgb: Vec<u8> = (0..size.bytes()).map(|i| ((i * 7919) >> 3) as u8).collect();
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
