//! GR00T N1.5 as an instruction list (spec of N1.5, section 8).
//!
//! SigLIP vision tower → one Linear → 12 Qwen3 layers → layer norm and self-attention adapter → AdaLN DiT with
//! learned future tokens, whose even blocks look at all tokens → action decoder, four Euler steps.

use super::{
    ACTIONS, Activation, IndexId, IndexInput, Input, Layout, ModelPrograms, Orientation, PatchGrid,
    PatchOrder, Program, ProgramBuilder, StageKind, View, adapter, dit, qwen3, siglip, sinusoid,
};
use crate::checkpoint::n15::Config;
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::contract::Version;

const VISION: &str = "backbone.eagle_model.vision_model.vision_model";
const CONNECTOR: &str = "backbone.eagle_model.mlp1";
const LANGUAGE_MODEL: &str = "backbone.eagle_model.language_model.model";
const PROJECTION: &str = "backbone.eagle_linear";
const HEAD: &str = "action_head";

const CHANNELS: usize = 3;

/// The programs of one N1.5 checkpoint for one embodiment slot.
pub struct Model {
    pub config: Config,
    pub slot: usize,
}

impl ModelPrograms for Model {
    fn prepare(&self, checkpoint: &Checkpoint) -> Result<Program, CheckpointError> {
        let b = ProgramBuilder::new(Version::N15, checkpoint);
        dit::prepare(b, HEAD, &self.config.head, self.slot)
    }

    fn request(&self, checkpoint: &Checkpoint, layout: Layout) -> Result<Program, CheckpointError> {
        let mut b = ProgramBuilder::new(Version::N15, checkpoint);
        b.stage(StageKind::Vision);
        let image_tokens = self.vision(&mut b, layout.images)?;
        b.stage(StageKind::Llm);
        let image_rows = b.index(IndexInput::ImageRows, image_tokens.rows);
        let features = self.language(&mut b, layout.tokens, image_tokens, image_rows)?;
        b.stage(StageKind::Adapter);
        let vl = adapter::vlln(&mut b, HEAD, features)?;
        adapter::self_attention(&mut b, HEAD, &self.config.adapter, vl)?;
        let cross = dit::cross_keys_and_values(&mut b, HEAD, &self.config.head, vl, image_rows)?;
        b.stage(StageKind::Denoise);
        let actions = dit::denoise(&mut b, HEAD, &self.config.head, self.slot, &cross)?;
        b.export(ACTIONS, actions);
        Ok(b.finish())
    }
}

impl Model {
    /// Pictures to image tokens, `[images * patches, llm width]`.
    fn vision(&self, b: &mut ProgramBuilder<'_>, images: usize) -> Result<View, CheckpointError> {
        let vision = &self.config.vision;
        let cells = vision.grid() * vision.grid();
        let side = vision.image_side;
        let patch_values = CHANNELS * vision.patch * vision.patch;
        let pixels = b.input(Input::Pixels, images, CHANNELS * side * side);
        let patches = b.scratch("vit.patches", images * cells, patch_values);
        let order = PatchOrder::ChannelFirst;
        b.patchify(
            pixels,
            PatchGrid { side, patch: vision.patch, channels: CHANNELS, order },
            patches,
        );

        let hidden = b.scratch("vit.hidden", images * cells, vision.width);
        let embedding = format!("{VISION}.embeddings.patch_embedding");
        let kernel = b.weight(
            &format!("{embedding}.weight"),
            &[vision.width, CHANNELS, vision.patch, vision.patch],
            0,
            vision.width,
            patch_values,
            Orientation::OutIn,
        )?;
        let bias = b.vector(&format!("{embedding}.bias"), vision.width)?;
        b.linear(patches, (kernel, Some(bias)), Activation::Identity, hidden);
        b.tap("vit.patch_embed", hidden);
        let table = format!("{VISION}.embeddings.position_embedding.weight");
        let positions = b.matrix(&table, cells, vision.width)?;
        for image in 0..images {
            b.add_weight(positions, hidden.slice_rows(image * cells, cells));
        }
        b.tap("vit.embed", hidden);
        siglip::encoder(b, VISION, vision, images, hidden)?;
        let normed = b.scratch("vit.normed", hidden.rows, vision.width);
        siglip::post_norm(b, VISION, hidden, normed)?;
        b.tap("vit.post_ln", normed);
        let out = b.scratch("connector.out", hidden.rows, self.config.llm.width);
        b.project(&format!("{CONNECTOR}.0"), normed, Activation::Identity, out)?;
        b.tap("connector.out", out);
        Ok(out)
    }

    /// Tokens and image tokens to `backbone_features`, after the final norm and the optional projection.
    fn language(
        &self,
        b: &mut ProgramBuilder<'_>,
        tokens: usize,
        image_tokens: View,
        image_rows: IndexId,
    ) -> Result<View, CheckpointError> {
        let llm = &self.config.llm;
        let hidden = qwen3::embed(b, LANGUAGE_MODEL, llm, tokens)?;
        b.scatter_rows(image_tokens, image_rows, hidden);
        b.tap("llm.embeds", hidden);
        let (cos, sin) = sinusoid::rotary(tokens, llm.head_dim, llm.rope_theta);
        let rotary = qwen3::Rotary::new(b, tokens, cos, sin);
        let decoder = qwen3::Decoder::new(
            b,
            LANGUAGE_MODEL,
            llm,
            hidden,
            rotary,
            qwen3::KeysAndValues::PerLayer,
        );
        for layer in 0..llm.layers {
            decoder.layer(b, layer)?;
        }
        let normed = b.scratch("llm.normed", tokens, llm.width);
        decoder.final_norm(b, normed)?;
        let features = match self.config.projection {
            Some(width) => {
                let projected = b.scratch("llm.projected", tokens, width);
                b.project(PROJECTION, normed, Activation::Identity, projected)?;
                projected
            }
            None => normed,
        };
        b.tap("backbone_features", features);
        Ok(features)
    }
}
