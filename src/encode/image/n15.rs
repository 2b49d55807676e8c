//! The frame chain of N1.5 (spec n15 section 4).

use multiversion::multiversion;

use super::CHANNELS;
use super::antialias::AntialiasResizer;
use super::normalize::to_planes;
use super::view::{Size, View, Window};
use crate::contract::Frame;

/// Side of the encoded picture in pixels. Every data config of the reference asks for it.
pub const SIDE: usize = 224;
/// Values of one encoded frame, `[3, SIDE, SIDE]`.
pub const OUTPUT_LEN: usize = CHANNELS * SIDE * SIDE;

/// Part of the frame's height and width that the centre crop keeps. Every data config of the reference asks for it.
const CROP_FRACTION: f64 = 0.95;

/// What the steps made of the frame that was encoded last (zeros before the first).
#[derive(Clone, Copy)]
pub struct Stages<'a> {
    /// The resized crop, `[SIDE, SIDE, 3]`, values from 0 to 1.
    pub resized: &'a [f32],
    /// The same in 8 bits, rounded down.
    pub u8: View<'a>,
}

/// Turns camera frames into the pixels that the N1.5 vision tower reads, bit for bit as the reference does: centre
/// crop, antialiased bilinear resize in f32, 8 bits rounded down, normalisation.
///
/// Tables and buffers are kept from frame to frame and rebuilt when the frame size changes, so use one chain per
/// camera.
#[derive(Clone, Debug)]
pub struct FrameChain {
    /// Built for the size of the frame encoded last.
    resizer: Option<(Size, Window, AntialiasResizer)>,
    resized: Vec<f32>,
    u8: Vec<u8>,
}

impl Default for FrameChain {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameChain {
    pub fn new() -> Self {
        Self { resizer: None, resized: vec![0.0; OUTPUT_LEN], u8: vec![0; OUTPUT_LEN] }
    }

    /// Encodes `frame` into `out`, `[3, SIDE, SIDE]`, values from -1 to 1.
    pub fn encode(&mut self, frame: &Frame, out: &mut [f32; OUTPUT_LEN]) {
        to_planes(self.picture(frame), out);
    }

    /// The picture that the vision tower sees, before normalisation.
    pub fn picture(&mut self, frame: &Frame) -> View<'_> {
        let size = Size::of(frame);
        let (_, crop, resizer) = match &mut self.resizer {
            Some(built) if built.0 == size => built,
            slot => {
                let crop = centre_crop(size);
                let resizer = AntialiasResizer::new(crop.size, Size::square(SIDE));
                slot.insert((size, crop, resizer))
            }
        };
        resizer.run(View::new(frame.rgb(), size).crop(*crop), &mut self.resized);
        round_down(&self.resized, &mut self.u8);
        View::new(&self.u8, Size::square(SIDE))
    }

    /// The values between the steps.
    pub fn stages(&self) -> Stages<'_> {
        Stages { resized: &self.resized, u8: View::new(&self.u8, Size::square(SIDE)) }
    }
}

/// 0 ..= 1 to 8 bits.
#[multiversion(targets("x86_64+avx+avx2"))]
fn round_down(values: &[f32], samples: &mut [u8]) {
    for (sample, value) in samples.iter_mut().zip(values) {
        *sample = to_8_bits(*value);
    }
}

/// Rounds down, as the reference does. Flat regions lose a level here and there: the weights of a resize sum to one
/// only up to rounding, and 15.9999 becomes 15.
///
/// `value` is from 0 to 1, up to rounding. A cast would do the same, but is not turned into vector code.
#[inline(always)]
fn to_8_bits(value: f32) -> u8 {
    /// At this size the spacing of f32 is 1, so that the addition rounds to the nearest integer.
    const SPACING_ONE: f32 = (1 << 23) as f32;
    let scaled = value * 255.0;
    let nearest = scaled + SPACING_ONE;
    let rounded_up = nearest - SPACING_ONE > scaled;
    (nearest.to_bits() - u32::from(rounded_up)) as u8
}

/// The crop that the reference takes out of a frame; halves of an odd remainder round to the even pixel.
fn centre_crop(frame: Size) -> Window {
    let kept = |side: usize| (side as f64 * CROP_FRACTION) as usize;
    let offset = |side: usize| ((side - kept(side)) as f64 / 2.0).round_ties_even() as usize;
    Window {
        left: offset(frame.width),
        top: offset(frame.height),
        size: Size { width: kept(frame.width), height: kept(frame.height) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_remainders_round_to_the_even_pixel() {
        let crop = |width, height| {
            let window = centre_crop(Size { width, height });
            (window.size.width, window.size.height, window.left, window.top)
        };
        assert_eq!(crop(256, 256), (243, 243, 6, 6));
        assert_eq!(crop(320, 180), (304, 171, 8, 4));
        // 17 / 2 and 51 / 2.
        assert_eq!(crop(333, 1001), (316, 950, 8, 26));
    }

    #[test]
    fn the_kept_part_is_exact_for_every_side() {
        for side in 64..=20_000 {
            let kept = centre_crop(Size::square(side)).size.width;
            assert_eq!(kept, 95 * side / 100, "{side}");
        }
    }

    #[test]
    fn values_are_rounded_down() {
        for (value, expected) in [(0.0, 0), (0.999_99, 254), (1.0, 255), (15.999 / 255.0, 15)] {
            assert_eq!(to_8_bits(value), expected, "{value}");
        }
        for level in 0..=255u8 {
            let exact = f32::from(level) / 255.0;
            for bits in exact.to_bits().saturating_sub(3)..=exact.to_bits() + 3 {
                let value = f32::from_bits(bits);
                assert_eq!(to_8_bits(value), (value * 255.0) as u8, "{value}");
            }
        }
    }
}
