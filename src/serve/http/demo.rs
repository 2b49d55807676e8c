//! `GET /demo`: a request that is ready to be posted, and its answer.

use std::collections::BTreeMap;
use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{ExtendedColorType, ImageEncoder, codecs::png::PngEncoder};
use serde::Serialize;

use super::answer::{Ordered, actions, valid};
use crate::contract::{Frame, Noise};
use crate::golden::DEFAULT_FLOOR;
use crate::serve::Model;

/// The request, and what is known of its answer.
#[derive(Serialize)]
struct Text<'a> {
    request: Request<'a>,
    expected: Expected<'a>,
}

#[derive(Serialize)]
struct Request<'a> {
    images: BTreeMap<&'a str, Vec<String>>,
    state: &'a BTreeMap<String, Vec<f64>>,
    instruction: &'a str,
    embodiment: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    noise: Option<Vec<&'a [f32]>>,
}

#[derive(Serialize)]
struct Expected<'a> {
    actions: Ordered<&'a str, Vec<&'a [f32]>>,
    action_keys: Vec<&'a str>,
    gates: Gates,
    /// Where the actions are from.
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    action_pred_valid_hd: Option<Vec<&'a [f32]>>,
}

#[derive(Serialize)]
struct Gates {
    pcc_min: f64,
}

/// Request and expected answer, as JSON.
///
/// # Errors
/// None that JSON of numbers and texts has.
pub fn demo(model: &Model) -> serde_json::Result<Vec<u8>> {
    let demo = &model.demo;
    let frames = demo.observation.frames.iter();
    let (seed, noise) = match &demo.noise {
        Noise::Seed(seed) => (Some(*seed), None),
        Noise::Explicit(values) => {
            (None, Some(values.chunks_exact(model.noise_shape[1]).collect()))
        }
    };
    let source = match &demo.golden {
        Some(dir) => format!("golden in {}", dir.display()),
        None => "predicted by this server when it started; says nothing of fidelity".to_owned(),
    };
    serde_json::to_vec(&Text {
        request: Request {
            images: frames
                .map(|(camera, frames)| {
                    (camera.as_str(), frames.iter().map(|frame| picture(frame)).collect())
                })
                .collect(),
            state: &demo.observation.state,
            instruction: &demo.observation.instruction,
            embodiment: &model.embodiment.tag,
            seed,
            noise,
        },
        expected: Expected {
            actions: actions(&demo.groups),
            action_keys: demo.groups.iter().map(|group| group.name.as_str()).collect(),
            gates: Gates { pcc_min: DEFAULT_FLOOR },
            source,
            action_pred_valid_hd: demo.normalized.as_deref().map(|output| valid(output, model)),
        },
    })
}

/// A frame as base64 of a PNG.
fn picture(frame: &Frame) -> String {
    let mut data = Cursor::new(Vec::new());
    PngEncoder::new(&mut data)
        .write_image(frame.rgb(), frame.width(), frame.height(), ExtendedColorType::Rgb8)
        .expect("a frame has as many bytes as its size says, and memory takes them");
    STANDARD.encode(data.into_inner())
}
