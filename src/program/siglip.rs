//! The SigLIP vision encoder: pre-norm transformer blocks over the patches of each picture.

use super::{Activation, AttentionShape, ProgramBuilder, View};
use crate::checkpoint::CheckpointError;
use crate::checkpoint::network::VisionConfig;

const EPS: f32 = 1e-6;

/// Runs all blocks in place on `hidden`, `[images * patches, width]`. Pictures do not see each other.
pub fn encoder(
    b: &mut ProgramBuilder<'_>,
    prefix: &str,
    config: &VisionConfig,
    images: usize,
    hidden: View,
) -> Result<(), CheckpointError> {
    let (rows, width) = (hidden.rows, config.width);
    let normed = b.scratch("vit.norm", rows, width);
    let [q, k, v] = ["q", "k", "v"].map(|name| b.scratch(&format!("vit.{name}"), rows, width));
    let context = b.scratch("vit.context", rows, width);
    let branch = b.scratch("vit.branch", rows, width);
    let mlp = b.scratch("vit.mlp", rows, config.mlp_width);
    let head_dim = width / config.heads;
    let shape = AttentionShape {
        heads: config.heads,
        kv_heads: config.heads,
        head_dim,
        scale: (head_dim as f32).powf(-0.5),
        causal: false,
        sequences: images,
    };
    for layer in 0..config.layers {
        let block = format!("{prefix}.encoder.layers.{layer}");
        let tap = format!("vit.block{layer}");
        let affine = b.affine(&format!("{block}.layer_norm1"), width)?;
        b.layer_norm(hidden, Some(affine), None, EPS, normed);
        b.tap(format!("{tap}.ln1"), normed);
        for (name, out) in [("q_proj", q), ("k_proj", k), ("v_proj", v)] {
            b.project(&format!("{block}.self_attn.{name}"), normed, Activation::Identity, out)?;
        }
        b.attention(q, k, v, shape, context);
        b.project(&format!("{block}.self_attn.out_proj"), context, Activation::Identity, branch)?;
        b.tap(format!("{tap}.attn"), branch);
        b.add(branch, hidden);

        let affine = b.affine(&format!("{block}.layer_norm2"), width)?;
        b.layer_norm(hidden, Some(affine), None, EPS, normed);
        b.tap(format!("{tap}.ln2"), normed);
        b.project(&format!("{block}.mlp.fc1"), normed, Activation::GeluTanh, mlp)?;
        b.project(&format!("{block}.mlp.fc2"), mlp, Activation::Identity, branch)?;
        b.tap(format!("{tap}.mlp"), branch);
        b.add(branch, hidden);
        b.tap(tap, hidden);
    }
    Ok(())
}

/// The layer norm after the last block.
pub fn post_norm(
    b: &mut ProgramBuilder<'_>,
    prefix: &str,
    hidden: View,
    out: View,
) -> Result<(), CheckpointError> {
    let affine = b.affine(&format!("{prefix}.post_layernorm"), hidden.cols)?;
    b.layer_norm(hidden, Some(affine), None, EPS, out);
    Ok(())
}
