//! The frame chain of N1.6 (spec n16 section 4).

use super::CHANNELS;
use super::area::AreaResizer;
use super::letterbox::Letterbox;
use super::normalize::to_planes;
pub use super::params::{FrameChainError, FrameChainParams, SHORTEST_EDGE};
use super::pillow::{BicubicResizer, Rounding};
pub use super::stages::Stages;
use super::view::{Size, View, Window};
use crate::contract::Frame;

/// Sides that the vision tower takes are multiples of this: two patches, which become one token.
const SIDE_FACTOR: usize = 28;
/// Longest side before the pixel limits apply.
const MAX_SIDE: usize = 7000;
const MIN_PIXELS: usize = 4 * SIDE_FACTOR * SIDE_FACTOR;
const MAX_PIXELS: usize = 4096 * SIDE_FACTOR * SIDE_FACTOR;

/// Turns camera frames into the pixels that the N1.6 vision tower reads, bit for bit as the reference does:
/// letterbox, area resize, centre crop, area resize, bicubic resize to whole patches, normalisation.
///
/// Tables and buffers are kept from frame to frame and rebuilt when the frame size changes, so use one chain per
/// camera.
#[derive(Clone, Debug)]
pub struct FrameChain {
    edge: Size,
    crop: Window,
    output: Size,
    /// Built for the size of the frame encoded last.
    first: Option<(Size, AreaResizer)>,
    second: AreaResizer,
    third: BicubicResizer,
    resize1: Vec<u8>,
    resize2: Vec<u8>,
    u8: Vec<u8>,
}

impl FrameChain {
    /// Builds what does not depend on the size of the frames.
    ///
    /// # Errors
    /// A `shortest_edge` outside [`SHORTEST_EDGE`], or a `crop_fraction` outside 0 (excluded) to 1.
    pub fn new(params: FrameChainParams) -> Result<Self, FrameChainError> {
        let FrameChainParams { shortest_edge, crop_fraction } = params;
        params.check()?;
        let edge = Size::square(shortest_edge as usize);
        let cropped = (f64::from(shortest_edge) * crop_fraction) as usize;
        let crop = Window::centred(Size::square(cropped.max(1)), edge);
        let output = Size::square(vision_side(edge.width));
        Ok(Self {
            edge,
            crop,
            output,
            first: None,
            second: AreaResizer::new(crop.size, Window::whole(crop.size), edge),
            third: BicubicResizer::new(edge, output, Rounding::Pillow),
            resize1: vec![0; edge.bytes()],
            resize2: vec![0; edge.bytes()],
            u8: vec![0; output.bytes()],
        })
    }

    /// Side of the encoded picture in pixels: 252 for the released checkpoint.
    pub fn output_side(&self) -> usize {
        self.output.width
    }

    /// Values of one encoded frame, `3 * side * side`.
    pub fn output_len(&self) -> usize {
        CHANNELS * self.output.width * self.output.height
    }

    /// Encodes `frame` into `out`, `[3, side, side]`, values from -1 to 1.
    ///
    /// # Errors
    /// `out` is not [`FrameChain::output_len`] long.
    pub fn encode(&mut self, frame: &Frame, out: &mut [f32]) -> Result<(), FrameChainError> {
        if out.len() != self.output_len() {
            return Err(FrameChainError::OutputLength {
                side: self.output_side(),
                expected: self.output_len(),
                found: out.len(),
            });
        }
        to_planes(self.picture(frame), out);
        Ok(())
    }

    /// The picture that the vision tower sees, before normalisation.
    pub fn picture(&mut self, frame: &Frame) -> View<'_> {
        self.picture_of(View::new(frame.rgb(), Size::of(frame)))
    }

    fn picture_of(&mut self, frame: View<'_>) -> View<'_> {
        let size = frame.size();
        let first = match &mut self.first {
            Some((built_for, first)) if *built_for == size => first,
            slot => &mut slot.insert((size, letterboxed(size, self.edge))).1,
        };
        first.run(frame, &mut self.resize1);
        self.second.run(View::new(&self.resize1, self.edge).crop(self.crop), &mut self.resize2);
        self.third.run(View::new(&self.resize2, self.edge), &mut self.u8);
        View::new(&self.u8, self.output)
    }

    /// The pictures between the steps.
    pub fn stages(&self) -> Stages<'_> {
        let resize1 = View::new(&self.resize1, self.edge);
        Stages {
            resize1,
            crop: resize1.crop(self.crop),
            resize2: View::new(&self.resize2, self.edge),
            u8: View::new(&self.u8, self.output),
        }
    }
}

