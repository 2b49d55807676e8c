//! The encoder of N1.5 (spec n15 sections 4 to 6).

use std::sync::{Arc, Mutex};

use super::frames::time_major;
use super::image::n15::{FrameChain, OUTPUT_LEN};
use super::prompt::n15::{IMAGE_TOKEN_ID, PromptEncoder};
use super::request::Request;
use super::tokenizer::Tokenizer;
use super::{Encode, EncodeError, InstructionTokens, ModelInput, Seen, Viewer, seen};
use crate::checkpoint::n15::Config;
use crate::contract::{Embodiment, Noise, Observation};
use crate::locked::locked;

/// Encodes the observations of one embodiment.
pub struct Encoder {
    prompt: Arc<PromptEncoder>,
    /// One per camera, since a chain keeps tables for one frame size.
    chains: Vec<FrameChain>,
    request: Request,
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
        let chains = embodiment.cameras.iter().map(|_| FrameChain::new()).collect();
        let mut request = Request::new(embodiment, &config.head, IMAGE_TOKEN_ID);
        request.input.grid = [grid; 2];
        Ok(Self { prompt: Arc::new(prompt), chains, request })
    }

    fn encode_frames(&mut self, observation: &Observation) -> Result<(), EncodeError> {
        let frames = time_major(&self.request.embodiment, observation)?;
        let input = &mut self.request.input;
        input.images = frames.len();
        input.pixels.resize(frames.len() * OUTPUT_LEN, 0.0);
        let (pictures, _) = input.pixels.as_chunks_mut::<OUTPUT_LEN>();
        for (frame, out) in frames.iter().zip(pictures) {
            self.chains[frame.camera].encode(frame.frame, out);
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
