//! The frame chain of N1.7 (spec n17 section 4).

use std::cmp::Ordering;

use super::area::AreaResizer;
use super::geometry::Geometry;
pub use super::params::{FrameChainError, FrameChainParams, SHORTEST_EDGE};
use super::patches::Patcher;
pub use super::patches::{BLOCK, MERGE, PATCH, PATCH_VALUES, TIMES};
use super::pillow::{BicubicResizer, Rounding};
pub use super::stages::Stages;
use super::view::{Size, View, Window};
use crate::contract::Frame;

/// Turns camera frames into the pixels that the N1.7 vision tower reads, bit for bit as the reference does:
/// letterbox if asked for, area resize of the shorter side, centre crop, area resize, bicubic resize to whole blocks
/// of patches.
///
/// Tables and buffers are kept from frame to frame and rebuilt when the frame size changes, so use one chain per
/// camera.
#[derive(Clone, Debug)]
pub struct FrameChain {
    params: FrameChainParams,
    letterbox: bool,
    /// Built for the size of the frame encoded last.
    steps: Option<Steps>,
}

/// What one size of frame needs.
#[derive(Clone, Debug)]
struct Steps {
    frame: Size,
    sizes: Geometry,
    first: AreaResizer,
    second: AreaResizer,
    third: BicubicResizer,
    resize1: Vec<u8>,
    resize2: Vec<u8>,
}

/// A frame's finished picture: 8-bit RGB, `[height, width, 3]`, both sides whole blocks of patches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    rgb: Vec<u8>,
    /// Rows and columns of patches.
    grid: [usize; 2],
    /// Width and height before the last resize, by which the reference stacks the cameras.
    stacked: [usize; 2],
}

impl Picture {
    /// Rows and columns of patches.
    pub fn grid(&self) -> [usize; 2] {
        self.grid
    }

    /// Width and height before the last resize. The reference stacks the pictures of all cameras there.
    pub fn stacked(&self) -> [usize; 2] {
        self.stacked
    }

    /// The pixels.
    pub fn view(&self) -> View<'_> {
        let [rows, columns] = self.grid;
        View::new(&self.rgb, Size { width: columns * PATCH, height: rows * PATCH })
    }
}

impl FrameChain {
    /// A chain that pads frames to squares first if `letterbox` is set.
    ///
    /// # Errors
    /// `params` that no chain can be built for.
    pub fn new(params: FrameChainParams, letterbox: bool) -> Result<Self, FrameChainError> {
        params.check()?;
        Ok(Self { params, letterbox, steps: None })
    }

    /// Rows and columns of patches that a frame of this size ends as.
    pub fn grid(&self, width: u32, height: u32) -> [usize; 2] {
        self.sizes(size(width, height)).grid()
    }

    /// The ratios of width to height, least and largest, whose frames end as `grid`; `None` if there are none.
    pub fn ratios(&self, grid: [usize; 2]) -> Option<[f64; 2]> {
        let edge = self.params.shortest_edge as usize;
        let [rows, columns] = grid;
        // The first resize leaves only the length of the longer side to know, which grows with the ratio.
        let upright = rows > columns;
        let ends_there = |longer: &usize| {
            let (width, height) = if upright { (edge, *longer) } else { (*longer, edge) };
            self.sizes(Size { width, height }).grid() == grid
        };
        let longest = edge * LONGEST_RATIO;
        let mut accepted = (edge..=longest).filter(ends_there);
        let first = accepted.next()?;
        let last = accepted.next_back().unwrap_or(first);
        let ratio = |longer: f64| longer.max(edge as f64) / edge as f64;
        let [least, largest] = [ratio(first as f64 - 0.5), ratio(last as f64 + 0.5)];
        Some(match rows.cmp(&columns) {
            Ordering::Less => [least, largest],
            Ordering::Equal => [1.0 / largest, largest],
            Ordering::Greater => [1.0 / largest, 1.0 / least],
        })
    }

    fn sizes(&self, frame: Size) -> Geometry {
        Geometry::new(frame, self.params, self.letterbox)
    }

    /// Encodes `frame` into `picture`, whose buffer is used again.
    pub fn encode(&mut self, frame: &Frame, picture: &mut Picture) {
        let size = Size::of(frame);
        let steps = match &mut self.steps {
            Some(steps) if steps.frame == size => steps,
            slot => slot.insert(Steps::new(size, Geometry::new(size, self.params, self.letterbox))),
        };
        steps.run(View::new(frame.rgb(), size), picture);
    }

