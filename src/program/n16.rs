//! GR00T N1.6 as an instruction list (spec of N1.6, section 7).
//!
//! SigLIP-2 vision tower → space-to-depth connector → 16 Qwen3 layers → one layer norm → AdaLN DiT whose even
//! blocks look at text and picture tokens in turn → action decoder, four Euler steps.

use std::ops::Range;

use super::{
    ACTIONS, Activation, IndexId, IndexInput, Input, Layout, ModelPrograms, PatchGrid, PatchOrder,
    Program, ProgramBuilder, StageKind, View, adapter, dit, position_table, qwen3, siglip,
    sinusoid,
};
use crate::checkpoint::n16::Config;
use crate::checkpoint::{Checkpoint, CheckpointError};
use crate::contract::Version;

const VISION: &str = "backbone.model.vision_model.vision_model";
const CONNECTOR: &str = "backbone.model.mlp1";
const LANGUAGE_MODEL: &str = "backbone.model.language_model.model";
const HEAD: &str = "action_head";

const CONNECTOR_EPS: f32 = 1e-5;
const CHANNELS: usize = 3;

/// The programs of one N1.6 checkpoint for one embodiment slot.
pub struct Model {
    pub config: Config,
    pub slot: usize,
}

impl ModelPrograms for Model {
    fn prepare(&self, checkpoint: &Checkpoint) -> Result<Program, CheckpointError> {
        let b = ProgramBuilder::new(Version::N16, checkpoint);
        dit::prepare(b, HEAD, &self.config.head, self.slot)
    }

    fn request(&self, checkpoint: &Checkpoint, layout: Layout) -> Result<Program, CheckpointError> {
        let mut b = ProgramBuilder::new(Version::N16, checkpoint);
        b.stage(StageKind::Vision);
        let image_tokens = self.vision(&mut b, checkpoint, layout.images)?;
        let image_rows = b.index(IndexInput::ImageRows, image_tokens.rows);
        let features = self.language(&mut b, layout, image_tokens, image_rows)?;
        b.stage(StageKind::Adapter);
        let vl = adapter::vlln(&mut b, HEAD, features)?;
        let cross = dit::cross_keys_and_values(&mut b, HEAD, &self.config.head, vl, image_rows)?;
        b.stage(StageKind::Denoise);
        let actions = dit::denoise(&mut b, HEAD, &self.config.head, self.slot, &cross)?;
        b.export(ACTIONS, actions);
        Ok(b.finish())
    }
}

impl Model {
    /// Pictures to image tokens, `[images * tokens per picture, llm width]`.
    fn vision(
        &self,
        b: &mut ProgramBuilder<'_>,
        checkpoint: &Checkpoint,
        images: usize,
    ) -> Result<View, CheckpointError> {
        let vision = &self.config.vision;
        let grid = vision.grid();
        let patches = images * grid * grid;
        let pixels =
            b.input(Input::Pixels, images, CHANNELS * vision.image_side * vision.image_side);
        let patch_values = vision.patch * vision.patch * CHANNELS;
        let patch_rows = b.scratch("vit.patches", patches, patch_values);
        let cut = PatchGrid {
            side: vision.image_side,
            patch: vision.patch,
            channels: CHANNELS,
            order: PatchOrder::ChannelLast,
        };
        b.patchify(pixels, cut, patch_rows);

        let hidden = b.scratch("vit.hidden", patches, vision.width);
        let embedding = format!("{VISION}.embeddings.patch_embedding");
        b.project(&embedding, patch_rows, Activation::Identity, hidden)?;
        b.tap("vit.patch_embed", hidden);
        let positions = self.positions(b, checkpoint)?;
        b.tap("vit.pos_embed", positions);
        b.add(positions, hidden);
        b.tap("vit.embed", hidden);
        siglip::encoder(b, VISION, vision, images, hidden)?;
        let normed = b.scratch("vit.normed", patches, vision.width);
        siglip::post_norm(b, VISION, hidden, normed)?;
        b.tap("vit.post_ln", normed);
        self.connector(b, grid, normed)
    }

