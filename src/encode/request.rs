//! What the encoders of all versions do alike: everything but the pictures and the wording of the prompt.

use super::noise::initial_noise;
use super::prompt::PromptError;
use super::state::encode_state;
use super::{EncodeError, ModelInput};
use crate::checkpoint::network::HeadConfig;
use crate::contract::{Embodiment, Noise, Observation};

/// The model input of an embodiment, filled request after request.
pub struct Request {
    pub embodiment: Embodiment,
    state_width: usize,
    /// Rows and columns of the initial noise.
    noise_shape: [usize; 2],
    encoded_prompt: Option<PromptKey>,
    pub input: ModelInput,
}

/// What the token ids in `input` were made of.
#[derive(PartialEq)]
struct PromptKey {
    instruction: String,
    images: usize,
    grid: [usize; 2],
}

impl Request {
    pub fn new(embodiment: Embodiment, head: &HeadConfig, image_token: u32) -> Self {
        Self {
            embodiment,
            state_width: head.state_width,
            noise_shape: [head.action_rows, head.action_width],
            encoded_prompt: None,
            input: ModelInput { image_token, ..ModelInput::default() },
        }
    }

    /// Adds prompt, state and noise to an input that has its pictures. `token_ids` makes a prompt; it is called only when
    /// the instruction or the number or shape of the pictures has changed.
    ///
    /// # Errors
    /// An instruction, a state or a noise that is refused.
    pub fn finish(
        &mut self,
        observation: &Observation,
        noise: &Noise,
        token_ids: impl FnOnce(&str, &ModelInput) -> Result<Vec<u32>, PromptError>,
    ) -> Result<&ModelInput, EncodeError> {
        let ModelInput { images, grid, .. } = self.input;
        let key = PromptKey { instruction: observation.instruction.clone(), images, grid };
        if self.encoded_prompt.as_ref() != Some(&key) {
            self.encoded_prompt = None;
            self.input.token_ids = token_ids(&key.instruction, &self.input)?;
            self.encoded_prompt = Some(key);
        }
        self.input.state = encode_state(&self.embodiment, &observation.state, self.state_width)?;
        let [rows, cols] = self.noise_shape;
        self.input.noise = initial_noise(noise, rows, cols)?;
        Ok(&self.input)
    }
}
