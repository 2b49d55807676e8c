//! Requests for an action, made of an observation.

use gr00t_blackhole::contract::Observation;
use gr00t_blackhole::serve::arrays::{Array, Dialect, Dtype, Map, Value, encode};

/// Frames of one camera, `[1, times, height, width, 3]`.
fn video(observation: &Observation, camera: &str) -> Value<'static> {
    let frames = &observation.frames[camera];
    let (height, width) = (frames[0].height() as usize, frames[0].width() as usize);
    let data: Vec<u8> = frames.iter().flat_map(|frame| frame.rgb().to_vec()).collect();
    Value::Array(Array::new(Dtype::U8, vec![1, frames.len(), height, width, 3], data).unwrap())
}

/// Values of one group, `[1, 1, values]`.
fn state(observation: &Observation, group: &str) -> Value<'static> {
    let values = &observation.state[group];
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Value::Array(Array::new(Dtype::F64, vec![1, 1, values.len()], data).unwrap())
}

/// As N1.6 and N1.7 have it.
pub fn nested(observation: &Observation, language_key: &str) -> Map<'static> {
    let [mut video_map, mut state_map] = [Map::default(), Map::default()];
    for camera in observation.frames.keys() {
        video_map = video_map.with(camera.clone(), video(observation, camera));
    }
    for group in observation.state.keys() {
        state_map = state_map.with(group.clone(), state(observation, group));
    }
    let instruction = Value::List(vec![Value::List(vec![observation.instruction.clone().into()])]);
    Map::default()
        .with("video", Value::Map(video_map))
        .with("state", Value::Map(state_map))
        .with("language", Value::Map(Map::default().with(language_key.to_owned(), instruction)))
}

/// As N1.5 has it.
pub fn flat(observation: &Observation, language_key: &str) -> Map<'static> {
    let mut map = Map::default();
    for camera in observation.frames.keys() {
        map = map.with(format!("video.{camera}"), video(observation, camera));
    }
    for group in observation.state.keys() {
        map = map.with(format!("state.{group}"), state(observation, group));
    }
    map.with(language_key.to_owned(), Value::List(vec![observation.instruction.clone().into()]))
}

pub fn get_action(data: Map<'static>, dialect: Dialect) -> Vec<u8> {
    let request = Map::default().with("endpoint", "get_action").with("data", Value::Map(data));
    encode(&Value::Map(request), dialect)
}

pub fn in_envelope(observation: Map<'static>) -> Map<'static> {
    Map::default().with("observation", Value::Map(observation)).with("options", Value::Nil)
}
