//! From 8-bit RGB to planes of f32 in -1 ..= 1.

use multiversion::multiversion;

use super::CHANNELS;
use super::view::View;

/// 1/255 with its low mantissa bits cleared: times an odd number below 256 it is exact in f32.
const UNIT_HIGH: f32 = f32::from_bits(0x3b80_8000);
/// What `UNIT_HIGH` lacks.
const UNIT_LOW: f32 = (1.0 / 255.0 - UNIT_HIGH as f64) as f32;

/// `(sample - 127.5) / 127.5` in f32, without the division: (2 sample - 255) / 255 in two exact parts, rounded
/// once by the addition. A test compares all 256 values.
#[inline(always)]
fn normalized(sample: u8) -> f32 {
    let odd = (2 * i32::from(sample) - 255) as f32;
    odd * UNIT_HIGH + odd * UNIT_LOW
}

/// Writes `picture` as planes, `[3, height, width]`; `out` has exactly that length.
pub(super) fn to_planes(picture: View<'_>, out: &mut [f32]) {
    let (width, height) = (picture.width(), picture.height());
    let (red, rest) = out.split_at_mut(width * height);
    let (green, blue) = rest.split_at_mut(width * height);
    for y in 0..height {
        let row = y * width..(y + 1) * width;
        split_row(picture.row(y), &mut red[row.clone()], &mut green[row.clone()], &mut blue[row]);
    }
}

/// Splits a row of interleaved pixels into normalised planes, each as long as the row has pixels.
#[multiversion(targets("x86_64+avx+avx2"))]
pub(super) fn split_row(row: &[u8], red: &mut [f32], green: &mut [f32], blue: &mut [f32]) {
    let planes = red.iter_mut().zip(green).zip(blue);
    for (pixel, ((red, green), blue)) in row.chunks_exact(CHANNELS).zip(planes) {
        *red = normalized(pixel[0]);
        *green = normalized(pixel[1]);
        *blue = normalized(pixel[2]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::image::view::Size;

    #[test]
    fn equals_the_division_for_every_sample() {
        for sample in 0..=255u8 {
            let reference = (f32::from(sample) - 127.5) / 127.5;
            assert_eq!(normalized(sample).to_bits(), reference.to_bits(), "sample {sample}");
        }
    }

    #[test]
    fn channels_become_planes() {
        let rgb = [0, 255, 51, 255, 0, 204];
        let mut out = [9.0; 6];
        to_planes(View::new(&rgb, Size { width: 2, height: 1 }), &mut out);
        assert_eq!(out, [-1.0, 1.0, 1.0, -1.0, -0.6, 0.6]);
    }
}
