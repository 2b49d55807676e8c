//! Observations for N1.7: pictures, prompt, state and noise put together.

use std::sync::Arc;

use super::cameras::Cameras;
use super::frames::{CameraFrame, time_major};
use super::image::n17::{MERGE, PatchWriter};
use super::prompt::n17::{IMAGE_TOKEN_ID, PromptEncoder};
use super::request::Request;
use super::shapes::n17_chain;
use super::tokenizer::Tokenizer;
use super::{
    Encode, EncodeError, FrameIntake, FrameShapes, InstructionTokens, ModelInput, Seen, Viewer,
    seen,
};
use crate::checkpoint::Processor;
use crate::checkpoint::n17::Config;
use crate::contract::{Embodiment, Letterbox, Noise, Observation};

/// Encodes observations of one embodiment for one N1.7 checkpoint.
pub struct Encoder {
    prompt: Arc<PromptEncoder>,
    cameras: Arc<Cameras>,
    patches: PatchWriter,
    request: Request,
}

impl Encoder {
    /// # Errors
    /// A tokenizer that does not belong to the model, frame sizes that are not served, or a checkpoint that leaves open
    /// whether frames are letterboxed where `letterbox` does not say so either.
    pub fn new(
        config: &Config,
        processor: &Processor,
        embodiment: Embodiment,
        tokenizer: Tokenizer,
        letterbox: Letterbox,
    ) -> Result<Self, EncodeError> {
        let prompt =
            PromptEncoder::new(tokenizer, config.llm.vocabulary, processor.formalize_language)?;
        let (params, letterbox) = n17_chain(processor, letterbox)?;
        let cameras = Arc::new(Cameras::new(&embodiment, params, letterbox)?);
        let request = Request::new(embodiment, &config.head, IMAGE_TOKEN_ID);
        Ok(Self { prompt: Arc::new(prompt), cameras, patches: PatchWriter::default(), request })
    }

    /// Tokens before the first picture.
    pub fn prefix_tokens(&self) -> usize {
        self.prompt.prefix_tokens()
    }

    fn encode_frames(&mut self, observation: &Observation) -> Result<(), EncodeError> {
        let frames = time_major(&self.request.embodiment, observation)?;
        self.request.input.images = frames.len();
        let mut stacked = None;
        for (number, frame) in frames.iter().enumerate() {
            let mut camera = self.cameras.camera(frame.camera);
            let picture = camera.picture(frame.frame)?;
            let first = *stacked.get_or_insert((*frame, picture.stacked()));
            if first.1 != picture.stacked() {
                return Err(self.unequal(first, (*frame, picture.stacked())));
            }
            let values = PatchWriter::output_len(picture.grid());
            if number == 0 {
                self.request.input.grid = picture.grid();
                self.request.input.pixels.resize(frames.len() * values, 0.0);
            }
            let out = &mut self.request.input.pixels[number * values..][..values];
            self.patches.write(picture, out);
        }
        Ok(())
    }

    fn unequal(
        &self,
        first: (CameraFrame<'_>, [usize; 2]),
        other: (CameraFrame<'_>, [usize; 2]),
    ) -> EncodeError {
        let describe = |(frame, stacked): (CameraFrame<'_>, [usize; 2])| {
            let name = &self.request.embodiment.cameras[frame.camera];
            let (width, height) = (frame.frame.width(), frame.frame.height());
            format!("'{name}' ({width}x{height} becomes {}x{})", stacked[0], stacked[1])
        };
        let camera = self.request.embodiment.cameras[other.0.camera].clone();
        EncodeError::UnequalPictures { camera, first: describe(first), other: describe(other) }
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
            let tokens_per_image = input.grid[0] * input.grid[1] / (MERGE * MERGE);
            Ok(self.prompt.encode(instruction, input.images, tokens_per_image)?.token_ids)
        })
    }

    fn instruction_tokens(&self) -> InstructionTokens {
        let prompt = Arc::clone(&self.prompt);
        let images = self.request.embodiment.pictures();
        // The number of tokens of a picture is known when its frame is; one is the least.
        Arc::new(move |instruction| {
            let tokens = prompt.encode(instruction, images, 1)?.token_ids.len();
            Ok(tokens.saturating_sub(prompt.template_tokens(images, 1)?))
        })
    }

    fn frame_shapes(&self) -> FrameShapes {
        self.cameras.shapes().clone()
    }

    fn intake(&self) -> Option<Arc<dyn FrameIntake>> {
        Some(self.cameras.clone())
    }

    fn viewer(&self) -> Viewer {
        let cameras = self.cameras.clone();
        seen::viewer(self.request.embodiment.clone(), move |camera, frame| {
            Ok(Seen::new(camera, cameras.camera(camera).picture(frame)?.view()))
        })
    }
}
