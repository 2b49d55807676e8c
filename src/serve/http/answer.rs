//! The answer of `POST /predict`.

use std::time::Duration;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::observation::{Asked, Received};
use super::request::StateDtype;
use crate::contract::{ActionGroup, Noise, Version};
use crate::serve::Model;
use crate::serve::engine::Prediction;

/// A map that is written in the order of its entries.
#[derive(Debug)]
pub struct Ordered<K, V>(pub Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for Ordered<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// One chunk as JSON; fields in the order of the documents.
#[derive(Serialize)]
pub struct Answer<'a> {
    /// Per group one row per step, physical units.
    actions: Ordered<&'a str, Vec<&'a [f32]>>,
    action_horizon: usize,
    action_keys: Vec<&'a str>,
    action_dims: Ordered<&'a str, usize>,
    /// Whether `actions` are as the network gives them, which they never are.
    normalized: bool,
    embodiment: &'a str,
    embodiment_id: usize,
    version: &'static str,
    model: &'a str,
    layout: &'a str,
    images: Ordered<&'a str, ReceivedImages>,
    /// Tokens of the whole prompt.
    seq_len: usize,
    /// Tokens of the instruction.
    prompt_tokens: usize,
    state_dtype: StateDtype,
    noise_source: &'static str,
    seed: Option<u64>,
    timing_ms: TimingMs,
    #[serde(skip_serializing_if = "Option::is_none")]
    action_pred_normalized: Option<Vec<&'a [f32]>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action_pred_valid_hd: Option<Vec<&'a [f32]>>,
}

#[derive(Serialize)]
struct ReceivedImages {
    #[serde(flatten)]
    received: Received,
    /// Time, rows and columns of patches.
    #[serde(skip_serializing_if = "Option::is_none")]
    vit_grid_thw: Option<[usize; 3]>,
}

/// Where the time of a request went, in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TimingMs {
    /// Base64, pictures and checks.
    decode: f64,
    /// Observation to model input.
    encode: f64,
    /// The four stages of the network.
    device: f64,
    /// Network output to physical actions.
    decode_actions: f64,
    /// From the whole body to the answer, the wait for the policy included.
    total: f64,
}

impl TimingMs {
    pub fn new(decode: Duration, prediction: &Prediction, total: Duration) -> Self {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let stages = &prediction.chunk.timings;
        Self {
            decode: milliseconds(decode),
            encode: milliseconds(stages.encode),
            device: milliseconds(stages.vision + stages.llm + stages.adapter + stages.denoise),
            decode_actions: milliseconds(stages.decode),
            total: milliseconds(total),
        }
    }
}

/// What the answer needs of a request once its observation is gone.
pub struct Request {
    received: Vec<(String, Received)>,
    state_dtype: StateDtype,
    return_normalized: bool,
    text_tokens: usize,
    seed: Option<u64>,
}

impl Request {
    pub fn of(asked: &Asked) -> Self {
        Self {
            received: asked.received.clone(),
            state_dtype: asked.state_dtype,
            return_normalized: asked.return_normalized,
            text_tokens: asked.text_tokens,
            seed: match asked.noise {
                Noise::Seed(seed) => Some(seed),
                Noise::Explicit(_) => None,
            },
        }
    }
}

impl<'a> Answer<'a> {
    pub fn new(
        name: &'a str,
        model: &'a Model,
        request: &'a Request,
        prediction: &'a Prediction,
        timing_ms: TimingMs,
    ) -> Self {
        let chunk = &prediction.chunk;
        let groups = || chunk.groups.iter();
        let grid = prediction.layout.grid;
        let vit_grid_thw = (model.version == Version::N17).then_some([1, grid[0], grid[1]]);
        let images = request.received.iter().map(|(camera, received)| {
            (camera.as_str(), ReceivedImages { received: received.clone(), vit_grid_thw })
        });
        let with_normalized = request.return_normalized;
        Self {
            actions: actions(&chunk.groups),
            action_horizon: chunk.horizon,
            action_keys: groups().map(|group| group.name.as_str()).collect(),
            action_dims: Ordered(groups().map(|g| (g.name.as_str(), g.dim)).collect()),
            normalized: false,
            embodiment: &chunk.embodiment,
            embodiment_id: model.embodiment.slot,
            version: chunk.version.name(),
            model: name,
            layout: &model.layout,
            images: Ordered(images.collect()),
            seq_len: prediction.layout.tokens,
            prompt_tokens: request.text_tokens,
            state_dtype: request.state_dtype,
            noise_source: if request.seed.is_some() { "seed" } else { "client" },
            seed: request.seed,
            timing_ms,
            action_pred_normalized: with_normalized
                .then(|| chunk.normalized.chunks_exact(model.noise_shape[1]).collect()),
            action_pred_valid_hd: with_normalized.then(|| valid(&chunk.normalized, model)),
        }
    }
}

/// Per group one row per step.
pub fn actions(groups: &[ActionGroup]) -> Ordered<&str, Vec<&[f32]>> {
    Ordered(
        groups
            .iter()
            .map(|group| (group.name.as_str(), group.values.chunks_exact(group.dim).collect()))
            .collect(),
    )
}

/// The part of the network's output that becomes actions: `[horizon, columns of the robot]`.
pub fn valid<'a>(normalized: &'a [f32], model: &Model) -> Vec<&'a [f32]> {
    let rows = normalized.chunks_exact(model.noise_shape[1]).take(model.embodiment.horizon);
    rows.map(|row| &row[..model.action_dim().min(row.len())]).collect()
}
