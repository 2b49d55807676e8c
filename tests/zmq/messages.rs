//! What clients ask, and what they are answered.

use std::collections::BTreeMap;
use std::sync::Arc;

use gr00t_blackhole::contract::{Frame, Noise, Observation, Version};
use gr00t_blackhole::serve::Token;
use gr00t_blackhole::serve::arrays::{Dialect, Map, Value, decode, encode};
use gr00t_blackhole::serve::zmq::Settings;
use serde_json::{Value as Json, json};

use crate::rig::Asking;
use crate::stored;
use crate::stub::Stub;

/// What every stored request shows.
fn observation() -> Observation {
    let frame = Frame::new(64, 64, vec![0; 64 * 64 * 3]).unwrap();
    Observation {
        stamp_ns: 0,
        frames: BTreeMap::from([("ego_view".to_owned(), vec![Arc::new(frame)])]),
        state: BTreeMap::from([
            ("left_arm".to_owned(), vec![0.5, -1.0, 2.0]),
            ("gripper".to_owned(), vec![0.25]),
        ]),
        instruction: "pick the pear".to_owned(),
    }
}

#[test]
fn answers_to_stored_requests_are_those_that_python_expects_byte_for_byte() {
    let mut predictions = 0;
    for exchange in stored::exchanges() {
        let stub = Stub::default();
        let asked = stub.asked.clone();
        let answer = Asking::stub(stub, Settings::default()).handle(&exchange.request);
        assert_eq!(answer, exchange.answer, "{}: {:?}", exchange.name, decode(&answer));
        for (found, options) in asked.lock().unwrap().iter() {
            assert_eq!(*found, observation(), "{}", exchange.name);
            assert_eq!(options.noise, Some(Noise::Seed(42)), "{}", exchange.name);
            predictions += 1;
        }
    }
    assert_eq!(predictions, 9);
}

#[test]
fn the_same_request_gets_the_same_answer() {
    let request = stored::request("nested/class");
    let handler = Asking::stub(Stub::default(), Settings::default());
    assert_eq!(handler.handle(&request), handler.handle(&request));
}

/// The stored request of N1.7 with these options.
fn with_options(options: Value<'static>) -> Vec<u8> {
    let stored = stored::request("nested/class");
    let Value::Map(mut request) = decode(&stored).unwrap().value else { panic!("no map") };
    let Some(Value::Map(mut data)) = request.take("data") else { panic!("no data") };
    data.take("options");
    let data = data.with("options", options);
    encode(&Value::Map(request.with("data", Value::Map(data))), Dialect::DEFAULT)
}

#[test]
fn a_seed_is_taken_from_the_options_and_others_are_left_alone() {
    let stub = Stub::default();
    let asked = stub.asked.clone();
    let handler = Asking::stub(stub, Settings::default());
    let options = Map::default().with("seed", Value::Unsigned(7)).with("denoising_steps", "many");
    for request in [with_options(Value::Map(options)), with_options(Value::Map(Map::default()))] {
        assert_eq!(error_of(&handler.handle(&request)), None);
    }
    let noise: Vec<_> = asked.lock().unwrap().iter().map(|(_, o)| o.noise.clone()).collect();
    assert_eq!(noise, [7, 42].map(|seed| Some(Noise::Seed(seed))));
    let refused =
        |options| Asking::stub(Stub::default(), Settings::default()).handle(&with_options(options));
    let seed = refused(Value::Map(Map::default().with("seed", Value::Negative(-1))));
    assert_eq!(
        error_of(&seed).unwrap(),
        "'options.seed' is a negative integer; accepted: an integer from 0 up"
    );
    assert!(error_of(&refused(Value::from("fast"))).unwrap().contains("'options' is a string"));
}

pub fn error_of(answer: &[u8]) -> Option<String> {
    match decode(answer).unwrap().value {
        Value::Map(map) => map.get("error").map(|error| error.as_text().unwrap().to_owned()),
        _ => None,
    }
}

/// A request without data.
pub fn plain(endpoint: &'static str, token: Option<&'static str>) -> Vec<u8> {
    let mut map = Map::default().with("endpoint", endpoint);
    if let Some(token) = token {
        map = map.with("api_token", token);
    }
    encode(&Value::Map(map), Dialect::DEFAULT)
}

#[test]
fn a_token_is_asked_for_at_every_endpoint() {
    let settings = Settings { token: Some(Token::new("let me in")), allow_kill: true };
    let handler = Asking::stub(Stub::default(), settings);
    for endpoint in ["ping", "reset", "get_action", "get_modality_config", "kill", "no such"] {
        for token in [None, Some(""), Some("let me"), Some("let me in ")] {
            let error = error_of(&handler.handle(&plain(endpoint, token))).unwrap();
            assert!(error.starts_with("Unauthorized: Invalid API token"), "{endpoint}: {error}");
        }
    }
    assert!(!handler.is_killed());
    assert_eq!(error_of(&handler.handle(&plain("ping", Some("let me in")))), None);
    let bytes = Map::default().with("api_token", Value::Unsigned(1));
    let answer = handler.handle(&encode(&Value::Map(bytes), Dialect::DEFAULT));
    assert!(error_of(&answer).unwrap().starts_with("Unauthorized"));
    // Where none is asked for, one that is given does no harm.
    let open = Asking::stub(Stub::default(), Settings::default());
    assert_eq!(error_of(&open.handle(&plain("ping", Some("x")))), None);
}

