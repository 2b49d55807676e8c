//! Reading the parts of a configuration file that model versions share.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use super::{HeadConfig, LlmConfig, VisionConfig};
use crate::checkpoint::CheckpointError;
use crate::checkpoint::json::Fields;

// Bounds of what a configuration may ask for, far above any released model: they keep a damaged file from asking for
// terabytes.
pub const WIDTHS: RangeInclusive<usize> = 1..=1 << 16;
pub const LAYERS: RangeInclusive<usize> = 1..=512;
pub const HEADS: RangeInclusive<usize> = 1..=1024;
pub const VOCABULARY: RangeInclusive<usize> = 1..=1 << 22;
pub const ROWS: RangeInclusive<usize> = 1..=1 << 14;
pub const SLOTS: RangeInclusive<usize> = 1..=1 << 12;
pub const STEPS: RangeInclusive<usize> = 1..=1000;
pub const BUCKETS: RangeInclusive<usize> = 1..=1_000_000;

/// Overrides the numbers of a SigLIP tower by those of a `vision_config`; what is built in may be stated, not changed.
pub fn override_siglip(
    vision: &mut VisionConfig,
    fields: &Fields<'_>,
) -> Result<(), CheckpointError> {
    vision.width = fields.size("hidden_size", Some(vision.width), WIDTHS)?;
    vision.mlp_width = fields.size("intermediate_size", Some(vision.mlp_width), WIDTHS)?;
    vision.layers = fields.size("num_hidden_layers", Some(vision.layers), LAYERS)?;
    vision.heads = fields.size("num_attention_heads", Some(vision.heads), HEADS)?;
    if !vision.width.is_multiple_of(vision.heads) {
        let accepted = format!("a divisor of the width {}", vision.width);
        return Err(fields.refuse("num_attention_heads", accepted));
    }
    fields.only("patch_size", json!(vision.patch))?;
    fields.only("num_patches", json!(vision.position_side * vision.position_side))?;
    fields.only("num_channels", json!(3))?;
    fields.only("layer_norm_eps", json!(1e-6))?;
    fields.only("hidden_act", json!("gelu_pytorch_tanh"))?;
    fields.only("use_rope", json!(false))
}

/// Overrides the numbers of a Qwen3 language model by those of a `text_config`.
pub fn override_qwen3(llm: &mut LlmConfig, fields: &Fields<'_>) -> Result<(), CheckpointError> {
    llm.width = fields.size("hidden_size", Some(llm.width), WIDTHS)?;
    llm.mlp_width = fields.size("intermediate_size", Some(llm.mlp_width), WIDTHS)?;
    llm.heads = fields.size("num_attention_heads", Some(llm.heads), HEADS)?;
    llm.kv_heads = fields.size("num_key_value_heads", Some(llm.kv_heads), HEADS)?;
    llm.head_dim = fields.size("head_dim", Some(llm.head_dim), WIDTHS)?;
    llm.vocabulary = fields.size("vocab_size", Some(llm.vocabulary), VOCABULARY)?;
    if let Some(theta) = fields.get("rope_theta") {
        llm.rope_theta = theta
            .as_f64()
            .filter(|theta| theta.is_finite() && *theta > 1.0)
            .ok_or_else(|| fields.refuse("rope_theta", "a number above 1"))?;
    }
    if !llm.heads.is_multiple_of(llm.kv_heads) {
        let accepted = format!("a divisor of the {} attention heads", llm.heads);
        return Err(fields.refuse("num_key_value_heads", accepted));
    }
    if !llm.head_dim.is_multiple_of(2) {
        return Err(fields.refuse("head_dim", "an even number: positions rotate pairs"));
    }
    fields.only("rms_norm_eps", json!(1e-6))?;
    fields.only("hidden_act", json!("silu"))?;
    fields.only("rope_scaling", Value::Null)?;
    fields.only("use_sliding_window", json!(false))?;
    fields.only("attention_bias", json!(false))
}

/// Reads `diffusion_model_cfg`. A key that it leaves out does not take the value of the released file: the reference
/// then falls back to other sizes, and to sinusoidal positions without self-attention. So what decides the network must
/// be there. `memory` is the width of the features that the cross blocks look at.
pub fn read_dit(
    dit: &Fields<'_>,
    head: &mut HeadConfig,
    memory: usize,
) -> Result<(), CheckpointError> {
    const INACTIVE: [&str; 6] = [
        "dropout",
        "final_dropout",
        "compute_dtype",
        "num_embeds_ada_norm",
        "max_num_positional_embeddings",
        "upcast_attention",
    ];
    head.dit_layers = dit.size("num_layers", None, LAYERS)?;
    head.dit_heads = dit.size("num_attention_heads", None, HEADS)?;
    head.dit_head_dim = dit.size("attention_head_dim", None, WIDTHS)?;
    head.dit_output = dit.size("output_dim", None, WIDTHS)?;
    dit.exactly("positional_embeddings", Value::Null)?;
    dit.exactly("interleave_self_attention", json!(true))?;

    let fixed = [
        ("norm_type", json!("ada_norm")),
        ("attention_bias", json!(true)),
        ("activation_fn", json!("gelu-approximate")),
        ("norm_elementwise_affine", json!(false)),
        ("norm_eps", json!(1e-5)),
        ("cross_attention_dim", json!(memory)),
    ];
    let sizes = ["num_layers", "num_attention_heads", "attention_head_dim", "output_dim"];
    let switches = ["positional_embeddings", "interleave_self_attention"];
    for key in dit.keys() {
        if let Some((_, served)) = fixed.iter().find(|(name, _)| *name == key) {
            dit.only(key, served.clone())?;
        } else if ![&sizes[..], &switches, &INACTIVE].concat().contains(&key) {
            return Err(dit.refuse(key, "no such key: what it does is not implemented"));
        }
    }
    Ok(())
}
