//! From an observation to the numbers that a model reads.

mod frames;
pub mod image;
pub mod n15;
pub mod n16;
pub mod noise;
pub mod prompt;
pub mod state;
pub mod tokenizer;

use crate::contract::{Noise, Observation};
use crate::program::Layout;

/// Turns observations into model input; one implementation per version.
pub trait Encode: Send {
    /// The input stays valid until the next call, and its buffers are used again.
    fn encode(
        &mut self,
        observation: &Observation,
        noise: &Noise,
    ) -> Result<&ModelInput, EncodeError>;
}

/// Why an observation is refused.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    #[error("camera '{camera}' is missing; the observation has {found:?}")]
    MissingCamera { camera: String, found: Vec<String> },
    #[error("camera '{camera}' is not one of the embodiment's, which are {expected:?}")]
    UnknownCamera { camera: String, expected: Vec<String> },
    #[error(
        "camera '{camera}' has {found} frames; the embodiment needs {expected}, one for each of the steps {deltas:?}"
    )]
    FrameCount { camera: String, expected: usize, deltas: Vec<i32>, found: usize },
    #[error(transparent)]
    FrameChain(#[from] image::n16::FrameChainError),
    #[error(transparent)]
    Prompt(#[from] prompt::PromptError),
    #[error(transparent)]
    State(#[from] state::StateEncodeError),
    #[error(transparent)]
    Noise(#[from] noise::NoiseError),
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
        Layout { tokens: self.token_ids.len(), images: self.images, grid: self.grid }
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