#[test]
fn only_who_is_allowed_ends_the_server() {
    let handler = Asking::stub(Stub::default(), Settings::default());
    let error = error_of(&handler.handle(&plain("kill", None))).unwrap();
    assert!(error.contains("'kill' is off") && !handler.is_killed(), "{error}");
    let settings = Settings { allow_kill: true, ..Settings::default() };
    let handler = Asking::stub(Stub::default(), settings);
    assert_eq!(error_of(&handler.handle(&plain("kill", None))), None);
    assert!(handler.is_killed());
}

fn json_of(value: &Value<'_>) -> Json {
    match value {
        Value::Nil => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Unsigned(value) => json!(value),
        Value::Negative(value) => json!(value),
        Value::Float(value) => json!(value),
        Value::Text(text) => json!(text),
        Value::List(items) => items.iter().map(json_of).collect(),
        Value::Map(map) => {
            Json::Object(map.iter().map(|(k, v)| (k.name().into_owned(), json_of(v))).collect())
        }
        Value::Bytes(_) | Value::Array(_) => panic!("{value:?} is not in a configuration"),
    }
}

fn config(version: Version, modality: &str) -> Value<'static> {
    let stub = Stub { version, ..Stub::default() };
    let answer =
        Asking::stub(stub, Settings::default()).handle(&plain("get_modality_config", None));
    let Value::Map(map) = decode(&answer).unwrap().value else { panic!("no map") };
    let names: Vec<_> = map.iter().map(|(key, _)| key.name().into_owned()).collect();
    assert_eq!(names, ["video", "state", "action", "language"]);
    let one = map.get(modality).unwrap().as_map().unwrap();
    for mark in ["__ModalityConfig_class__", "__ModalityConfig__"] {
        assert_eq!(one.get(mark), Some(&Value::Bool(true)));
    }
    match one.get("as_json").unwrap() {
        Value::Text(text) => Value::Text(text.clone().into_owned().into()),
        other => Value::from(json_of(other).to_string()),
    }
}

#[test]
fn modality_configs_are_those_that_clients_of_each_version_read() {
    let read = |version, modality| -> Json {
        serde_json::from_str(config(version, modality).as_text().unwrap()).unwrap()
    };
    let key = "annotation.human.action.task_description";
    for (modality, deltas, keys) in [
        ("video", json!([0]), json!(["video.ego_view"])),
        ("state", json!([0]), json!(["state.left_arm", "state.gripper"])),
        ("action", json!([0, 1]), json!(["action.left_arm", "action.gripper"])),
        ("language", json!([0]), json!([key])),
    ] {
        let expected = json!({"delta_indices": deltas, "modality_keys": keys});
        assert_eq!(read(Version::N15, modality), expected, "{modality}");
    }
    for version in [Version::N16, Version::N17] {
        let state = read(version, "state");
        assert_eq!(state["modality_keys"], json!(["left_arm", "gripper"]));
        assert_eq!(state["sin_cos_embedding_keys"], json!(["left_arm"]));
        assert_eq!(state["mean_std_embedding_keys"], Json::Null);
        assert_eq!(state["action_configs"], Json::Null);
        let action = read(version, "action");
        assert_eq!(action["delta_indices"], json!([0, 1]));
        let expected = json!([
            {"rep": "RELATIVE", "type": "NON_EEF", "format": "DEFAULT", "state_key": "left_arm"},
            {"rep": "ABSOLUTE", "type": "NON_EEF", "format": "DEFAULT", "state_key": null},
        ]);
        assert_eq!(action["action_configs"], expected);
        assert_eq!(read(version, "language")["modality_keys"], json!([key]));
    }
}

#[test]
fn what_the_policy_refuses_is_said_in_its_words() {
    let stub = Stub { refusal: Some("the arm is on fire"), ..Stub::default() };
    let answer = Asking::stub(stub, Settings::default()).handle(&stored::request("n15/class"));
    assert!(error_of(&answer).unwrap().contains("the arm is on fire"));
}

#[test]
fn axes_of_one_are_left_out_only_where_the_request_had_no_batch() {
    let shapes = |name: &str| -> Vec<Vec<usize>> {
        let handler = Asking::stub(Stub::default(), Settings::default());
        let answer = handler.handle(&stored::request(name));
        let Value::Map(map) = decode(&answer).unwrap().value else { panic!("no map") };
        let shape = |value: &Value<'_>| match value {
            Value::Array(array) => array.shape().to_vec(),
            other => panic!("{other:?} is no array"),
        };
        map.iter().map(|(_, value)| shape(value)).collect()
    };
    assert_eq!(shapes("n15/class"), [vec![2, 3], vec![2]]);
    assert_eq!(shapes("n15_batched/class"), [vec![1, 2, 3], vec![1, 2, 1]]);
}
