//! `GET /info`: what the server takes, answers and is made of.

use serde_json::{Map, Value, json};

use super::request::StateDtype;
use super::{Identity, Limits};
use crate::contract::FRAME_SIDE;
use crate::decode;
use crate::encode::prompt::MAX_INSTRUCTION_CHARS;
use crate::serve::Model;

/// The observation contract; also told to whoever is refused.
pub fn inputs(model: &Model) -> Value {
    let robot = &model.embodiment;
    let [rows, cols] = model.noise_shape;
    let state: Map<String, Value> =
        robot.state.iter().map(|group| (group.name.clone(), group.dim.into())).collect();
    json!({
        "embodiment": robot.tag,
        "images": {
            "cameras": robot.cameras,
            "frames_per_camera": robot.frame_deltas.len(),
            "video_delta_indices": robot.frame_deltas,
            "frame_order": "oldest first",
            "encoding": "base64 of PNG or JPEG",
            "side_pixels": [FRAME_SIDE.start(), FRAME_SIDE.end()],
            "aspect_ratios": model.frame_shapes.aspect_ratios(),
        },
        "state": state,
        "state_dtype": StateDtype::default_of(model.version),
        "instruction": {
            "aliases": ["instruction", "language", "prompt"],
            "characters": [1, MAX_INSTRUCTION_CHARS],
            "tokens": model.text_limit,
        },
        "noise": [rows, cols],
    })
}

/// All that `GET /info` tells.
pub fn info(identity: &Identity, model: &Model, inputs: &Value, limits: &Limits) -> Value {
    let robot = &model.embodiment;
    let warm_up: Vec<f64> =
        model.warm_up_times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
    let groups = robot.action.iter().map(|group| {
        json!({
            "name": group.name,
            "dim": group.dim,
            "representation": decode::representation(group),
            "normalization": group.normalization.name(),
        })
    });
    json!({
        "model": identity.model,
        "version": model.version.name(),
        "task": format!("one observation in, a chunk of {} actions out", robot.horizon),
        "hardware": identity.device,
        "stage": { "served": model.backend },
        "layout": model.layout,
        "embodiment": robot.tag,
        "embodiment_id": robot.slot,
        "embodiments_of_checkpoint": model.tags,
        "weights": {
            "repo": identity.checkpoint,
            "revision": identity.revision,
            "snapshot_dir": model.snapshot,
            "fingerprint": model.fingerprint,
        },
        "source": { "server": env!("CARGO_PKG_NAME"), "server_version": env!("CARGO_PKG_VERSION") },
        "inputs": inputs,
        "outputs": {
            "action_horizon": robot.horizon,
            "groups": groups.collect::<Vec<_>>(),
            "values": "physical units, rows are steps; relative outputs are composed onto the state of the request",
        },
        "noise": { "shape": model.noise_shape, "default_seed": model.default_seed },
        "limits": {
            "batch": 1,
            "body_bytes": limits.body_bytes,
            "body_seconds": limits.body.as_secs_f64(),
            "connections": limits.connections,
        },
        "load_seconds": model.load_time.as_secs_f64(),
        "warmup_latency_ms": warm_up,
        "warmup_fidelity_vs_golden": {
            "verdict": model.fidelity,
            "groups": model.agreement.as_ref().map(|agreement| &agreement.0),
        },
        "license": identity.license,
    })
}
