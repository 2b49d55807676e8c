//! Qwen3 decoder layers.

use std::ops::Range;

use super::{Activation, AttentionShape, IndexInput, ProgramBuilder, View};
use crate::checkpoint::CheckpointError;
use crate::checkpoint::network::LlmConfig;

/// Epsilon of every RMS norm of the language model.
const RMS_EPS: f32 = 1e-6;

/// Rotary tables, each `[tokens, head_dim / 2]`.
#[derive(Clone, Copy, Debug)]
pub struct Rotary {
    pub cos: View,
    pub sin: View,
}

impl Rotary {
    /// Tables `[positions, head_dim / 2]` as constants of the program.
    pub fn new(b: &mut ProgramBuilder<'_>, positions: usize, cos: Vec<f32>, sin: Vec<f32>) -> Self {
        let cols = cos.len() / positions;
        let cos = b.constant("llm.cos", positions, cols, cos);
        let sin = b.constant("llm.sin", positions, cols, sin);
        b.tap("llm.rope_cos", cos);
        b.tap("llm.rope_sin", sin);
        Self { cos, sin }
    }
}

/// The rows of the embedding table that the request's token ids name, `[tokens, width]`.
pub fn embed(
    b: &mut ProgramBuilder<'_>,
    prefix: &str,
    config: &LlmConfig,
    tokens: usize,
) -> Result<View, CheckpointError> {
    let hidden = b.scratch("llm.hidden", tokens, config.width);
    embed_rows(b, prefix, config, hidden, 0..tokens)?;
    Ok(hidden)
}

/// As [`embed`], for some rows of the sequence.
pub fn embed_rows(
    b: &mut ProgramBuilder<'_>,
    prefix: &str,
    config: &LlmConfig,
    hidden: View,
    rows: Range<usize>,
) -> Result<(), CheckpointError> {
    let table =
        b.matrix(&format!("{prefix}.embed_tokens.weight"), config.vocabulary, config.width)?;
    let ids = b.index_from(IndexInput::TokenIds, rows.start, rows.len());
    b.embed(table, ids, hidden.slice_rows(rows.start, rows.len()));
    Ok(())
}

/// How long the keys and values of a layer are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeysAndValues {
    /// Until the layer is done: all layers share the memory.
    PerLayer,
    /// Until rows that come later in the sequence have looked at them.
    Kept,
}

/// The decoder layers, with the buffers that they share.
pub struct Decoder<'a> {
    prefix: &'a str,
    config: &'a LlmConfig,
    rotary: Rotary,
    hidden: View,
    normed: View,
    raw_q: View,
    raw_k: View,
    q: View,
    /// Of every layer, or one for all.
    keys: Vec<View>,
    values: Vec<View>,
    context: View,
    branch: View,
    gate: View,
    up: View,
    gated: View,
}

impl<'a> Decoder<'a> {
    /// Layers that work in place on `hidden`, `[tokens, width]`.
    pub fn new(
        b: &mut ProgramBuilder<'_>,
        prefix: &'a str,
        config: &'a LlmConfig,
        hidden: View,
        rotary: Rotary,
        kept: KeysAndValues,
    ) -> Self {
        let query_width = config.heads * config.head_dim;
        let kv_width = config.kv_heads * config.head_dim;
        let mut scratch = |name: &str, cols| b.scratch(&format!("llm.{name}"), hidden.rows, cols);
        let copies = if kept == KeysAndValues::Kept { config.layers } else { 1 };
        Self {
            prefix,
            config,
            rotary,
            hidden,
            normed: scratch("norm", config.width),
            raw_q: scratch("raw_q", query_width),
            raw_k: scratch("raw_k", kv_width),
            q: scratch("q", query_width),
            keys: (0..copies).map(|copy| scratch(&format!("k{copy}"), kv_width)).collect(),
            values: (0..copies).map(|copy| scratch(&format!("v{copy}"), kv_width)).collect(),
            context: scratch("context", query_width),
            branch: scratch("branch", config.width),
            gate: scratch("gate", config.mlp_width),
            up: scratch("up", config.mlp_width),
            gated: scratch("gated", config.mlp_width),
        }
    }

    /// One layer.
    pub fn layer(&self, b: &mut ProgramBuilder<'_>, layer: usize) -> Result<(), CheckpointError> {
        self.layer_rows(b, layer, 0..self.hidden.rows)
    }

