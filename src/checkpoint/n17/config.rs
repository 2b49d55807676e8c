//! `config.json` and the optional `qwen3vl_config.json` of an N1.7 snapshot (spec sections 1.2 and 2.2).

use serde_json::{Value, json};

use super::{BACKBONE, Config, PROCESSOR_SCHEMA, Qwen3VisionConfig};
use crate::checkpoint::CheckpointError;
use crate::checkpoint::json::Fields;
use crate::checkpoint::network::fields::{
    Absent, HEADS, LAYERS, WIDTHS, adapter_to_json, dit_to_json, override_qwen3_layers, read_head,
    text_every,
};
use crate::checkpoint::network::{AdapterConfig, LlmConfig};
use crate::contract::Version;

/// Decoder layers that the released language model has before `select_layer` cuts it.
const LLM_LAYERS_BEFORE_CUT: usize = 28;

/// Ids of the backbone's special tokens, which an overriding file may state but not change.
const TOKEN_IDS: [(&str, u32); 4] = [
    ("image_token_id", 151_655),
    ("video_token_id", 151_656),
    ("vision_start_token_id", 151_652),
    ("vision_end_token_id", 151_653),
];

/// Builds the network's configuration. The reference's defaults are not the released values, so that whatever decides
/// the network must be in the file. `qwen` is the extra file that overrides the built-in backbone.
///
/// # Errors
/// A value that is missing, is not served or does not fit another one, by file and key.
pub(in crate::checkpoint) fn read(
    config: &Fields<'_>,
    qwen: Option<&Fields<'_>>,
) -> Result<Config, CheckpointError> {
    config.exactly("model_type", json!(Version::N17.model_type()))?;
    config.only("backbone_model_type", json!(PROCESSOR_SCHEMA.backbone_kind))?;
    if qwen.is_none() {
        PROCESSOR_SCHEMA.backbone.check(config, "model_name")?;
    }
    for flag in ["use_vlln", "use_alternate_vl_dit", "add_pos_embed"] {
        config.only(flag, json!(true))?;
    }
    config.only("state_history_length", json!(1))?;
    config.only("reproject_vision", json!(false))?;

    let Config { mut vision, mut llm, mut rope_sections, head, .. } = Config::released();
    let mut layers_before_cut = LLM_LAYERS_BEFORE_CUT;
    if let Some(qwen) = qwen {
        for (key, id) in TOKEN_IDS {
            qwen.only(key, json!(id))?;
        }
        let text = qwen.object_or_empty("text_config")?;
        layers_before_cut = text.size("num_hidden_layers", Some(layers_before_cut), LAYERS)?;
        override_qwen3_layers(&mut llm, &text)?;
        rope_sections = read_rope_sections(&text, &llm, rope_sections)?;
        override_tower(&mut vision, &qwen.object_or_empty("vision_config")?, llm.width)?;
    }
    llm.layers = config.size("select_layer", None, LAYERS)?;
    // Every DeepStack merger adds to the output of a layer of its own.
    let fewest = vision.deepstack_blocks.len().max(1);
    if !(fewest..=layers_before_cut).contains(&llm.layers) {
        let accepted = format!("{fewest} to {layers_before_cut}, the layers of the language model");
        return Err(config.refuse("select_layer", accepted));
    }
    let width = config.size("backbone_embedding_dim", None, WIDTHS)?;
    if width != llm.width {
        let accepted = format!("{}, the width of the language model", llm.width);
        return Err(config.refuse("backbone_embedding_dim", accepted));
    }
    let adapter = read_adapter(config, llm.width)?;
    let head = read_head(config, head, Absent::Refused, llm.width)?;
    Ok(Config { vision, llm, rope_sections, adapter, head })
}

fn read_rope_sections(
    text: &Fields<'_>,
    llm: &LlmConfig,
    built_in: [usize; 3],
) -> Result<[usize; 3], CheckpointError> {
    let frequencies = llm.head_dim / 2;
    let accepted = format!(
        "{{mrope_interleaved: true, rope_type: default, mrope_section: three counts that sum to {frequencies}}}"
    );
    let sections = match text.get("rope_scaling") {
        None => Some(built_in),
        Some(scaling) => {
            serde_json::from_value(scaling["mrope_section"].clone()).ok().filter(|_| {
                let plain = [Value::Null, json!("default")].contains(&scaling["rope_type"]);
                plain && scaling["mrope_interleaved"] == json!(true)
            })
        }
    };
    sections
        .filter(|sections: &[usize; 3]| {
            sections.iter().fold(0, |sum: usize, count| sum.saturating_add(*count)) == frequencies
        })
        .ok_or_else(|| text.refuse("rope_scaling", accepted))
}

