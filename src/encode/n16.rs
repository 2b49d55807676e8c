//! Observations for N1.6: frame chain, prompt, state and noise put together.

use super::frames::time_major;
use super::image::n16::{FrameChain, FrameChainParams};
use super::noise::initial_noise;
use super::prompt::n16::{IMAGE_TOKEN_ID, PromptEncoder};
use super::state::encode_state;
use super::tokenizer::Tokenizer;
use super::{Encode, EncodeError, ModelInput};
use crate::checkpoint::Processor;
use crate::checkpoint::n16::{Config, PATCHES_PER_TOKEN_SIDE};
use crate::contract::{Embodiment, Noise, Observation};

/// Encodes observations of one embodiment for one N1.6 checkpoint.
pub struct Encoder {
    embodiment: Embodiment,
    prompt: PromptEncoder,
    /// One per camera, since a chain keeps the tables of the frame size that it saw last.
    chains: Vec<FrameChain>,
    state_width: usize,
    noise_shape: [usize; 2],
    /// Instruction whose token ids are in `input`.
    encoded_instruction: Option<(String, usize)>,
    input: ModelInput,
}

impl Encoder {
    /// # Errors
    /// A tokenizer that does not belong to the model, or frame sizes that the model's picture size does not follow.
    pub fn new(
        config: &Config,
        processor: &Processor,
        embodiment: Embodiment,
        tokenizer: Tokenizer,
    ) -> Result<Self, EncodeError> {
        let vision = &config.vision;
        let tokens_per_side = vision.grid() / PATCHES_PER_TOKEN_SIDE;
        let prompt = PromptEncoder::new(
            tokenizer,
            config.llm.vocabulary,
            tokens_per_side * tokens_per_side,
            processor.formalize_language,
        )?;
        let params = FrameChainParams {
            shortest_edge: processor.image.shortest_edge as u32,
            crop_fraction: processor.image.crop_fraction,
        };
        let chains: Result<Vec<FrameChain>, _> =
            embodiment.cameras.iter().map(|_| FrameChain::new(params)).collect();
        let input = ModelInput {
            grid: [vision.grid(); 2],
            image_token: IMAGE_TOKEN_ID,
            ..ModelInput::default()
        };
        Ok(Self {
            embodiment,
            prompt,
            chains: chains?,
            state_width: config.head.state_width,
            noise_shape: [config.head.action_rows, config.head.action_width],
            encoded_instruction: None,
            input,
        })
    }

    fn encode_frames(&mut self, observation: &Observation) -> Result<(), EncodeError> {
        let frames = time_major(&self.embodiment, observation)?;
        let values = self.chains.first().map_or(0, FrameChain::output_len);
        self.input.images = frames.len();
        self.input.pixels.resize(frames.len() * values, 0.0);
        for (frame, out) in frames.iter().zip(self.input.pixels.chunks_exact_mut(values)) {
            self.chains[frame.camera].encode(frame.frame, out)?;
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
