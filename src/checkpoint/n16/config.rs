//! `config.json` and the optional `eagle_config.json` of an N1.6 snapshot (spec sections 2.1 and 2.2).

use serde_json::{Value, json};

use super::{Config, HeadConfig, LlmConfig, VisionConfig};
use crate::checkpoint::CheckpointError;
use crate::checkpoint::json::Fields;
use crate::checkpoint::network::fields::{
    self, Absent, LAYERS, WIDTHS, dit_to_json, override_qwen3, override_siglip, text_every,
};
use crate::contract::Version;

/// The only backbone whose geometry is built in.
pub(in crate::checkpoint) const BACKBONE: &str = "nvidia/Eagle-Block2A-2B-v2";

/// Decoder layers that the released language model has before `select_layer` cuts it.
const LLM_LAYERS_BEFORE_CUT: usize = 28;

/// Defaults of the reference code for keys that `config.json` leaves out, where they are not the released values.
mod default {
    pub const SELECT_LAYER: usize = 16;
    pub const BACKBONE_WIDTH: usize = 2048;
    pub const ACTION_HORIZON: usize = 16;
    pub const STATE_AND_ACTION_WIDTH: usize = 29;
}

/// Shapes of stored tensors by name, for sizes that no file states.
pub(in crate::checkpoint) type ShapeOf<'a> = &'a dyn Fn(&str) -> Option<&'a [usize]>;

/// Builds the network's configuration.
///
/// `eagle` is the extra file that overrides the built-in backbone; sizes that it leaves out are read off the stored
/// tensors. `image_side` comes from the processor.
///
/// # Errors
/// A value that is not served or does not fit another one, by file and key.
pub(in crate::checkpoint) fn read(
    config: &Fields<'_>,
    eagle: Option<&Fields<'_>>,
    shape_of: ShapeOf<'_>,
    image_side: usize,
) -> Result<Config, CheckpointError> {
    config.exactly("model_type", json!(Version::N16.model_type()))?;
    config.only("backbone_model_type", json!("eagle"))?;
    if eagle.is_none() {
        config.only("model_name", json!(BACKBONE))?;
    }
    for flag in ["use_vlln", "use_alternate_vl_dit", "add_pos_embed"] {
        config.only(flag, json!(true))?;
    }

    let (vision, llm) = read_backbone(config, eagle, shape_of, image_side)?;
    let head = read_head(config, llm.width)?;
    Ok(Config { vision, llm, head })
}

fn read_backbone(
    config: &Fields<'_>,
    eagle: Option<&Fields<'_>>,
    shape_of: ShapeOf<'_>,
    image_side: usize,
) -> Result<(VisionConfig, LlmConfig), CheckpointError> {
    let released = Config::released();
    let mut vision = VisionConfig { image_side, ..released.vision };
    let mut llm = released.llm;
    let mut layers_before_cut = LLM_LAYERS_BEFORE_CUT;
    if let Some(eagle) = eagle {
        measure(&mut vision, &mut llm, shape_of);
        override_siglip(&mut vision, &eagle.object_or_empty("vision_config")?)?;
        let text = eagle.object_or_empty("text_config")?;
        layers_before_cut = text.size("num_hidden_layers", Some(layers_before_cut), LAYERS)?;
        override_qwen3(&mut llm, &text)?;
    }

    llm.layers = config.size("select_layer", Some(default::SELECT_LAYER), LAYERS)?;
    if llm.layers > layers_before_cut {
        let accepted = format!("at most {layers_before_cut}, the layers of the language model");
        return Err(config.refuse("select_layer", accepted));
    }
    let width = config.size("backbone_embedding_dim", Some(default::BACKBONE_WIDTH), WIDTHS)?;
    if width != llm.width {
        let accepted = format!("{}, the width of the language model", llm.width);
        return Err(config.refuse("backbone_embedding_dim", accepted));
    }
    Ok((vision, llm))
}

