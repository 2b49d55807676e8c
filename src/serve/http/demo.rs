//! `GET /demo`: a request that is ready to be posted, and its answer.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{ExtendedColorType, ImageEncoder, codecs::png::PngEncoder};
use serde_json::{Map, Value, json};

use super::answer::{actions, valid};
use crate::contract::{Frame, Noise};
use crate::golden::DEFAULT_FLOOR;
use crate::serve::Model;

/// Request and expected answer.
pub fn demo(model: &Model) -> Value {
    let demo = &model.demo;
    let images: Map<String, Value> = demo
        .observation
        .frames
        .iter()
        .map(|(camera, frames)| {
            (camera.clone(), frames.iter().map(|frame| picture(frame)).collect())
        })
        .collect();
    let mut request = json!({
        "images": images,
        "state": demo.observation.state,
        "instruction": demo.observation.instruction,
        "embodiment": model.embodiment.tag,
    });
    let (name, value) = match &demo.noise {
        Noise::Seed(seed) => ("seed", json!(seed)),
        Noise::Explicit(values) => {
            let rows: Vec<&[f32]> = values.chunks_exact(model.noise_shape[1]).collect();
            ("noise", json!(rows))
        }
    };
    request[name] = value;
    let source = match &demo.golden {
        Some(dir) => format!("golden in {}", dir.display()),
        None => "predicted by this server when it started; says nothing of fidelity".to_owned(),
    };
    let mut expected = json!({
        "actions": actions(&demo.groups),
        "action_keys": demo.groups.iter().map(|group| &group.name).collect::<Vec<_>>(),
        "gates": { "pcc_min": DEFAULT_FLOOR },
        "source": source,
    });
    if let Some(normalized) = &demo.normalized {
        expected["action_pred_valid_hd"] = json!(valid(normalized, model));
    }
    json!({ "request": request, "expected": expected })
}

/// A frame as base64 of a PNG.
fn picture(frame: &Frame) -> String {
    let mut data = Cursor::new(Vec::new());
    PngEncoder::new(&mut data)
        .write_image(frame.rgb(), frame.width(), frame.height(), ExtendedColorType::Rgb8)
        .expect("a frame has as many bytes as its size says, and memory takes them");
    STANDARD.encode(data.into_inner())
}
