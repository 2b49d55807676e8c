//! The adapter between language model and action head: a layer norm, then self-attention blocks without a mask.

use super::{Activation, AttentionShape, ProgramBuilder, View};
use crate::checkpoint::CheckpointError;
use crate::checkpoint::network::AdapterConfig;

const EPS: f32 = 1e-5;
const MLP_FACTOR: usize = 4;

/// The layer norm on the backbone's features, `[tokens, width]`.
pub fn vlln(
    b: &mut ProgramBuilder<'_>,
    head: &str,
    features: View,
) -> Result<View, CheckpointError> {
    let vl = b.scratch("vl", features.rows, features.cols);
    let affine = b.affine(&format!("{head}.vlln"), features.cols)?;
    b.layer_norm(features, Some(affine), None, EPS, vl);
    b.tap("vlln_out", vl);
    Ok(vl)
}

/// Runs the self-attention blocks in place on `hidden`, `[tokens, width]`.
pub fn self_attention(
    b: &mut ProgramBuilder<'_>,
    head: &str,
    config: &AdapterConfig,
    hidden: View,
) -> Result<(), CheckpointError> {
    let (rows, width) = (hidden.rows, hidden.cols);
    let normed = b.scratch("adapter.norm", rows, width);
    let [q, k, v] = ["q", "k", "v"].map(|name| b.scratch(&format!("adapter.{name}"), rows, width));
    let context = b.scratch("adapter.context", rows, width);
    let branch = b.scratch("adapter.branch", rows, width);
    let mlp = b.scratch("adapter.mlp", rows, MLP_FACTOR * width);
    let shape = AttentionShape {
        heads: config.heads,
        kv_heads: config.heads,
        head_dim: config.head_dim,
        scale: (config.head_dim as f32).powf(-0.5),
        causal: false,
        sequences: 1,
    };
    for block in 0..config.layers {
        let name = format!("{head}.vl_self_attention.transformer_blocks.{block}");
        let tap = format!("vl_self_attention.block{block}");
        let affine = b.affine(&format!("{name}.norm1"), width)?;
        b.layer_norm(hidden, Some(affine), None, EPS, normed);
        b.tap(format!("{tap}.norm1"), normed);
        for (projection, out) in [("to_q", q), ("to_k", k), ("to_v", v)] {
            b.project(&format!("{name}.attn1.{projection}"), normed, Activation::Identity, out)?;
        }
        b.attention(q, k, v, shape, context);
        b.project(&format!("{name}.attn1.to_out.0"), context, Activation::Identity, branch)?;
        b.tap(format!("{tap}.attn"), branch);
        b.add(branch, hidden);

        let affine = b.affine(&format!("{name}.norm3"), width)?;
        b.layer_norm(hidden, Some(affine), None, EPS, normed);
        b.tap(format!("{tap}.norm3"), normed);
        b.project(&format!("{name}.ff.net.0.proj"), normed, Activation::GeluTanh, mlp)?;
        b.project(&format!("{name}.ff.net.2"), mlp, Activation::Identity, branch)?;
        b.tap(format!("{tap}.ff"), branch);
        b.add(branch, hidden);
        b.tap(tap, hidden);
    }
    b.tap("vl_self_attention_out", hidden);
    Ok(())
}