    /// The pictures between the steps of the frame encoded last into `picture`; `None` before the first.
    pub fn stages<'a>(&'a self, picture: &'a Picture) -> Option<Stages<'a>> {
        let steps = self.steps.as_ref()?;
        let resize1 = View::new(&steps.resize1, steps.sizes.resize1);
        Some(Stages {
            resize1,
            crop: resize1.crop(steps.sizes.crop),
            resize2: View::new(&steps.resize2, steps.sizes.resize2),
            u8: picture.view(),
        })
    }
}

/// Longest frame that there is, as a ratio of its sides: 4096 to 64.
const LONGEST_RATIO: usize = 64;

fn size(width: u32, height: u32) -> Size {
    Size { width: width as usize, height: height as usize }
}

impl Steps {
    fn new(frame: Size, sizes: Geometry) -> Self {
        let Geometry { letterbox, resize1, crop, resize2, output } = sizes;
        Self {
            frame,
            sizes,
            first: AreaResizer::new(letterbox.canvas, letterbox.window, resize1),
            second: AreaResizer::new(crop.size, Window::whole(crop.size), resize2),
            third: BicubicResizer::new(resize2, output, Rounding::Torchvision),
            resize1: vec![0; resize1.bytes()],
            resize2: vec![0; resize2.bytes()],
        }
    }

    fn run(&mut self, frame: View<'_>, picture: &mut Picture) {
        let Geometry { resize1, crop, resize2, output, .. } = self.sizes;
        self.first.run(frame, &mut self.resize1);
        self.second.run(View::new(&self.resize1, resize1).crop(crop), &mut self.resize2);
        picture.rgb.resize(output.bytes(), 0);
        picture.grid = self.sizes.grid();
        picture.stacked = [resize2.width, resize2.height];
        self.third.run(View::new(&self.resize2, resize2), &mut picture.rgb);
    }
}

/// Writes pictures as the rows of patches that the vision tower reads.
#[derive(Clone, Debug, Default)]
pub struct PatchWriter(Patcher);

impl PatchWriter {
    /// Values of a picture of this grid.
    pub fn output_len(grid: [usize; 2]) -> usize {
        grid[0] * grid[1] * PATCH_VALUES
    }

    /// Writes `picture`, normalised to -1 ..= 1, as `[patches, 3, times, patch, patch]`; the patches of a block of
    /// 2 x 2 follow each other, blocks are in raster order. `out` is [`PatchWriter::output_len`] long.
    pub fn write(&mut self, picture: &Picture, out: &mut [f32]) {
        self.0.run(picture.view(), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(letterbox: bool) -> FrameChain {
        FrameChain::new(FrameChainParams::default(), letterbox).unwrap()
    }

    #[test]
    fn accepted_ratios_are_those_of_the_served_system() {
        let ratios = chain(false).ratios([16, 28]).unwrap();
        assert_eq!(ratios, [863.0 / 512.0, 929.0 / 512.0]);
        let [least, largest] = chain(false).ratios([28, 16]).unwrap();
        for (upright, wide) in [(largest, ratios[0]), (least, ratios[1])] {
            assert!((1.0 / upright - wide).abs() < 1e-12);
        }
        let [least, largest] = chain(false).ratios([16, 16]).unwrap();
        assert_eq!(1.0 / least, largest);
        assert_eq!(chain(false).ratios([16, 27]), None);
        assert_eq!(chain(true).ratios([16, 28]), None);
    }

    #[test]
    fn frames_at_the_ends_of_the_ratios_are_told_apart() {
        let chain = chain(false);
        let [least, largest] = chain.ratios([16, 28]).unwrap();
        for height in 64..2200u32 {
            for width in (1600 * height / 1000)..=(1900 * height / 1000) {
                let ratio = f64::from(width) / f64::from(height);
                let inside = (least..=largest).contains(&ratio);
                assert_eq!(chain.grid(width, height) == [16, 28], inside, "{width}x{height}");
            }
        }
    }

    #[test]
    fn case_20_values_outside_the_rules_are_refused() {
        let build = |shortest_edge, crop_fraction| {
            let params = FrameChainParams { shortest_edge, crop_fraction };
            FrameChain::new(params, false).map(|_| ())
        };
        assert_eq!(build(27, 0.95), Err(FrameChainError::ShortestEdge { found: 27 }));
        assert_eq!(build(256, 1.01), Err(FrameChainError::CropFraction { found: 1.01 }));
    }
}
