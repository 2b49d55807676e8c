//! Observations for N1.6: frame chain, prompt, state and noise put together.

use std::sync::{Arc, Mutex};

use super::frames::time_major;
use super::image::n16::{FrameChain, FrameChainParams};
use super::prompt::n16::{IMAGE_TOKEN_ID, PromptEncoder};
use super::request::Request;
use super::tokenizer::Tokenizer;
use super::{Encode, EncodeError, InstructionTokens, ModelInput, Seen, Viewer, seen};
use crate::checkpoint::Processor;
use crate::checkpoint::n16::{Config, PATCHES_PER_TOKEN_SIDE};
use crate::contract::{Embodiment, Noise, Observation};
use crate::locked::locked;

/// Encodes observations of one embodiment for one N1.6 checkpoint.
pub struct Encoder {
    prompt: Arc<PromptEncoder>,
    /// One per camera, since a chain keeps the tables of the frame size that it saw last.
    chains: Vec<FrameChain>,
    request: Request,
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
        let mut request = Request::new(embodiment, &config.head, IMAGE_TOKEN_ID);
        request.input.grid = [vision.grid(); 2];
        Ok(Self { prompt: Arc::new(prompt), chains: chains?, request })
    }

    fn encode_frames(&mut self, observation: &Observation) -> Result<(), EncodeError> {
        let frames = time_major(&self.request.embodiment, observation)?;
        let values = self.chains.first().map_or(0, FrameChain::output_len);
        let input = &mut self.request.input;
        input.images = frames.len();
        input.pixels.resize(frames.len() * values, 0.0);
        for (frame, out) in frames.iter().zip(input.pixels.chunks_exact_mut(values)) {
            self.chains[frame.camera].encode(frame.frame, out)?;
        }
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
        self.request.finish(observation, noise, |instruction, input| {
            Ok(self.prompt.encode(instruction, input.images)?.token_ids)
        })
    }

    fn instruction_tokens(&self) -> InstructionTokens {
        let prompt = Arc::clone(&self.prompt);
        let images = self.request.embodiment.pictures();
        Arc::new(move |instruction| {
            let tokens = prompt.encode(instruction, images)?.token_ids.len();
            Ok(tokens.saturating_sub(prompt.template_tokens(images)?))
        })
    }

    fn viewer(&self) -> Viewer {
        let chains: Vec<_> = self.chains.iter().cloned().map(Mutex::new).collect();
        seen::viewer(self.request.embodiment.clone(), move |camera, frame| {
            let mut chain = locked(&chains[camera]);
            Ok(Seen::new(camera, chain.picture(frame)))
        })
    }
}
