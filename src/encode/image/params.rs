//! The part of the processor file that shapes the pictures, which N1.6 and N1.7 share.

use std::ops::RangeInclusive;

/// Accepted `shortest_image_edge`, in pixels.
pub const SHORTEST_EDGE: RangeInclusive<u32> = 28..=2048;

/// The part of `processor_config.json` that shapes the pictures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FrameChainParams {
    /// `shortest_image_edge`, or `image_target_size[0]` where that is null.
    pub shortest_edge: u32,
    /// `crop_fraction`, or `image_crop_size[0] / image_target_size[0]` where that is null.
    pub crop_fraction: f64,
}

impl Default for FrameChainParams {
    /// The released checkpoints' values.
    fn default() -> Self {
        Self { shortest_edge: 256, crop_fraction: 0.95 }
    }
}

impl FrameChainParams {
    /// # Errors
    /// A `shortest_edge` outside [`SHORTEST_EDGE`], or a `crop_fraction` outside 0 (excluded) to 1.
    pub fn check(&self) -> Result<(), FrameChainError> {
        let &Self { shortest_edge, crop_fraction } = self;
        if !SHORTEST_EDGE.contains(&shortest_edge) {
            return Err(FrameChainError::ShortestEdge { found: shortest_edge });
        }
        if !(crop_fraction > 0.0 && crop_fraction <= 1.0) {
            return Err(FrameChainError::CropFraction { found: crop_fraction });
        }
        Ok(())
    }
}

/// Why a frame chain is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FrameChainError {
    #[error(
        "shortest_image_edge is {found}; it must be {} to {} pixels",
        SHORTEST_EDGE.start(),
        SHORTEST_EDGE.end()
    )]
    ShortestEdge { found: u32 },
    #[error("crop_fraction is {found}; it must be above 0 and at most 1")]
    CropFraction { found: f64 },
    #[error(
        "the pixels of one frame are 3 x {side} x {side} = {expected} values; the buffer holds {found}"
    )]
    OutputLength { side: usize, expected: usize, found: usize },
}
