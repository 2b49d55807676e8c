//! The encoder of N1.5 (spec n15 sections 4 to 6).

use super::frames::time_major;
use super::image::n15::{FrameChain, OUTPUT_LEN};
use super::noise::initial_noise;
use super::prompt::n15::{IMAGE_TOKEN_ID, PromptEncoder};
use super::state::encode_state;
use super::tokenizer::Tokenizer;
use super::{Encode, EncodeError, ModelInput};
use crate::checkpoint::n15::Config;
use crate::contract::{Embodiment, Noise, Observation};

/// Encodes the observations of one embodiment.
pub struct Encoder {
    embodiment: Embodiment,
    prompt: PromptEncoder,
    /// One per camera, since a chain keeps tables for one frame size.
    chains: Vec<FrameChain>,
    /// Columns of the encoded state.
    state_width: usize,
    /// Rows and columns of the initial noise.
    noise_shape: [usize; 2],
    /// The instruction whose token ids are in `input`, with its number of pictures.
    encoded_instruction: Option<(String, usize)>,
    input: ModelInput,
}

impl Encoder {
    /// # Errors
    /// A tokenizer that does not belong to the model.
    pub fn new(
        config: &Config,
        embodiment: Embodiment,
        tokenizer: Tokenizer,
    ) -> Result<Self, EncodeError> {
        let grid = config.vision.grid();
        let prompt = PromptEncoder::new(tokenizer, config.llm.vocabulary, grid * grid)?;
        let input =
            ModelInput { grid: [grid; 2], image_token: IMAGE_TOKEN_ID, ..ModelInput::default() };
        Ok(Self {
            prompt,
            chains: embodiment.cameras.iter().map(|_| FrameChain::new()).collect(),
            embodiment,
            state_width: config.head.state_width,
            noise_shape: [config.head.action_rows, config.head.action_width],
            encoded_instruction: None,
            input,
        })
    }

    fn encode_frames(&mut self, observation: &Observation) -> Result<(), EncodeError> {
        let frames = time_major(&self.embodiment, observation)?;
        self.input.images = frames.len();
        self.input.pixels.resize(frames.len() * OUTPUT_LEN, 0.0);
        let (pictures, _) = self.input.pixels.as_chunks_mut::<OUTPUT_LEN>();
        for (frame, out) in frames.iter().zip(pictures) {
            self.chains[frame.camera].encode(frame.frame, out);
        }
        Ok(())
    }

    /// Token ids change only with the instruction and the number of pictures.
    fn encode_instruction(&mut self, observation: &Observation) -> Result<(), EncodeError> {
        let images = self.input.images;
        let known = self.encoded_instruction.as_ref();
        if known.is_some_and(|(text, n)| *text == observation.instruction && *n == images) {
            return Ok(());
        }
        self.encoded_instruction = None;
        self.input.token_ids = self.prompt.encode(&observation.instruction, images)?.token_ids;
        self.encoded_instruction = Some((observation.instruction.clone(), images));
        Ok(())
    }
}

impl Encode for Encoder {
    fn encode(
        &mut self,
        observation: &Observation,
        noise: &Noise,
    ) -> Result<&ModelInput, EncodeError> {
        self.encode_frames(observation)?;
        self.encode_instruction(observation)?;
        self.input.state = encode_state(&self.embodiment, &observation.state, self.state_width)?;
        let [rows, cols] = self.noise_shape;
        self.input.noise = initial_noise(noise, rows, cols)?;
        Ok(&self.input)
    }
}
