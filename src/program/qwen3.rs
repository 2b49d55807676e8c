//! Qwen3 decoder layers.

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
    let table =
        b.matrix(&format!("{prefix}.embed_tokens.weight"), config.vocabulary, config.width)?;
    let ids = b.index(IndexInput::TokenIds, tokens);
    b.embed(table, ids, hidden);
    Ok(hidden)
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
    k: View,
    v: View,
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
    ) -> Self {
        let query_width = config.heads * config.head_dim;
        let kv_width = config.kv_heads * config.head_dim;
        let mut scratch = |name: &str, cols| b.scratch(&format!("llm.{name}"), hidden.rows, cols);
        Self {
            prefix,
            config,
            rotary,
            hidden,
            normed: scratch("norm", config.width),
            raw_q: scratch("raw_q", query_width),
            raw_k: scratch("raw_k", kv_width),
            q: scratch("q", query_width),
            k: scratch("k", kv_width),
            v: scratch("v", kv_width),
            context: scratch("context", query_width),
            branch: scratch("branch", config.width),
            gate: scratch("gate", config.mlp_width),
            up: scratch("up", config.mlp_width),
            gated: scratch("gated", config.mlp_width),
        }
    }

    /// One layer.
    pub fn layer(&self, b: &mut ProgramBuilder<'_>, layer: usize) -> Result<(), CheckpointError> {
        let block = format!("{}.layers.{layer}", self.prefix);
        let tap = format!("llm.layer{layer}");
        self.attention(b, &block, &tap)?;
        self.mlp(b, &block, &tap)?;
        b.tap(tap, self.hidden);
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
    ) -> Result<(), CheckpointError> {
        let config = self.config;
        let norm = b.vector(&format!("{block}.input_layernorm.weight"), config.width)?;
        b.rms_norm(self.hidden, norm, RMS_EPS, self.normed);
        b.tap(format!("{tap}.ln1"), self.normed);
        for (name, out) in [("q_proj", self.raw_q), ("k_proj", self.raw_k), ("v_proj", self.v)] {
            project(b, &format!("{block}.self_attn.{name}"), self.normed, out)?;
        }
        for (name, raw, normed) in [("q_norm", self.raw_q, self.q), ("k_norm", self.raw_k, self.k)]
        {
            let norm = b.vector(&format!("{block}.self_attn.{name}.weight"), config.head_dim)?;
            b.rms_norm(raw, norm, RMS_EPS, normed);
            b.tap(format!("{tap}.{name}"), normed);
            b.rope(normed, self.rotary.cos, self.rotary.sin);
        }
        let shape = AttentionShape {
            heads: config.heads,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
            scale: (config.head_dim as f32).powf(-0.5),
            causal: true,
            sequences: 1,
        };
        b.attention(self.q, self.k, self.v, shape, self.context);
        project(b, &format!("{block}.self_attn.o_proj"), self.context, self.branch)?;
        b.tap(format!("{tap}.attn"), self.branch);
        b.add(self.branch, self.hidden);
        Ok(())
    }

    fn mlp(
        &self,
        b: &mut ProgramBuilder<'_>,
        block: &str,
        tap: &str,
    ) -> Result<(), CheckpointError> {
        let norm =
            b.vector(&format!("{block}.post_attention_layernorm.weight"), self.config.width)?;
        b.rms_norm(self.hidden, norm, RMS_EPS, self.normed);
        project(b, &format!("{block}.mlp.gate_proj"), self.normed, self.gate)?;
        project(b, &format!("{block}.mlp.up_proj"), self.normed, self.up)?;
        b.silu_mul(self.gate, self.up, self.gated);
        project(b, &format!("{block}.mlp.down_proj"), self.gated, self.branch)?;
        b.tap(format!("{tap}.mlp"), self.branch);
        b.add(self.branch, self.hidden);
        Ok(())
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
