//! From an observation to the numbers that a model reads.

mod cameras;
mod frames;
pub mod image;
mod kept;
pub mod n15;
pub mod n16;
pub mod n17;
pub mod noise;
pub mod prompt;
mod request;
mod seen;
mod shapes;
pub mod state;
pub mod tokenizer;

use std::sync::Arc;

pub use seen::{Seen, Viewer, side_by_side};
pub use shapes::FrameShapes;

use crate::contract::{Frame, Noise, Observation};
use crate::program::{IndexInput, IndexSpec, Layout};
use crate::words::names;

/// Turns observations into model input; one implementation per version.
pub trait Encode: Send {
    /// The input stays valid until the next call, and its buffers are used again.
    fn encode(
        &mut self,
        observation: &Observation,
        noise: &Noise,
    ) -> Result<&ModelInput, EncodeError>;

    /// Counts the tokens that an instruction adds to the prompt, ahead of the request and from any thread.
    fn instruction_tokens(&self) -> InstructionTokens;

    /// Tells whether an instruction can be encoded, ahead of the request and from any thread.
    fn instruction_check(&self) -> InstructionCheck {
        let tokens = self.instruction_tokens();
        Arc::new(move |instruction| tokens(instruction).map(drop))
    }

    /// The shapes of frames that are accepted, for checks ahead of the request and from any thread.
    fn frame_shapes(&self) -> FrameShapes {
        FrameShapes::default()
    }

    /// Where frames may be handed in as they arrive, so that a request pays only for what is new; `None` if this encoder
    /// has no use for them.
    fn intake(&self) -> Option<Arc<dyn FrameIntake>> {
        None
    }

    /// Makes the pictures that the model sees, beside the requests.
    fn viewer(&self) -> Viewer;
}

/// See [`Encode::instruction_tokens`].
pub type InstructionTokens = Arc<dyn Fn(&str) -> Result<usize, prompt::PromptError> + Send + Sync>;

/// See [`Encode::instruction_check`].
pub type InstructionCheck = Arc<dyn Fn(&str) -> Result<(), prompt::PromptError> + Send + Sync>;

/// Takes frames ahead of the request that needs them, from any thread.
pub trait FrameIntake: Send + Sync {
    /// Encodes a frame and keeps the result for as long as the frame itself is held. The request must be given the same
    /// `Arc`.
    ///
    /// # Errors
    /// What a request with this frame would report about it.
    fn arrived(&self, camera: &str, frame: &Arc<Frame>) -> Result<(), EncodeError>;
}

