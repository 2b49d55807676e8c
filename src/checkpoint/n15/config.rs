//! `config.json` and the optional `eagle/config.json` of an N1.5 snapshot (spec section 3.1).

use serde_json::{Value, json};

use super::{AdapterConfig, Config, HeadConfig, LlmConfig, VisionConfig, data_configs};
use crate::checkpoint::CheckpointError;
use crate::checkpoint::json::Fields;
use crate::checkpoint::network::fields::{
    BUCKETS, HEADS, LAYERS, ROWS, SLOTS, STEPS, WIDTHS, adapter_to_json, check_head_widths,
    dit_to_json, override_qwen3, override_siglip, read_dit,
};
use crate::contract::Version;
use crate::encode::prompt::n15::IMAGE_TOKEN_ID;

/// Decoder layers that the released language model has before `select_layer` cuts it.
const LLM_LAYERS_BEFORE_CUT: usize = 28;

/// Defaults of the reference code for keys that `config.json` leaves out. Some are not what the released file says.
mod default {
    pub const FEATURES: usize = 1536;
    pub const HIDDEN: usize = 1024;
    pub const DIT_WIDTH: usize = 1536;
    pub const FUTURE_TOKENS: usize = 32;
    pub const POSITION_ROWS: usize = 1024;
    pub const SLOTS: usize = 32;
}

/// Builds the network's configuration; `eagle` is the extra file that overrides the built-in backbone.
///
/// # Errors
/// A value that is not served or does not fit another one, by file and key.
pub(super) fn read(
    config: &Fields<'_>,
    eagle: Option<&Fields<'_>>,
) -> Result<Config, CheckpointError> {
    config.exactly("model_type", json!(Version::N15.model_type()))?;
    config.only("action_dim", json!(data_configs::ACTION_WIDTH))?;
    let (vision, mut llm, layers_before_cut) = read_backbone(eagle)?;

    let backbone = required_object(config, "backbone_cfg")?;
    llm.layers = backbone.size("select_layer", None, LAYERS)?;
    if llm.layers > layers_before_cut {
        let accepted = format!("at most {layers_before_cut}, the layers of the language model");
        return Err(backbone.refuse("select_layer", accepted));
    }
    let projection = match backbone.get("project_to_dim") {
        Some(Value::Null) => None,
        _ => Some(backbone.size("project_to_dim", None, WIDTHS)?),
    };

    let head_fields = required_object(config, "action_head_cfg")?;
    let features = projection.unwrap_or(llm.width);
    let head = read_head(&head_fields, features)?;
    let adapter = read_adapter(&required_object(&head_fields, "vl_self_attention_cfg")?, features)?;
    Ok(Config { vision, llm, projection, adapter, head })
}

fn required_object<'a>(fields: &Fields<'a>, key: &str) -> Result<Fields<'a>, CheckpointError> {
    fields.object(key)?.ok_or_else(|| fields.refuse(key, "an object"))
}

/// The backbone, and how many layers its language model has before it is cut.
fn read_backbone(
    eagle: Option<&Fields<'_>>,
) -> Result<(VisionConfig, LlmConfig, usize), CheckpointError> {
    let Config { mut vision, mut llm, .. } = Config::released();
    let Some(eagle) = eagle else { return Ok((vision, llm, LLM_LAYERS_BEFORE_CUT)) };
    for (key, served) in [
        ("select_layer", json!(-1)),
        ("use_pixel_shuffle", json!(false)),
        ("mlp_connector_layers", json!(1)),
        ("image_token_index", json!(IMAGE_TOKEN_ID)),
        ("force_image_size", json!(vision.image_side)),
    ] {
        eagle.only(key, served)?;
    }
    let tower = eagle.object_or_empty("vision_config")?;
    tower.only("image_size", json!(vision.image_side))?;
    override_siglip(&mut vision, &tower)?;
    let text = eagle.object_or_empty("text_config")?;
    override_qwen3(&mut llm, &text)?;
    let layers = text.size("num_hidden_layers", Some(LLM_LAYERS_BEFORE_CUT), LAYERS)?;
    Ok((vision, llm, layers))
}

