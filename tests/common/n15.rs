//! The goldens of N1.5, translated to the names and the JSON of the other versions' goldens.

use std::collections::HashMap;
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

use super::golden::Case;
use super::shared;

/// Parts of a name that stand for parts of ours, in the order in which they are replaced.
const NAMES: [(&str, &str); 15] = [
    ("vit_patch_conv", "vit.patch_embed"),
    ("vit_embeddings", "vit.embed"),
    ("vit_post_ln", "vit.post_ln"),
    ("vit_block_first", "vit.block0"),
    ("vit_block", "vit.block"),
    ("projector_out", "connector.out"),
    ("llm_inputs_embeds", "llm.embeds"),
    ("llm_layer0_input_norm", "llm.layer0.ln1"),
    ("llm_layer_first", "llm.layer0"),
    ("llm_layer", "llm.layer"),
    ("vl_self_attention_block", "vl_self_attention.block"),
    ("_adanorm", ".norm1"),
    ("_ln1", ".ln1"),
    ("_attn", ".attn"),
    ("action_decoder_out", "decoder_out"),
];

/// Tensors that are no intermediate values of the network.
const INPUTS: [&str; 7] = [
    "attention_mask",
    "embodiment_id",
    "initial_noise",
    "input_ids",
    "pixel_values",
    "state_mask",
    "state_normalized",
];

/// Layers of the network, which the goldens' names leave open.
#[derive(Clone, Copy)]
pub struct Depth {
    pub vision: usize,
    pub llm: usize,
}

/// Cases of the tiny checkpoint.
const TINY_CASES: [&str; 4] =
    ["case0_256x256", "case1_640x480", "case2_1280x720", "case3_droid_3cam_320x180"];

/// Layers of the tiny network.
const TINY_DEPTH: Depth = Depth { vision: 2, llm: 2 };

/// Every tiny case of the goldens; none, and a line that says so, where they are not here.
pub fn tiny_cases() -> Vec<Case> {
    let Some(dir) = shared("golden/n15/cases-tiny") else { return vec![] };
    TINY_CASES.iter().map(|name| open(&dir.join(name), TINY_DEPTH)).collect()
}

/// Opens the case in `dir`.
pub fn open(dir: &Path, depth: Depth) -> Case {
    let read = |file: &str| std::fs::read(dir.join(file));
    let manifest: Value = serde_json::from_slice(&read("manifest.json").unwrap()).unwrap();
    let thin: Value =
        read("golden.thin.json").map_or(json!({}), |bytes| serde_json::from_slice(&bytes).unwrap());
    let bytes = read("golden.safetensors").unwrap();
    let stored = SafeTensors::deserialize(&bytes).unwrap();

    let mut thinned = HashMap::new();
    let mut tensors = HashMap::new();
    for (name, view) in stored.tensors() {
        let step = thin[&name]["step"].as_u64().unwrap_or(1) as usize;
        // Thinned along its channels, which are our columns.
        if name == "vit_patch_conv" && step > 1 {
            continue;
        }
        let Some(ours) = translate(&name, depth) else { continue };
        let (shape, data) = match (name.as_str(), view.dtype()) {
            ("vit_patch_conv", _) => channels_last(&view),
            (_, Dtype::F64) => (view.shape().to_vec(), rounded(&view)),
            _ => (view.shape().to_vec(), view.data().to_vec()),
        };
        let dtype = if view.dtype() == Dtype::F64 { Dtype::F32 } else { view.dtype() };
        if step > 1 {
            thinned.insert(ours.clone(), step);
        }
        tensors.insert(ours, (dtype, shape, data));
    }
    let views = tensors.iter().map(|(name, (dtype, shape, data))| {
        (name.as_str(), TensorView::new(*dtype, shape.clone(), data).unwrap())
    });
    let bytes = safetensors::serialize(views, None).unwrap();
    let name = manifest["name"].as_str().unwrap();
    Case::from_parts(name, dir, bytes, case_json(&manifest), thinned)
}

/// Our name of a tensor; `None` for what has no counterpart.
fn translate(name: &str, depth: Depth) -> Option<String> {
    if name == "action_pred_normalized" {
        return Some("action_pred".to_owned());
    }
    let is_input = INPUTS.contains(&name);
    if is_input || ["action.", "image.", "state_raw."].iter().any(|part| name.starts_with(part)) {
        return Some(name.to_owned());
    }
    if name.ends_with(".timestep") {
        return None;
    }
    // The actions after a step are those before the next.
    if let Some(step) = name.strip_prefix('k').and_then(|rest| rest.strip_suffix(".actions_out")) {
        return Some(format!("tap.actions.step{}", step.parse::<usize>().unwrap() + 1));
    }
    let last_vision = format!("vit.block{}", depth.vision - 1);
    let last_llm = format!("llm.layer{}", depth.llm - 1);
    let name = name.replace("vit_block_last", &last_vision).replace("llm_layer_last", &last_llm);
    let ours = NAMES.iter().fold(name, |name, (theirs, ours)| name.replace(theirs, ours));
    Some(format!("tap.{ours}"))
}

/// `[images, channels, rows, cols]` to `[images * rows * cols, channels]`.
fn channels_last(view: &TensorView<'_>) -> (Vec<usize>, Vec<u8>) {
    let [images, channels, rows, cols] = view.shape() else { panic!("four axes") };
    assert_eq!(view.dtype(), Dtype::F32);
    let plane = rows * cols;
    let value = |i: usize| {
        let (cell, channel) = (i / channels, i % channels);
        let at = (cell / plane * channels + channel) * plane + cell % plane;
        &view.data()[4 * at..][..4]
    };
    let data = (0..images * channels * plane).flat_map(|i| value(i).iter().copied()).collect();
    (vec![images * plane, *channels], data)
}

/// f64 as the f32 that the model reads.
fn rounded(view: &TensorView<'_>) -> Vec<u8> {
    let values = view.data().chunks_exact(8);
    let values = values.map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()) as f32);
    values.flat_map(f32::to_le_bytes).collect()
}

fn case_json(manifest: &Value) -> Value {
    let frames: Vec<Value> = manifest["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|frame| json!({ "camera": frame["camera"], "png": frame["file"] }))
        .collect();
    let state: serde_json::Map<String, Value> = manifest["state"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(group, values)| (group.clone(), json!([values])))
        .collect();
    json!({
        "embodiment": manifest["embodiment_tag"],
        "data_config": manifest["data_config"],
        "state_dtype": manifest["state_dtype"],
        "seed": manifest["noise_seed"],
        "instruction": manifest["instruction"],
        "frames": frames,
        "state": state,
    })
}
