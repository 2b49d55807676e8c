//! From an observation to the numbers that a model reads.

pub mod noise;
pub mod prompt;
pub mod state;
pub mod tokenizer;

/// The numbers that a model reads, for one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelInput {
    /// Normalised pixels, `[images, 3, side, side]`, in the order in which the model sees the pictures.
    pub pixels: Vec<f32>,
    pub images: usize,
    /// Token ids of the whole prompt, image placeholders included.
    pub token_ids: Vec<u32>,
    /// Which token id stands for an image token.
    pub image_token: u32,
    /// Encoded state, `[max_state_dim]`.
    pub state: Vec<f32>,
    /// Initial noise, `[action rows, action width]`.
    pub noise: Vec<f32>,
}