/// Why an observation is refused.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    #[error("camera '{camera}' is missing; the observation has {}", names(.found))]
    MissingCamera { camera: String, found: Vec<String> },
    #[error("camera '{camera}' is not one of the embodiment's, which are {}", names(.expected))]
    UnknownCamera { camera: String, expected: Vec<String> },
    #[error(
        "camera '{camera}' has {found} frames; the embodiment needs {expected}, one for each of the steps {deltas:?}"
    )]
    FrameCount { camera: String, expected: usize, deltas: Vec<i32>, found: usize },
    #[error(
        "camera '{camera}' gives frames of {width}x{height}, which become {}x{} patches; this policy was trained with \
         {}x{}: width divided by height must be from {:.3} to {:.3}, as in 1280x720; crop the frames, or set letterbox to \
         on for a checkpoint that was trained with padded frames",
        grid[0], grid[1], expected[0], expected[1], rounded_up(ratios[0]), rounded_down(ratios[1])
    )]
    AspectRatio {
        camera: String,
        width: u32,
        height: u32,
        grid: [usize; 2],
        expected: [usize; 2],
        /// Least and largest ratio of width to height that is accepted.
        ratios: [f64; 2],
    },
    #[error(
        "camera '{camera}' gives frames of {width}x{height}, each of which would be {tokens} tokens; at most {} are \
         accepted: crop the frames to a less elongated shape",
        prompt::MAX_PROMPT_TOKENS
    )]
    PictureTokens { camera: String, width: u32, height: u32, tokens: usize },
    #[error(
        "frames of {first} and {other} do not become equally large pictures; give all cameras one ratio of width to height"
    )]
    UnequalPictures {
        /// The one of `other`.
        camera: String,
        first: String,
        other: String,
    },
    #[error(
        "the checkpoint's processor_config.json has no 'letter_box_transform'; set letterbox to on or off, as the \
         checkpoint was trained"
    )]
    LetterboxOpen,
    #[error(transparent)]
    FrameChain(#[from] image::n16::FrameChainError),
    #[error(transparent)]
    Prompt(#[from] prompt::PromptError),
    #[error(transparent)]
    State(#[from] state::StateEncodeError),
    #[error(transparent)]
    Noise(#[from] noise::NoiseError),
}

/// The part of an observation that an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culprit<'a> {
    Camera(&'a str),
    StateGroup(&'a str),
    Instruction,
}

impl EncodeError {
    /// The one part that is to blame; `None` where the error is not about a single one.
    pub fn culprit(&self) -> Option<Culprit<'_>> {
        match self {
            EncodeError::MissingCamera { camera, .. }
            | EncodeError::UnknownCamera { camera, .. }
            | EncodeError::FrameCount { camera, .. }
            | EncodeError::AspectRatio { camera, .. }
            | EncodeError::PictureTokens { camera, .. }
            | EncodeError::UnequalPictures { camera, .. } => Some(Culprit::Camera(camera)),
            EncodeError::State(error) => error.group().map(Culprit::StateGroup),
            EncodeError::Prompt(_) => Some(Culprit::Instruction),
            EncodeError::LetterboxOpen | EncodeError::FrameChain(_) | EncodeError::Noise(_) => None,
        }
    }
}

/// The numbers that a model reads, for one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelInput {
    /// Normalised pixels in the order in which the model sees the pictures: `[images, 3, side, side]`, or
    /// `[patches, values per patch]` where the version's encoder cuts the pictures up itself.
    pub pixels: Vec<f32>,
    pub images: usize,
    /// Rows and columns of patches of every picture.
    pub grid: [usize; 2],
    /// Token ids of the whole prompt, image placeholders included.
    pub token_ids: Vec<u32>,
    /// Which token id stands for an image token.
    pub image_token: u32,
    /// Encoded state, `[max_state_dim]`.
    pub state: Vec<f32>,
    /// Initial noise, `[action rows, action width]`.
    pub noise: Vec<f32>,
}

impl ModelInput {
    /// What shapes the program for this input must have.
    pub fn layout(&self) -> Layout {
        let is_image = |id: &u32| *id == self.image_token;
        let tokens = self.token_ids.len();
        let leading_tokens = self.token_ids.iter().position(is_image).unwrap_or(tokens);
        Layout { tokens, leading_tokens, images: self.images, grid: self.grid }
    }

    /// The entries of a list of the program. The layout has fixed how many token ids there are in all; a list may be a part of
    /// them.
    pub fn entries(&self, spec: IndexSpec) -> impl Iterator<Item = u32> {
        let ids = self.token_ids.iter().skip(spec.first).take(spec.len).copied();
        let rows = |is_image| self.rows_where(is_image);
        let (ids, rows) = match spec.input {
            IndexInput::TokenIds => (Some(ids), None),
            IndexInput::ImageRows => (None, Some(rows(true))),
            IndexInput::TextRows => (None, Some(rows(false))),
        };
        ids.into_iter().flatten().chain(rows.into_iter().flatten())
    }

    /// Positions of the image tokens, ascending.
    pub fn image_rows(&self) -> impl Iterator<Item = u32> {
        self.rows_where(true)
    }

    /// Positions of all other tokens, ascending.
    pub fn text_rows(&self) -> impl Iterator<Item = u32> {
        self.rows_where(false)
    }

    fn rows_where(&self, is_image: bool) -> impl Iterator<Item = u32> {
        let rows = (0u32..).zip(&self.token_ids);
        rows.filter(move |(_, id)| (**id == self.image_token) == is_image).map(|(row, _)| row)
    }
}

/// A least ratio to three decimals, so that it is still accepted as printed.
pub fn rounded_up(ratio: f64) -> f64 {
    (ratio * 1000.0).ceil() / 1000.0
}

/// As [`rounded_up`], of a largest ratio.
pub fn rounded_down(ratio: f64) -> f64 {
    (ratio * 1000.0).floor() / 1000.0
}