    /// One layer for some rows of the sequence; those before them have been through it and their keys and values are
    /// [kept](KeysAndValues::Kept).
    pub fn layer_rows(
        &self,
        b: &mut ProgramBuilder<'_>,
        layer: usize,
        rows: Range<usize>,
    ) -> Result<(), CheckpointError> {
        let block = format!("{}.layers.{layer}", self.prefix);
        let tap = format!("llm.layer{layer}");
        let copy = layer.min(self.keys.len() - 1);
        let part = Part { keys: self.keys[copy], values: self.values[copy], rows };
        self.attention(b, &block, &tap, &part)?;
        self.mlp(b, &block, &tap, &part)?;
        b.tap(tap, part.of(self.hidden));
        Ok(())
    }

    /// The norm after the last layer.
    pub fn final_norm(&self, b: &mut ProgramBuilder<'_>, out: View) -> Result<(), CheckpointError> {
        let norm = b.vector(&format!("{}.norm.weight", self.prefix), self.config.width)?;
        b.rms_norm(self.hidden, norm, RMS_EPS, out);
        Ok(())
    }

    fn attention(
        &self,
        b: &mut ProgramBuilder<'_>,
        block: &str,
        tap: &str,
        part: &Part,
    ) -> Result<(), CheckpointError> {
        let config = self.config;
        let normed = part.of(self.normed);
        let norm = b.vector(&format!("{block}.input_layernorm.weight"), config.width)?;
        b.rms_norm(part.of(self.hidden), norm, RMS_EPS, normed);
        b.tap(format!("{tap}.ln1"), normed);
        let (raw_q, raw_k) = (part.of(self.raw_q), part.of(self.raw_k));
        let (q, k, v) = (part.of(self.q), part.of(part.keys), part.of(part.values));
        for (name, out) in [("q_proj", raw_q), ("k_proj", raw_k), ("v_proj", v)] {
            project(b, &format!("{block}.self_attn.{name}"), normed, out)?;
        }
        let Rotary { cos, sin } = self.rotary;
        for (name, raw, normed) in [("q_norm", raw_q, q), ("k_norm", raw_k, k)] {
            let norm = b.vector(&format!("{block}.self_attn.{name}.weight"), config.head_dim)?;
            b.rms_norm(raw, norm, RMS_EPS, normed);
            b.tap(format!("{tap}.{name}"), normed);
            b.rope(normed, part.of(cos), part.of(sin));
        }
        let shape = AttentionShape {
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
            scale: (config.head_dim as f32).powf(-0.5),
            causal: true,
            sequences: 1,
        };
        let seen = |view: View| view.slice_rows(0, part.rows.end);
        let (context, branch) = (part.of(self.context), part.of(self.branch));
        b.attention(q, seen(part.keys), seen(part.values), shape, context);
        project(b, &format!("{block}.self_attn.o_proj"), context, branch)?;
        b.tap(format!("{tap}.attn"), branch);
        b.add(branch, part.of(self.hidden));
        Ok(())
    }

    fn mlp(
        &self,
        b: &mut ProgramBuilder<'_>,
        block: &str,
        tap: &str,
        part: &Part,
    ) -> Result<(), CheckpointError> {
        let norm =
            b.vector(&format!("{block}.post_attention_layernorm.weight"), self.config.width)?;
        let (hidden, normed, branch) =
            (part.of(self.hidden), part.of(self.normed), part.of(self.branch));
        let (gate, up, gated) = (part.of(self.gate), part.of(self.up), part.of(self.gated));
        b.rms_norm(hidden, norm, RMS_EPS, normed);
        project(b, &format!("{block}.mlp.gate_proj"), normed, gate)?;
        project(b, &format!("{block}.mlp.up_proj"), normed, up)?;
        b.silu_mul(gate, up, gated);
        project(b, &format!("{block}.mlp.down_proj"), gated, branch)?;
        b.tap(format!("{tap}.mlp"), branch);
        b.add(branch, hidden);
        Ok(())
    }
}

/// Rows of the sequence that go through a layer, and where its keys and values stand.
struct Part {
    keys: View,
    values: View,
    rows: Range<usize>,
}

impl Part {
    fn of(&self, view: View) -> View {
        view.slice_rows(self.rows.start, self.rows.len())
    }
}

/// A Linear without bias.
fn project(
    b: &mut ProgramBuilder<'_>,
    prefix: &str,
    x: View,
    out: View,
) -> Result<(), CheckpointError> {
    let weight = b.matrix(&format!("{prefix}.weight"), out.cols, x.cols)?;
    b.linear(x, (weight, None), Activation::Identity, out);
    Ok(())
}