/// `features` is the width of what the backbone delivers.
fn read_head(config: &Fields<'_>, features: usize) -> Result<HeadConfig, CheckpointError> {
    for flag in ["use_vlln", "add_pos_embed"] {
        config.only(flag, json!(true))?;
    }
    // What the data configs make of state and actions.
    config.exactly("max_state_dim", json!(data_configs::STATE_WIDTH))?;
    config.exactly("max_action_dim", json!(data_configs::ACTION_WIDTH))?;
    config.only("action_dim", json!(data_configs::ACTION_WIDTH))?;
    let width = config.size("backbone_embedding_dim", Some(default::FEATURES), WIDTHS)?;
    if width != features {
        let accepted = format!("{features}, the width of the backbone's features");
        return Err(config.refuse("backbone_embedding_dim", accepted));
    }

    // The reference replaces this by the data config's horizon, as does `released`.
    config.size("action_horizon", None, ROWS)?;
    let mut head = HeadConfig {
        hidden: config.size("hidden_size", Some(default::HIDDEN), WIDTHS)?,
        future_tokens: config.size(
            "num_target_vision_tokens",
            Some(default::FUTURE_TOKENS),
            ROWS,
        )?,
        slots: config.size("max_num_embodiments", Some(default::SLOTS), SLOTS)?,
        position_rows: config.size("max_seq_len", Some(default::POSITION_ROWS), WIDTHS)?,
        steps: config.size("num_inference_timesteps", None, STEPS)?,
        timestep_buckets: config.size("num_timestep_buckets", None, BUCKETS)?,
        ..Config::released().head
    };
    read_dit(&required_object(config, "diffusion_model_cfg")?, &mut head, features)?;

    if head.position_rows < head.action_rows {
        let accepted = format!("at least {}, the rows of a chunk", head.action_rows);
        return Err(config.refuse("max_seq_len", accepted));
    }
    let dit_width = config.size("input_embedding_dim", Some(default::DIT_WIDTH), WIDTHS)?;
    check_head_widths(config, &head, dit_width)?;
    Ok(head)
}

/// A key that the reference has other defaults for must be there, as in `diffusion_model_cfg`.
fn read_adapter(fields: &Fields<'_>, features: usize) -> Result<AdapterConfig, CheckpointError> {
    const SIZES: [&str; 3] = ["num_layers", "num_attention_heads", "attention_head_dim"];
    const INACTIVE: [&str; 6] = [
        "positional_embeddings",
        "dropout",
        "final_dropout",
        "compute_dtype",
        "max_num_positional_embeddings",
        "upcast_attention",
    ];
    let adapter = AdapterConfig {
        layers: fields.size("num_layers", None, LAYERS)?,
        heads: fields.size("num_attention_heads", None, HEADS)?,
        head_dim: fields.size("attention_head_dim", None, WIDTHS)?,
    };
    fields.exactly("positional_embeddings", Value::Null)?;
    let fixed = [("attention_bias", json!(true)), ("activation_fn", json!("gelu-approximate"))];
    for key in fields.keys() {
        if let Some((_, served)) = fixed.iter().find(|(name, _)| *name == key) {
            fields.only(key, served.clone())?;
        } else if !SIZES.contains(&key) && !INACTIVE.contains(&key) {
            return Err(fields.refuse(key, "no such key: what it does is not implemented"));
        }
    }
    if adapter.heads * adapter.head_dim != features {
        let accepted =
            format!("{features} columns of features / {} attention heads", adapter.heads);
        return Err(fields.refuse("attention_head_dim", accepted));
    }
    Ok(adapter)
}

/// `config.json` and `eagle/config.json` of a network, as [`read`] reads them back.
pub(in crate::checkpoint) fn to_json(config: &Config) -> (Value, Value) {
    let Config { vision, llm, projection, adapter, head } = config;
    let mut dit = dit_to_json(head);
    dit["cross_attention_dim"] = json!(config.features());
    let network = json!({
        "architectures": ["GR00T_N1_5"],
        "model_type": Version::N15.model_type(),
        "torch_dtype": "bfloat16",
        "compute_dtype": "bfloat16",
        "action_dim": head.action_width,
        "action_horizon": head.action_rows,
        "hidden_size": llm.width,
        "backbone_cfg": {
            "select_layer": llm.layers,
            "project_to_dim": projection,
            "reproject_vision": false,
            "load_bf16": false,
            "use_flash_attention": true,
            "tune_llm": false,
            "tune_visual": true,
        },
        "action_head_cfg": {
            "action_dim": head.action_width,
            "action_horizon": head.action_rows,
            "max_action_dim": head.action_width,
            "max_state_dim": head.state_width,
            "hidden_size": head.hidden,
            "input_embedding_dim": head.dit_width(),
            "backbone_embedding_dim": config.features(),
            "num_inference_timesteps": head.steps,
            "num_timestep_buckets": head.timestep_buckets,
            "num_target_vision_tokens": head.future_tokens,
            "max_num_embodiments": head.slots,
            "max_seq_len": head.position_rows,
            "add_pos_embed": true,
            "use_vlln": true,
            "diffusion_model_cfg": dit,
            "vl_self_attention_cfg": adapter_to_json(adapter),
        },
    });
    let backbone = json!({
        "image_token_index": IMAGE_TOKEN_ID,
        "select_layer": -1,
        "mlp_connector_layers": 1,
        "use_pixel_shuffle": false,
        "vision_config": {
            "hidden_size": vision.width,
            "intermediate_size": vision.mlp_width,
            "num_hidden_layers": vision.layers,
            "num_attention_heads": vision.heads,
            "image_size": vision.image_side,
            "patch_size": vision.patch,
        },
        "text_config": {
            "hidden_size": llm.width,
            "intermediate_size": llm.mlp_width,
            "num_hidden_layers": LLM_LAYERS_BEFORE_CUT.max(llm.layers),
            "num_attention_heads": llm.heads,
            "num_key_value_heads": llm.kv_heads,
            "head_dim": llm.head_dim,
            "vocab_size": llm.vocabulary,
        },
    });
    (network, backbone)
}