/// Reads sizes off the tensors that are there; what cannot be seen keeps its value.
fn measure(vision: &mut VisionConfig, llm: &mut LlmConfig, shape_of: ShapeOf<'_>) {
    const TOWER: &str = "backbone.model.vision_model.vision_model";
    const LANGUAGE: &str = "backbone.model.language_model.model";
    let tower_layer = |layer: usize, name: &str| {
        shape_of(&format!("{TOWER}.encoder.layers.{layer}.{name}.weight"))
    };
    let language_layer = |name: &str| shape_of(&format!("{LANGUAGE}.layers.0.{name}.weight"));

    if let Some([width, _]) = shape_of(&format!("{TOWER}.embeddings.patch_embedding.weight")) {
        vision.width = *width;
    }
    if let Some([mlp_width, _]) = tower_layer(0, "mlp.fc1") {
        vision.mlp_width = *mlp_width;
    }
    let layers = LAYERS.take_while(|layer| tower_layer(layer - 1, "layer_norm1").is_some()).count();
    if layers > 0 {
        vision.layers = layers;
    }

    if let Some([vocabulary, width]) = shape_of(&format!("{LANGUAGE}.embed_tokens.weight")) {
        (llm.vocabulary, llm.width) = (*vocabulary, *width);
    }
    if let Some([mlp_width, _]) = language_layer("mlp.gate_proj") {
        llm.mlp_width = *mlp_width;
    }
    if let Some([head_dim]) = language_layer("self_attn.q_norm").filter(|shape| shape != &[0]) {
        llm.head_dim = *head_dim;
        if let Some([query, _]) = language_layer("self_attn.q_proj") {
            llm.heads = query / head_dim;
        }
        if let Some([key, _]) = language_layer("self_attn.k_proj") {
            llm.kv_heads = key / head_dim;
        }
    }
}

/// The reference's defaults for keys that `config.json` leaves out are not all what the released file says.
fn read_head(config: &Fields<'_>, memory: usize) -> Result<HeadConfig, CheckpointError> {
    let base = HeadConfig {
        action_rows: default::ACTION_HORIZON,
        state_width: default::STATE_AND_ACTION_WIDTH,
        action_width: default::STATE_AND_ACTION_WIDTH,
        ..Config::released().head
    };
    fields::read_head(config, base, Absent::Kept, memory)
}

/// `config.json` and `eagle_config.json` of a network, as [`read`] reads them back.
pub(in crate::checkpoint) fn to_json(config: &Config) -> (Value, Value) {
    let Config { vision, llm, head } = config;
    let network = json!({
        "architectures": [Version::N16.model_type()],
        "model_type": Version::N16.model_type(),
        "model_name": BACKBONE,
        "backbone_model_type": "eagle",
        "torch_dtype": "bfloat16",
        "select_layer": llm.layers,
        "backbone_embedding_dim": llm.width,
        "action_horizon": head.action_rows,
        "max_state_dim": head.state_width,
        "max_action_dim": head.action_width,
        "hidden_size": head.hidden,
        "input_embedding_dim": head.dit_width(),
        "add_pos_embed": true,
        "max_seq_len": head.position_rows,
        "use_vlln": true,
        "use_alternate_vl_dit": true,
        "attend_text_every_n_blocks": text_every(head.cross_attention),
        "diffusion_model_cfg": dit_to_json(head),
        "num_inference_timesteps": head.steps,
        "num_timestep_buckets": head.timestep_buckets,
        "max_num_embodiments": head.slots,
        "state_dropout_prob": 0.0,
    });
    let backbone = json!({
        "vision_config": {
            "hidden_size": vision.width,
            "intermediate_size": vision.mlp_width,
            "num_hidden_layers": vision.layers,
            "num_attention_heads": vision.heads,
        },
        "text_config": {
            "hidden_size": llm.width,
            "intermediate_size": llm.mlp_width,
            "num_hidden_layers": LLM_LAYERS_BEFORE_CUT.max(llm.layers),
            "num_attention_heads": llm.heads,
            "num_key_value_heads": llm.kv_heads,
            "head_dim": llm.head_dim,
        },
    });
    (network, backbone)
}
