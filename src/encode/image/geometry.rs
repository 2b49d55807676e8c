//! The sizes that a frame goes through in the chain of N1.7.

use super::letterbox::Letterbox;
use super::params::FrameChainParams;
use super::patches::{BLOCK, PATCH};
use super::view::{Size, Window};

/// Pixels that a finished picture has at least and at most.
const MIN_PIXELS: usize = 65_536;
const MAX_PIXELS: usize = 16_777_216;

/// Every size between a frame and its finished picture (spec n17 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    /// What is resized first: the frame, on a black square where it is letterboxed.
    pub letterbox: Letterbox,
    pub resize1: Size,
    pub crop: Window,
    pub resize2: Size,
    /// The finished picture: whole blocks.
    pub output: Size,
}

impl Geometry {
    /// `frame` is at most 64 times as long as wide, far from the 200 that the reference refuses.
    pub fn new(frame: Size, params: FrameChainParams, letterbox: bool) -> Self {
        let letterbox =
            if letterbox { Letterbox::around(frame) } else { Letterbox::without_border(frame) };
        let edge = params.shortest_edge as usize;
        let resize1 = with_shorter_side(letterbox.canvas, edge);
        let part = |side: usize| ((side as f64 * params.crop_fraction) as usize).max(1);
        let cropped = Size { width: part(resize1.width), height: part(resize1.height) };
        let resize2 = with_shorter_side(cropped, edge);
        Self {
            letterbox,
            resize1,
            crop: Window::centred(cropped, resize1),
            resize2,
            output: whole_blocks(resize2),
        }
    }

    /// Rows and columns of patches.
    pub fn grid(&self) -> [usize; 2] {
        [self.output.height / PATCH, self.output.width / PATCH]
    }
}

/// The size with the shorter side at `edge` and the ratio kept; half pixels go to the even neighbour.
fn with_shorter_side(size: Size, edge: usize) -> Size {
    let scale = edge as f64 / size.width.min(size.height) as f64;
    let scaled = |side: usize| (side as f64 * scale).round_ties_even() as usize;
    Size { width: scaled(size.width), height: scaled(size.height) }
}

/// The nearest size of whole blocks, shrunk or grown where the picture would have too many or too few pixels.
fn whole_blocks(size: Size) -> Size {
    let block = BLOCK as f64;
    let nearest = |side: usize| (side as f64 / block).round_ties_even() as usize * BLOCK;
    let blocks = Size { width: nearest(size.width), height: nearest(size.height) };
    let pixels = (size.width * size.height) as f64;
    if blocks.width * blocks.height > MAX_PIXELS {
        let excess = (pixels / MAX_PIXELS as f64).sqrt();
        let shrunk = |side: usize| {
            let blocks = (side as f64 / excess / block).floor() as usize;
            blocks.max(1) * BLOCK
        };
        Size { width: shrunk(size.width), height: shrunk(size.height) }
    } else if blocks.width * blocks.height < MIN_PIXELS {
        let growth = (MIN_PIXELS as f64 / pixels).sqrt();
        let grown = |side: usize| (side as f64 * growth / block).ceil() as usize * BLOCK;
        Size { width: grown(size.width), height: grown(size.height) }
    } else {
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(width: usize, height: usize) -> Geometry {
        Geometry::new(Size { width, height }, FrameChainParams::default(), false)
    }

    #[test]
    fn wide_frames_end_at_sixteen_by_twenty_eight_patches() {
        for (width, height) in [(320, 180), (1280, 720), (1920, 1080)] {
            let sizes = geometry(width, height);
            let crop = Size { width: 432, height: 243 };
            assert_eq!(sizes.resize1, Size { width: 455, height: 256 });
            assert_eq!(sizes.crop, Window { left: 11, top: 6, size: crop });
            assert_eq!(sizes.resize2, Size { width: 455, height: 256 });
            assert_eq!(sizes.grid(), [16, 28]);
        }
    }

    #[test]
    fn pictures_stay_within_the_pixel_limits() {
        for (edge, fraction) in [(28, 0.95), (64, 0.5), (224, 0.9), (256, 0.01), (2048, 1.0)] {
            let params = FrameChainParams { shortest_edge: edge, crop_fraction: fraction };
            for (width, height) in [(64, 64), (4096, 64), (64, 4096), (640, 480), (4096, 2160)] {
                let output = Geometry::new(Size { width, height }, params, false).output;
                let pixels = output.width * output.height;
                assert!(output.width % BLOCK == 0 && output.height % BLOCK == 0);
                assert!((MIN_PIXELS..=MAX_PIXELS).contains(&pixels), "{output:?}");
            }
        }
    }

    #[test]
    fn a_letterboxed_frame_of_any_shape_is_square() {
        for (width, height) in [(320, 180), (64, 4096), (333, 217)] {
            let frame = Size { width, height };
            let sizes = Geometry::new(frame, FrameChainParams::default(), true);
            assert_eq!(sizes.grid(), [16, 16]);
            assert_eq!(sizes.crop.size, Size::square(243));
        }
    }
}
