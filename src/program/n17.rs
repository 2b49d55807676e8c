//! GR00T N1.7 as an instruction list (spec of N1.7, section 7).
//!
//! Qwen3-VL vision tower with DeepStack → 16 Qwen3 layers with multi-axis rotary positions, features taken before
//! the final norm → layer norm and self-attention adapter → AdaLN DiT whose even blocks look at text and picture
//! tokens in turn → action decoder, four Euler steps.

use super::{
    ACTIONS, IndexInput, Input, Layout, ModelPrograms, Program, ProgramBuilder, StageKind, adapter,
    dit, mrope, qwen3, qwen3_vision,
};
use crate::checkpoint::n17::Config;
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::contract::Version;

const VISION: &str = "backbone.model.model.visual";
const LANGUAGE_MODEL: &str = "backbone.model.model.language_model";
const HEAD: &str = "action_head";

const CHANNELS: usize = 3;

/// The programs of one N1.7 checkpoint for one embodiment slot.
pub struct Model {
    pub config: Config,
    pub slot: usize,
    /// Tokens before the first picture, which depend on the tokenizer.
    pub prefix_tokens: usize,
}

impl ModelPrograms for Model {
    fn prepare(&self, checkpoint: &Checkpoint) -> Result<Program, CheckpointError> {
        let b = ProgramBuilder::new(Version::N17, checkpoint);
        dit::prepare(b, HEAD, &self.config.head, self.slot)
    }

    fn request(&self, checkpoint: &Checkpoint, layout: Layout) -> Result<Program, CheckpointError> {
        let Config { vision, llm, rope_sections, adapter: adapter_config, head } = &self.config;
        let mut b = ProgramBuilder::new(Version::N17, checkpoint);
        b.stage(StageKind::Vision);
        let patches = layout.images * layout.grid[0] * layout.grid[1];
        let values = CHANNELS * vision.temporal_patch * vision.patch * vision.patch;
        let pixels = b.input(Input::Pixels, patches, values);
        let features = qwen3_vision::tower(
            &mut b,
            checkpoint,
            VISION,
            vision,
            layout.grid,
            pixels,
            llm.width,
        )?;

        b.stage(StageKind::Llm);
        let hidden = qwen3::embed(&mut b, LANGUAGE_MODEL, llm, layout.tokens)?;
        let image_rows = b.index(IndexInput::ImageRows, features.tokens.rows);
        b.scatter_rows(features.tokens, image_rows, hidden);
        b.tap("llm.embeds", hidden);
        let token_grid = layout.grid.map(|patches| patches / vision.merge);
        let prefix = self.prefix_tokens;
        let positions = mrope::positions(layout.tokens, prefix, layout.images, token_grid);
        let (cos, sin) = mrope::tables(&positions, llm.head_dim, llm.rope_theta, *rope_sections);
        let rotary = qwen3::Rotary::new(&mut b, layout.tokens, cos, sin);
        let decoder = qwen3::Decoder::new(
            &mut b,
            LANGUAGE_MODEL,
            llm,
            hidden,
            rotary,
            qwen3::KeysAndValues::PerLayer,
        );
        for layer in 0..llm.layers {
            b.tap(format!("llm.layer{layer}.in"), hidden);
            decoder.layer(&mut b, layer)?;
            if let Some(deepstack) = features.deepstack.get(layer) {
                b.scatter_add_rows(*deepstack, image_rows, hidden);
            }
        }
        b.tap("backbone_features", hidden);

        b.stage(StageKind::Adapter);
        let vl = adapter::vlln(&mut b, HEAD, hidden)?;
        adapter::self_attention(&mut b, HEAD, adapter_config, vl)?;
        let cross = dit::cross_keys_and_values(&mut b, HEAD, head, vl, image_rows)?;

        b.stage(StageKind::Denoise);
        let actions = dit::denoise(&mut b, HEAD, head, self.slot, &cross)?;
        b.export(ACTIONS, actions);
        Ok(b.finish())
    }
}
