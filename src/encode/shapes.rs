//! Which shapes of camera frames a policy accepts: known without its weights, and before a frame comes.

use super::EncodeError;
use super::image::n17::{FrameChain, FrameChainError, FrameChainParams, MERGE};
use super::prompt::MAX_PROMPT_TOKENS;
use crate::checkpoint::{Network, Processor};
use crate::contract::{Embodiment, Frame, Letterbox};

/// Shape of the frames, as width and height, with which released policies were trained. Frames that become pictures of
/// another shape are refused.
const TRAINED_FRAMES: [(&str, [u32; 2]); 1] =
    [("oxe_droid_relative_eef_relative_joint", [1280, 720])];

/// The shapes that every camera of a policy may have; by default, any.
#[derive(Clone, Debug, Default)]
pub struct FrameShapes(Option<Limits>);

/// What bounds the shapes of an N1.7 policy.
#[derive(Clone, Debug)]
struct Limits {
    chain: FrameChain,
    /// `None`: any shape that has few enough tokens.
    trained: Option<TrainedShape>,
}

/// The only shape that a camera's pictures may have.
#[derive(Clone, Copy, Debug)]
struct TrainedShape {
    /// Rows and columns of patches.
    grid: [usize; 2],
    /// Least and largest ratio of width to height of frames that end so.
    ratios: [f64; 2],
}

impl FrameShapes {
    /// Those of a checkpoint's policy for one robot.
    ///
    /// # Errors
    /// A processor that no frame chain can be built for, or that leaves open whether frames are letterboxed where
    /// `letterbox` does not say so either.
    pub fn new(
        network: &Network,
        embodiment: &Embodiment,
        letterbox: Letterbox,
    ) -> Result<Self, EncodeError> {
        match network {
            Network::N15(_) | Network::N16(..) => Ok(Self::default()),
            Network::N17(_, processor) => {
                let (params, letterbox) = n17_chain(processor, letterbox)?;
                Ok(Self::n17(embodiment, params, letterbox)?)
            }
        }
    }

    /// Those of an N1.7 policy.
    ///
    /// # Errors
    /// `params` that no chain can be built for.
    pub fn n17(
        embodiment: &Embodiment,
        params: FrameChainParams,
        letterbox: bool,
    ) -> Result<Self, FrameChainError> {
        let chain = FrameChain::new(params, letterbox)?;
        let trained = TRAINED_FRAMES.iter().find(|(tag, _)| *tag == embodiment.tag);
        // Padded frames all become squares.
        let trained = trained.filter(|_| !letterbox).map(|(_, [width, height])| {
            let grid = chain.grid(*width, *height);
            // There is a frame of the trained shape, so that there are ratios.
            TrainedShape { grid, ratios: chain.ratios(grid).unwrap_or_default() }
        });
        Ok(Self(Some(Limits { chain, trained })))
    }

    /// Least and largest ratio of width to height of the frames that are accepted; `None` if the ratio is not bounded.
    pub fn aspect_ratios(&self) -> Option<[f64; 2]> {
        Some(self.0.as_ref()?.trained?.ratios)
    }

    /// Whether a frame of `camera` is of a shape that the policy accepts. Quick, since nothing is encoded.
    ///
    /// # Errors
    /// The frame is not.
    pub fn check(&self, camera: &str, frame: &Frame) -> Result<(), EncodeError> {
        let Some(Limits { chain, trained }) = &self.0 else { return Ok(()) };
        let (width, height) = (frame.width(), frame.height());
        let grid = chain.grid(width, height);
        if let Some(TrainedShape { grid: expected, ratios }) =
            trained.filter(|trained| trained.grid != grid)
        {
            let camera = camera.to_owned();
            return Err(EncodeError::AspectRatio { camera, width, height, grid, expected, ratios });
        }
        let tokens = grid[0] * grid[1] / (MERGE * MERGE);
        if tokens > MAX_PROMPT_TOKENS {
            let camera = camera.to_owned();
            return Err(EncodeError::PictureTokens { camera, width, height, tokens });
        }
        Ok(())
    }
}

/// How an N1.7 checkpoint's frames are resized, and whether they are padded to squares first.
///
/// # Errors
/// Neither the checkpoint nor `letterbox` says whether frames are padded.
pub(super) fn n17_chain(
    processor: &Processor,
    letterbox: Letterbox,
) -> Result<(FrameChainParams, bool), EncodeError> {
    let params = FrameChainParams {
        shortest_edge: processor.image.shortest_edge as u32,
        crop_fraction: processor.image.crop_fraction,
    };
    let padded = letterbox.applies(processor.image.letterbox).ok_or(EncodeError::LetterboxOpen)?;
    Ok((params, padded))
}
