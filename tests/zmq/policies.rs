//! Served bytes are those that the policy predicts, for every version, in every dialect.

use std::path::Path;
use std::thread;

use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::{ActionChunk, Observation, PredictOptions, Version};
use gr00t_blackhole::policy::{Policy, PolicyOptions};
use gr00t_blackhole::serve::arrays::{
    Array, Dialect, Dtype, Form, Keys, Map, Value, decode, encode,
};
use gr00t_blackhole::serve::zmq::{Handler, Settings};
use tempfile::TempDir;

use crate::client::{Client, Serving};
use crate::messages::{error_of, plain};

const DIALECTS: [Dialect; 3] = [
    Dialect { form: Form::Npy, keys: Keys::Text },
    Dialect { form: Form::MsgpackNumpy, keys: Keys::Binary },
    Dialect { form: Form::Openpi, keys: Keys::Binary },
];

fn policy(version: Version, folder: &Path) -> Policy {
    let snapshot = folder.join(version.name());
    if !snapshot.exists() {
        synth::write(version, Size::Tiny, &snapshot, &|_, _| {}).unwrap();
    }
    let tag = match version {
        Version::N15 | Version::N16 => "gr1",
        Version::N17 => "oxe_droid_relative_eef_relative_joint",
    };
    let embodiment = Some(tag.to_owned());
    Policy::load(&PolicyOptions { snapshot, embodiment, ..PolicyOptions::default() }).unwrap()
}

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

fn nested(observation: &Observation, language_key: &str) -> Map<'static> {
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

fn flat(observation: &Observation, language_key: &str) -> Map<'static> {
    let mut map = Map::default();
    for camera in observation.frames.keys() {
        map = map.with(format!("video.{camera}"), video(observation, camera));
    }
    for group in observation.state.keys() {
        map = map.with(format!("state.{group}"), state(observation, group));
    }
    map.with(language_key.to_owned(), Value::List(vec![observation.instruction.clone().into()]))
}

fn get_action(data: Map<'static>, dialect: Dialect) -> Vec<u8> {
    let request = Map::default().with("endpoint", "get_action").with("data", Value::Map(data));
    encode(&Value::Map(request), dialect)
}

fn in_envelope(observation: Map<'static>) -> Map<'static> {
    Map::default().with("observation", Value::Map(observation)).with("options", Value::Nil)
}

/// Asserts that the actions are the chunk's, group by group, in the chunk's order.
fn assert_actions(actions: &Value<'_>, prefix: &str, chunk: &ActionChunk) {
    let map = actions.as_map().unwrap();
    assert_eq!(map.len(), chunk.groups.len());
    for ((key, value), group) in map.iter().zip(&chunk.groups) {
        assert_eq!(key.name(), format!("{prefix}{}", group.name));
        let Value::Array(array) = value else { panic!("{value:?} is no array") };
        assert_eq!(array.dtype(), Dtype::F32);
        assert_eq!(array.shape(), [1, chunk.horizon, group.dim]);
        let expected: Vec<u8> = group.values.iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(array.bytes(), expected, "{}", group.name);
    }
}

#[test]
fn served_bytes_are_those_of_predict() {
    let folder = TempDir::new().unwrap();
    // The dialect is no matter of the version's; one for each saves predictions.
    for (version, dialect) in Version::ALL.into_iter().zip(DIALECTS) {
        let mut policy = policy(version, folder.path());
        let mut observation = policy.made_up_observation().unwrap();
        observation.stamp_ns = 0;
        let chunk = policy.predict(&observation, &PredictOptions::default()).unwrap();
        let key = policy.embodiment().language_key.clone();
        let mut handler = Handler::new(policy, Settings::default());
        let request = get_action(in_envelope(nested(&observation, &key)), dialect);
        let answer = handler.handle(&request);
        assert_eq!(handler.handle(&request), answer);
        let message = decode(&answer).unwrap();
        assert_eq!(message.dialect, Some(dialect));
        let Value::List(items) = message.value else { panic!("{:?}", error_of(&answer)) };
        assert_actions(&items[0], "", &chunk);
        assert_eq!(items[1], Value::Map(Map::default()));

        let answer = handler.handle(&get_action(flat(&observation, &key), dialect));
        assert_actions(&decode(&answer).unwrap().value, "action.", &chunk);
        let configs = handler.handle(&plain("get_modality_config", None));
        assert_eq!(error_of(&configs), None);
    }
}

#[test]
fn what_a_policy_refuses_reaches_the_client() {
    let folder = TempDir::new().unwrap();
    let mut policy = policy(Version::N16, folder.path());
    let mut observation = policy.made_up_observation().unwrap();
    let (group, values) = observation.state.iter_mut().next().unwrap();
    values.push(0.0);
    let expected = format!("state group '{group}' has {} values", values.len());
    let key = policy.embodiment().language_key.clone();
    let mut handler = Handler::new(policy, Settings::default());
    let answer = handler.handle(&get_action(flat(&observation, &key), DIALECTS[0]));
    let error = error_of(&answer).unwrap();
    assert!(error.contains("observation refused") && error.contains(&expected), "{error}");
}

#[test]
fn concurrent_requests_get_the_answers_of_sequential_ones() {
    let folder = TempDir::new().unwrap();
    let mut policy = policy(Version::N16, folder.path());
    let observation = policy.made_up_observation().unwrap();
    let key = policy.embodiment().language_key.clone();
    let requests: Vec<Vec<u8>> = ["pick the pear", "pour"]
        .map(|instruction| Observation { instruction: instruction.into(), ..observation.clone() })
        .iter()
        .map(|observation| get_action(in_envelope(nested(observation, &key)), DIALECTS[1]))
        .collect();
    let mut handler = Handler::new(policy, Settings::default());
    let answers: Vec<Vec<u8>> = requests.iter().map(|request| handler.handle(request)).collect();
    assert_ne!(answers[0], answers[1]);

    let serving = Serving::start(self::policy(Version::N16, folder.path()), Settings::default());
    thread::scope(|scope| {
        for first in 0..2 {
            let (requests, answers) = (&requests, &answers);
            let address = serving.address;
            scope.spawn(move || {
                let mut client = Client::connect(address);
                for at in (0..2).cycle().skip(first).take(2) {
                    assert_eq!(client.ask(&requests[at]), answers[at], "{at}");
                }
            });
        }
    });
}