fn override_tower(
    vision: &mut Qwen3VisionConfig,
    fields: &Fields<'_>,
    llm_width: usize,
) -> Result<(), CheckpointError> {
    vision.width = fields.size("hidden_size", Some(vision.width), WIDTHS)?;
    vision.mlp_width = fields.size("intermediate_size", Some(vision.mlp_width), WIDTHS)?;
    vision.layers = fields.size("depth", Some(vision.layers), LAYERS)?;
    vision.heads = fields.size("num_heads", Some(vision.heads), HEADS)?;
    if !vision.width.is_multiple_of(4 * vision.heads) {
        let accepted = format!(
            "heads of the width {} whose widths are multiples of 4: positions rotate pairs on two axes",
            vision.width
        );
        return Err(fields.refuse("num_heads", accepted));
    }
    let positions = vision.position_side * vision.position_side;
    let positions = fields.size("num_position_embeddings", Some(positions), WIDTHS)?;
    vision.position_side = positions.isqrt();
    if vision.position_side * vision.position_side != positions {
        return Err(fields.refuse("num_position_embeddings", "a square number"));
    }
    if let Some(value) = fields.get("deepstack_visual_indexes") {
        let blocks: Option<Vec<usize>> = serde_json::from_value(value.clone()).ok();
        let ascending = |blocks: &Vec<usize>| {
            blocks.windows(2).all(|pair| pair[0] < pair[1])
                && blocks.last().is_none_or(|last| *last < vision.layers)
        };
        vision.deepstack_blocks = blocks.filter(ascending).ok_or_else(|| {
            let accepted = format!("ascending blocks below the depth {}", vision.layers);
            fields.refuse("deepstack_visual_indexes", accepted)
        })?;
    } else if vision.deepstack_blocks.last().is_some_and(|last| *last >= vision.layers) {
        let accepted = format!("more blocks than {:?}", vision.deepstack_blocks);
        return Err(fields.refuse("depth", accepted));
    }
    fields.only("out_hidden_size", json!(llm_width))?;
    fields.only("patch_size", json!(vision.patch))?;
    fields.only("temporal_patch_size", json!(vision.temporal_patch))?;
    fields.only("spatial_merge_size", json!(vision.merge))?;
    fields.only("in_channels", json!(3))?;
    fields.only("hidden_act", json!("gelu_pytorch_tanh"))
}

/// Reads `vl_self_attention_cfg`; without it there is no adapter.
fn read_adapter(config: &Fields<'_>, width: usize) -> Result<AdapterConfig, CheckpointError> {
    const KEY: &str = "vl_self_attention_cfg";
    const INACTIVE: [&str; 2] = ["dropout", "final_dropout"];
    const READ: [&str; 3] = ["num_layers", "num_attention_heads", "attention_head_dim"];
    let absent = AdapterConfig { layers: 0, heads: 1, head_dim: width };
    if matches!(config.get(KEY), None | Some(Value::Null)) {
        return Ok(absent);
    }
    let Some(fields) = config.object(KEY)? else { return Ok(absent) };
    if fields.get("num_layers") == Some(&json!(0)) {
        return Ok(absent);
    }
    let adapter = AdapterConfig {
        layers: fields.size("num_layers", None, LAYERS)?,
        heads: fields.size("num_attention_heads", None, HEADS)?,
        head_dim: fields.size("attention_head_dim", None, WIDTHS)?,
    };
    if adapter.heads * adapter.head_dim != width {
        let accepted = format!("{width} / num_attention_heads, for backbone_embedding_dim {width}");
        return Err(fields.refuse("attention_head_dim", accepted));
    }
    fields.exactly("positional_embeddings", Value::Null)?;
    let fixed = [
        ("positional_embeddings", Value::Null),
        ("attention_bias", json!(true)),
        ("activation_fn", json!("gelu-approximate")),
    ];
    for key in fields.keys() {
        if let Some((_, served)) = fixed.iter().find(|(name, _)| *name == key) {
            fields.only(key, served.clone())?;
        } else if ![&READ[..], &INACTIVE].concat().contains(&key) {
            return Err(fields.refuse(key, "no such key: what it does is not implemented"));
        }
    }
    Ok(adapter)
}

/// `config.json` and `qwen3vl_config.json` of a network, as [`read`] reads them back.
pub(in crate::checkpoint) fn to_json(config: &Config) -> (Value, Value) {
    let Config { vision, llm, rope_sections, adapter, head } = config;
    let network = json!({
        "architectures": [Version::N17.model_type()],
        "model_type": Version::N17.model_type(),
        "model_name": BACKBONE,
        "backbone_model_type": PROCESSOR_SCHEMA.backbone_kind,
        "model_dtype": "bfloat16",
        "select_layer": llm.layers,
        "backbone_embedding_dim": llm.width,
        "action_horizon": head.action_rows,
        "max_state_dim": head.state_width,
        "max_action_dim": head.action_width,
        "state_history_length": 1,
        "hidden_size": head.hidden,
        "input_embedding_dim": head.dit_width(),
        "add_pos_embed": true,
        "max_seq_len": head.position_rows,
        "use_vlln": true,
        "use_alternate_vl_dit": true,
        "attend_text_every_n_blocks": text_every(head.cross_attention),
        "diffusion_model_cfg": dit_to_json(head),
        "vl_self_attention_cfg": adapter_to_json(adapter),
        "num_inference_timesteps": head.steps,
        "num_timestep_buckets": head.timestep_buckets,
        "max_num_embodiments": head.slots,
    });
    let mut backbone = json!({
        "model_type": "qwen3_vl",
        "text_config": {
            "hidden_size": llm.width,
            "intermediate_size": llm.mlp_width,
            "num_hidden_layers": LLM_LAYERS_BEFORE_CUT.max(llm.layers),
            "num_attention_heads": llm.heads,
            "num_key_value_heads": llm.kv_heads,
            "head_dim": llm.head_dim,
            "vocab_size": llm.vocabulary,
            "rope_theta": llm.rope_theta,
            "rope_scaling": {
                "mrope_interleaved": true,
                "mrope_section": rope_sections,
                "rope_type": "default",
            },
        },
        "vision_config": {
            "depth": vision.layers,
            "hidden_size": vision.width,
            "num_heads": vision.heads,
            "intermediate_size": vision.mlp_width,
            "num_position_embeddings": vision.position_side * vision.position_side,
            "deepstack_visual_indexes": vision.deepstack_blocks,
            "out_hidden_size": llm.width,
            "patch_size": vision.patch,
            "temporal_patch_size": vision.temporal_patch,
            "spatial_merge_size": vision.merge,
        },
    });
    for (key, id) in TOKEN_IDS {
        backbone[key] = json!(id);
    }
    (network, backbone)
}
