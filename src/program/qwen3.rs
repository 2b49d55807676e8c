//! Qwen3 decoder layers.

use super::{Activation, AttentionShape, ProgramBuilder, View};
use crate::checkpoint::CheckpointError;
use crate::checkpoint::n16::LlmConfig;

/// Epsilon of every RMS norm of the language model.
pub const RMS_EPS: f32 = 1e-6;

/// Rotary tables, each `[tokens, head_dim / 2]`.
#[derive(Clone, Copy, Debug)]
pub struct Rotary {
    pub cos: View,
    pub sin: View,
}

/// Runs the kept layers in place on `hidden`, `[tokens, width]`; the final norm is not part of it.
pub fn layers(
    b: &mut ProgramBuilder<'_>,
    prefix: &str,
    config: &LlmConfig,
    hidden: View,
    rotary: Rotary,
) -> Result<(), CheckpointError> {
    let (rows, width) = (hidden.rows, config.width);
    let query_width = config.heads * config.head_dim;
    let kv_width = config.kv_heads * config.head_dim;
    let normed = b.scratch("llm.norm", rows, width);
    let raw_q = b.scratch("llm.raw_q", rows, query_width);
    let raw_k = b.scratch("llm.raw_k", rows, kv_width);
    let q = b.scratch("llm.q", rows, query_width);
    let k = b.scratch("llm.k", rows, kv_width);
    let v = b.scratch("llm.v", rows, kv_width);
    let context = b.scratch("llm.context", rows, query_width);
    let branch = b.scratch("llm.branch", rows, width);
    let gate = b.scratch("llm.gate", rows, config.mlp_width);
    let up = b.scratch("llm.up", rows, config.mlp_width);
    let gated = b.scratch("llm.gated", rows, config.mlp_width);
    let shape = AttentionShape {
        heads: config.heads,
        kv_heads: config.kv_heads,
        head_dim: config.head_dim,
        scale: (config.head_dim as f32).powf(-0.5),
        causal: true,
        sequences: 1,
    };
    for layer in 0..config.layers {
        let block = format!("{prefix}.layers.{layer}");
        let tap = format!("llm.layer{layer}");
        let norm = b.vector(&format!("{block}.input_layernorm.weight"), width)?;
        b.rms_norm(hidden, norm, RMS_EPS, normed);
        b.tap(format!("{tap}.ln1"), normed);
        for (name, out) in [("q_proj", raw_q), ("k_proj", raw_k), ("v_proj", v)] {
            project(b, &format!("{block}.self_attn.{name}"), normed, out)?;
        }
        for (name, raw, normed) in [("q_norm", raw_q, q), ("k_norm", raw_k, k)] {
            let norm = b.vector(&format!("{block}.self_attn.{name}.weight"), config.head_dim)?;
            b.rms_norm(raw, norm, RMS_EPS, normed);
            b.rope(normed, rotary.cos, rotary.sin);
        }
        b.attention(q, k, v, shape, context);
        project(b, &format!("{block}.self_attn.o_proj"), context, branch)?;
        b.tap(format!("{tap}.attn"), branch);
        b.add(branch, hidden);

        let norm = b.vector(&format!("{block}.post_attention_layernorm.weight"), width)?;
        b.rms_norm(hidden, norm, RMS_EPS, normed);
        project(b, &format!("{block}.mlp.gate_proj"), normed, gate)?;
        project(b, &format!("{block}.mlp.up_proj"), normed, up)?;
        b.silu_mul(gate, up, gated);
        project(b, &format!("{block}.mlp.down_proj"), gated, branch)?;
        b.tap(format!("{tap}.mlp"), branch);
        b.add(branch, hidden);
        b.tap(tap, hidden);
    }
    Ok(())
}

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