/// The first resize, of the letterboxed frame.
fn letterboxed(frame: Size, edge: Size) -> AreaResizer {
    let letterbox = Letterbox::around(frame);
    AreaResizer::new(letterbox.canvas, letterbox.window, edge)
}

/// Side that the reference resizes a square picture to: the nearest multiple of [`SIDE_FACTOR`], shrunk or grown
/// where the picture would have too many or too few pixels.
fn vision_side(side: usize) -> usize {
    let factor = SIDE_FACTOR as f64;
    let nearest = (side as f64 / factor).round_ties_even() as usize * SIDE_FACTOR;
    let nearest = nearest.clamp(SIDE_FACTOR, MAX_SIDE);
    let pixels = (nearest * nearest) as f64;
    if nearest * nearest > MAX_PIXELS {
        let excess = (pixels / MAX_PIXELS as f64).sqrt();
        (nearest as f64 / excess / factor).floor() as usize * SIDE_FACTOR
    } else if nearest * nearest < MIN_PIXELS {
        let growth = (MIN_PIXELS as f64 / (side * side) as f64).sqrt();
        (side as f64 * growth / factor).ceil() as usize * SIDE_FACTOR
    } else {
        nearest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_whole_tokens() {
        for (side, expected) in [
            (256, 252),
            (224, 224),
            (238, 224),
            (239, 252),
            (265, 252),
            (266, 280),
            (294, 280),
            (42, 56),
        ] {
            assert_eq!(vision_side(side), expected, "{side}");
        }
    }

    #[test]
    fn sides_stay_within_the_pixel_limits() {
        for side in SHORTEST_EDGE {
            let result = vision_side(side as usize);
            assert_eq!(result % SIDE_FACTOR, 0);
            assert!((MIN_PIXELS..=MAX_PIXELS).contains(&(result * result)), "{side} -> {result}");
        }
    }

    #[test]
    fn the_released_checkpoint_crops_243_pixels() {
        let chain = FrameChain::new(FrameChainParams::default()).unwrap();
        assert_eq!(chain.crop, Window { left: 6, top: 6, size: Size::square(243) });
        assert_eq!(chain.output_side(), 252);
    }

    #[test]
    fn case_20_values_outside_the_rules_are_refused() {
        let build = |shortest_edge, crop_fraction| {
            FrameChain::new(FrameChainParams { shortest_edge, crop_fraction }).map(|_| ())
        };
        assert_eq!(build(27, 0.95), Err(FrameChainError::ShortestEdge { found: 27 }));
        assert_eq!(build(4096, 0.95), Err(FrameChainError::ShortestEdge { found: 4096 }));
        for found in [0.0, -0.5, 1.01, f64::INFINITY] {
            assert_eq!(build(256, found), Err(FrameChainError::CropFraction { found }));
        }
        let text = build(256, f64::NAN).unwrap_err().to_string();
        assert_eq!(text, "crop_fraction is NaN; it must be above 0 and at most 1");
    }

    #[test]
    fn a_buffer_of_the_wrong_length_is_refused() {
        let mut chain = FrameChain::new(FrameChainParams::default()).unwrap();
        let frame = Frame::new(64, 64, vec![0; 3 * 64 * 64]).unwrap();
        let error = chain.encode(&frame, &mut [0.0; 7]).unwrap_err();
        assert_eq!(error, FrameChainError::OutputLength { side: 252, expected: 190_512, found: 7 });
    }

    #[test]
    fn equals_the_reference_on_a_frame_below_the_accepted_sizes() {
        use sha2::{Digest, Sha256};

        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/golden");
        if !std::path::Path::new(golden).is_dir() {
            eprintln!("skipped: ../shared/golden is not here");
            return;
        }
        let read = |kind| {
            let path = format!("{golden}/n16/tiny/chain/65x63.{kind}.png");
            image::open(path).unwrap().to_rgb8().into_raw()
        };
        let mut chain = FrameChain::new(FrameChainParams::default()).unwrap();
        let mut pixels = vec![0.0; chain.output_len()];
        let rgb = read("in");
        to_planes(chain.picture_of(View::new(&rgb, Size { width: 65, height: 63 })), &mut pixels);
        assert!(chain.u8 == read("out"));
        let bytes: Vec<u8> = pixels.iter().flat_map(|value| value.to_le_bytes()).collect();
        let digest: String =
            Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(digest, "b762c29772a7bc261997f89b3c331a51facb8cb5db3edd03968e8398451f13f4");
    }
}