    /// The position table at the size of the picture's grid, `[grid * grid, width]`.
    fn positions(
        &self,
        b: &mut ProgramBuilder<'_>,
        checkpoint: &Checkpoint,
    ) -> Result<View, CheckpointError> {
        let vision = &self.config.vision;
        let (side, grid) = (vision.position_side, vision.grid());
        let name = format!("{VISION}.embeddings.position_embedding.weight");
        checkpoint.expect(&name, &[side * side, vision.width])?;
        let table: Vec<f32> =
            checkpoint.tensor(&name)?.values.iter().map(|value| value.to_f32()).collect();
        let resized = position_table::resize(&table, side, grid, vision.width);
        Ok(b.constant("vit.positions", grid * grid, vision.width, resized))
    }

    /// 2x2 neighbours to one token, then a two-layer MLP to the width of the language model.
    fn connector(
        &self,
        b: &mut ProgramBuilder<'_>,
        grid: usize,
        features: View,
    ) -> Result<View, CheckpointError> {
        let (tokens, width) = (features.rows / 4, 4 * features.cols);
        let llm_width = self.config.llm.width;
        let merged = b.scratch("connector.in", tokens, width);
        b.space_to_depth(features, grid, merged);
        b.tap("connector.in", merged);
        let normed = b.scratch("connector.normed", tokens, width);
        let affine = b.affine(&format!("{CONNECTOR}.0"), width)?;
        b.layer_norm(merged, Some(affine), None, CONNECTOR_EPS, normed);
        let hidden = b.scratch("connector.hidden", tokens, llm_width);
        b.project(&format!("{CONNECTOR}.1"), normed, Activation::GeluErf, hidden)?;
        let out = b.scratch("connector.out", tokens, llm_width);
        b.project(&format!("{CONNECTOR}.3"), hidden, Activation::Identity, out)?;
        b.tap("connector.out", out);
        Ok(out)
    }

    /// Tokens and image tokens to `backbone_features`, `[tokens, llm width]`: after the final norm.
    ///
    /// The instruction stands before the pictures and no token looks ahead, so a stage of its own takes it through all
    /// layers; it need not run again while the instruction stays the same.
    fn language(
        &self,
        b: &mut ProgramBuilder<'_>,
        layout: Layout,
        image_tokens: View,
        image_rows: IndexId,
    ) -> Result<View, CheckpointError> {
        let llm = &self.config.llm;
        let Layout { tokens, leading_tokens, .. } = layout;
        b.stage_of_leading_tokens(StageKind::Llm, leading_tokens);
        let hidden = b.scratch("llm.hidden", tokens, llm.width);
        let (cos, sin) = sinusoid::rotary(tokens, llm.head_dim, llm.rope_theta);
        let rotary = qwen3::Rotary::new(b, tokens, cos, sin);
        let kept = qwen3::KeysAndValues::Kept;
        let decoder = qwen3::Decoder::new(b, LANGUAGE_MODEL, llm, hidden, rotary, kept);
        self.tokens(b, &decoder, hidden, 0..leading_tokens, None)?;
        b.stage(StageKind::Llm);
        let images = Some((image_tokens, image_rows));
        self.tokens(b, &decoder, hidden, leading_tokens..tokens, images)?;
        let features = b.scratch("backbone_features", tokens, llm.width);
        decoder.final_norm(b, features)?;
        b.tap("backbone_features", features);
        Ok(features)
    }

    /// Takes some rows of the sequence from token ids, and image tokens, through all layers.
    fn tokens(
        &self,
        b: &mut ProgramBuilder<'_>,
        decoder: &qwen3::Decoder<'_>,
        hidden: View,
        rows: Range<usize>,
        images: Option<(View, IndexId)>,
    ) -> Result<(), CheckpointError> {
        if rows.is_empty() {
            return Ok(());
        }
        let llm = &self.config.llm;
        qwen3::embed_rows(b, LANGUAGE_MODEL, llm, hidden, rows.clone())?;
        if let Some((image_tokens, image_rows)) = images {
            b.scatter_rows(image_tokens, image_rows, hidden);
        }
        b.tap("llm.embeds", hidden.slice_rows(rows.start, rows.len()));
        for layer in 0..llm.layers {
            decoder.layer_rows(b, layer, rows.clone())?;
        }
        Ok(())
    }
}
