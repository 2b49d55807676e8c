//! Reading the parts of a configuration file that model versions share.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use super::{AdapterConfig, CrossAttention, HeadConfig, LlmConfig, VisionConfig};
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

/// Overrides the numbers of a Qwen3 language model by those of a `text_config`; its positions are plain.
pub fn override_qwen3(llm: &mut LlmConfig, fields: &Fields<'_>) -> Result<(), CheckpointError> {
    override_qwen3_layers(llm, fields)?;
    fields.only("rope_scaling", Value::Null)
}

/// As [`override_qwen3`], without a look at how positions are scaled.
pub fn override_qwen3_layers(
    llm: &mut LlmConfig,
    fields: &Fields<'_>,
) -> Result<(), CheckpointError> {
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

/// What becomes of a key that a configuration leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The value that stands in its place stays.
    Kept,
    /// The configuration is refused.
    Refused,
}

/// Reads the action head whose blocks look at text and pictures in turn, as N1.6 and N1.7 have it. `base` holds the
/// values that stand in place of those that the configuration leaves out, where that is allowed; `memory` is the width
/// of the features that the cross blocks look at.
pub fn read_head(
    config: &Fields<'_>,
    base: HeadConfig,
    absent: Absent,
    memory: usize,
) -> Result<HeadConfig, CheckpointError> {
    let size = |key: &str, base: usize, range: RangeInclusive<usize>| {
        config.size(key, (absent == Absent::Kept).then_some(base), range)
    };
    let dit_width = size("input_embedding_dim", base.dit_width(), WIDTHS)?;
    let every = text_every(base.cross_attention).unwrap_or(1);
    let mut head = HeadConfig {
        hidden: size("hidden_size", base.hidden, WIDTHS)?,
        action_rows: size("action_horizon", base.action_rows, ROWS)?,
        state_width: size("max_state_dim", base.state_width, WIDTHS)?,
        action_width: size("max_action_dim", base.action_width, WIDTHS)?,
        slots: size("max_num_embodiments", base.slots, SLOTS)?,
        position_rows: size("max_seq_len", base.position_rows, WIDTHS)?,
        cross_attention: CrossAttention::Alternate {
            text_every: size("attend_text_every_n_blocks", every, LAYERS)?,
        },
        steps: size("num_inference_timesteps", base.steps, STEPS)?,
        timestep_buckets: size("num_timestep_buckets", base.timestep_buckets, BUCKETS)?,
        ..base
    };
    match config.object("diffusion_model_cfg")? {
        Some(dit) => read_dit(&dit, &mut head, memory)?,
        None if absent == Absent::Refused => {
            return Err(config.refuse("diffusion_model_cfg", "an object"));
        }
        None => {}
    }

    if head.action_rows > head.position_rows {
        let accepted = format!("at most max_seq_len = {}", head.position_rows);
        return Err(config.refuse("action_horizon", accepted));
    }
    check_head_widths(config, &head, dit_width)?;
    Ok(head)
}

/// Checks the widths that a configuration states twice: `dit_width` is its `input_embedding_dim`.
pub fn check_head_widths(
    config: &Fields<'_>,
    head: &HeadConfig,
    dit_width: usize,
) -> Result<(), CheckpointError> {
    if dit_width != head.dit_width() {
        let accepted = format!(
            "{} = num_attention_heads {} x attention_head_dim {} of diffusion_model_cfg",
            head.dit_width(),
            head.dit_heads,
            head.dit_head_dim
        );
        return Err(config.refuse("input_embedding_dim", accepted));
    }
    if head.hidden != head.dit_output {
        let accepted = format!("{}, diffusion_model_cfg.output_dim", head.dit_output);
        return Err(config.refuse("hidden_size", accepted));
    }
    Ok(())
}

/// `diffusion_model_cfg` of a head, as [`read_dit`] reads it back.
pub fn dit_to_json(head: &HeadConfig) -> Value {
    json!({
        "num_layers": head.dit_layers,
        "num_attention_heads": head.dit_heads,
        "attention_head_dim": head.dit_head_dim,
        "output_dim": head.dit_output,
        "norm_type": "ada_norm",
        "interleave_self_attention": true,
        "positional_embeddings": null,
        "final_dropout": true,
        "dropout": 0.2,
    })
}

/// `vl_self_attention_cfg` of an adapter.
pub fn adapter_to_json(adapter: &AdapterConfig) -> Value {
    json!({
        "num_layers": adapter.layers,
        "num_attention_heads": adapter.heads,
        "attention_head_dim": adapter.head_dim,
        "positional_embeddings": null,
        "final_dropout": true,
        "dropout": 0.2,
    })
}

/// Period with which the cross blocks look at text, where they look at text and pictures in turn.
pub fn text_every(cross_attention: CrossAttention) -> Option<usize> {
    match cross_attention {
        CrossAttention::Alternate { text_every } => Some(text_every),
        CrossAttention::All => None,
    }
}
