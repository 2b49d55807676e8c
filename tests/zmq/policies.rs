//! Served bytes are those that the policy predicts, for every version, in every dialect.

use std::thread;

use gr00t_blackhole::contract::{ActionChunk, Observation, PredictOptions, Version};
use gr00t_blackhole::serve::arrays::{Dialect, Dtype, Form, Keys, Map, Value, decode};
use gr00t_blackhole::serve::client::Client as HttpClient;
use gr00t_blackhole::serve::http::{self, App, Identity};
use gr00t_blackhole::serve::zmq::{Limits, Settings};
use gr00t_blackhole::weights::lock::{BUILT_IN, Lock, Origin};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::asks::{flat, get_action, in_envelope, nested};
use crate::client::Client;
use crate::messages::{error_of, plain};
use crate::rig::{Asking, Serving, policies, runtime};

const DIALECTS: [Dialect; 3] = [
    Dialect { form: Form::Npy, keys: Keys::Text },
    Dialect { form: Form::MsgpackNumpy, keys: Keys::Binary },
    Dialect { form: Form::Openpi, keys: Keys::Binary },
];

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
        let (engine, mut policy) = policies(version, folder.path());
        let mut observation = policy.made_up_observation().unwrap();
        observation.stamp_ns = 0;
        let chunk = policy.predict(&observation, &PredictOptions::default()).unwrap();
        let key = &policy.embodiment().language_key;
        let handler = Asking::engine(engine, Settings::default());
        let request = get_action(in_envelope(nested(&observation, key)), dialect);
        let answer = handler.handle(&request);
        assert_eq!(handler.handle(&request), answer);
        let message = decode(&answer).unwrap();
        assert_eq!(message.dialect, Some(dialect));
        let Value::List(items) = message.value else { panic!("{:?}", error_of(&answer)) };
        assert_actions(&items[0], "", &chunk);
        assert_eq!(items[1], Value::Map(Map::default()));

        let answer = handler.handle(&get_action(flat(&observation, key), dialect));
        assert_actions(&decode(&answer).unwrap().value, "action.", &chunk);
        let configs = handler.handle(&plain("get_modality_config", None));
        assert_eq!(error_of(&configs), None);
    }
}

#[test]
fn what_a_policy_refuses_reaches_the_client() {
    let folder = TempDir::new().unwrap();
    let (engine, mut policy) = policies(Version::N16, folder.path());
    let mut observation = policy.made_up_observation().unwrap();
    let (group, values) = observation.state.iter_mut().next().unwrap();
    values.push(0.0);
    let expected = format!("state group '{group}' has {} values", values.len());
    let key = &policy.embodiment().language_key;
    let handler = Asking::engine(engine, Settings::default());
    let answer = handler.handle(&get_action(flat(&observation, key), DIALECTS[0]));
    let error = error_of(&answer).unwrap();
    assert!(error.contains("observation refused") && error.contains(&expected), "{error}");
}

#[test]
fn concurrent_requests_get_the_answers_of_sequential_ones() {
    let folder = TempDir::new().unwrap();
    let (engine, mut policy) = policies(Version::N16, folder.path());
    let observation = policy.made_up_observation().unwrap();
    let key = &policy.embodiment().language_key;
    let requests: Vec<Vec<u8>> = ["pick the pear", "pour"]
        .map(|instruction| Observation { instruction: instruction.into(), ..observation.clone() })
        .iter()
        .map(|observation| get_action(in_envelope(nested(observation, key)), DIALECTS[1]))
        .collect();
    let handler = Asking::engine(engine.clone(), Settings::default());
    let answers: Vec<Vec<u8>> = requests.iter().map(|request| handler.handle(request)).collect();
    assert_ne!(answers[0], answers[1]);

    let serving = Serving::engine(engine, Settings::default(), Limits::default());
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

#[test]
fn both_servers_ask_one_policy_and_answer_the_same() {
    let folder = TempDir::new().unwrap();
    let (engine, mut policy) = policies(Version::N16, folder.path());
    let lock = Lock::parse(BUILT_IN, Origin::BuiltIn).unwrap();
    let identity = Identity::new(Version::N16, lock.release(Version::N16).unwrap(), None, "cpu");
    let app = App::new(engine.clone(), identity, http::Limits::default(), None);
    let any = ([127, 0, 0, 1], 0).into();
    let server = runtime().block_on(http::Server::bind(any, app)).unwrap();
    let http = HttpClient::new(&format!("http://{}", server.address().unwrap()), None);
    let (_stop, stopped) = watch::channel(false);
    runtime().spawn(server.run(stopped));
    let demo = http.get("/demo").unwrap();
    let over_http = http.predict(demo["request"].to_string().as_bytes()).unwrap().answer;

    let observation = engine.model().unwrap().demo.observation.clone();
    let chunk = policy.predict(&observation, &PredictOptions::default()).unwrap();
    let data = in_envelope(nested(&observation, &policy.embodiment().language_key));
    let serving = Serving::engine(engine, Settings::default(), Limits::default());
    let answer = Client::connect(serving.address).ask(&get_action(data, DIALECTS[0]));
    let Value::List(items) = decode(&answer).unwrap().value else { panic!("no actions") };
    assert_actions(&items[0], "", &chunk);
    for group in &chunk.groups {
        let rows = over_http["actions"][&group.name].as_array().unwrap().iter();
        let values = rows.flat_map(|row| row.as_array().unwrap());
        let found: Vec<f32> = values.map(|value| value.as_f64().unwrap() as f32).collect();
        assert_eq!(found, group.values, "{}", group.name);
    }
}
