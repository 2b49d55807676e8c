//! Requests that are refused, and how.

use std::sync::OnceLock;

use gr00t_blackhole::serve::arrays::{Array, Dialect, Dtype, Map, Value, encode};
use gr00t_blackhole::serve::zmq::Settings;
use proptest::prelude::*;

use crate::messages::error_of;
use crate::rig::Asking;
use crate::stored;
use crate::stub::{Stub, embodiment};

const LANGUAGE: &str = "annotation.human.action.task_description";

fn zeros(dtype: Dtype, shape: &[usize]) -> Value<'static> {
    let bytes = shape.iter().product::<usize>() * dtype.size().unwrap();
    Value::Array(Array::new(dtype, shape.to_vec(), vec![0; bytes]).unwrap())
}

/// A flat observation without a batch axis, with these entries in place of its own or beside them.
fn flat(changes: impl IntoIterator<Item = (&'static str, Option<Value<'static>>)>) -> Map<'static> {
    let mut map = Map::default()
        .with("video.ego_view", zeros(Dtype::U8, &[1, 64, 64, 3]))
        .with("state.left_arm", zeros(Dtype::F64, &[1, 3]))
        .with("state.gripper", zeros(Dtype::F64, &[1, 1]))
        .with(LANGUAGE, Value::List(vec!["pick".into()]));
    for (key, value) in changes {
        map.take(key);
        if let Some(value) = value {
            map = map.with(key, value);
        }
    }
    map
}

fn answer(request: Map<'_>) -> Option<String> {
    let handler = Asking::stub(Stub::default(), Settings::default());
    error_of(&handler.handle(&encode(&Value::Map(request), Dialect::DEFAULT)))
}

/// The answer to a request without an endpoint, which asks for an action.
fn asked(observation: Map<'static>) -> Option<String> {
    answer(Map::default().with("data", Value::Map(observation)))
}

fn refused(key: &'static str, value: Value<'static>) -> String {
    asked(flat([(key, Some(value))])).expect("a refusal")
}

#[test]
fn the_unchanged_observation_is_accepted() {
    assert_eq!(asked(flat([])), None);
}

#[test]
fn requests_that_ask_for_nothing_are_named() {
    let endpoint = |value: Value<'static>| answer(Map::default().with("endpoint", value)).unwrap();
    assert_eq!(
        endpoint("dance".into()),
        "Unknown endpoint: 'dance'; this server has 'ping', 'get_action', 'reset', \
         'get_modality_config', 'kill'"
    );
    assert!(endpoint(Value::Unsigned(1)).contains("'endpoint' is an integer"));
    let data = |value: Value<'static>| answer(Map::default().with("data", value)).unwrap();
    assert!(data(Value::Nil).contains("no observation: its keys are none"));
    assert!(data("pick".into()).contains("'data' is a string"));
    let observation = |value| data(Value::Map(Map::default().with("observation", value)));
    assert!(observation(Value::Nil).contains("'observation' is nothing"));
    let strange = Map::default().with("images", Value::Nil).with("text", Value::Nil);
    assert!(observation(Value::Map(strange)).contains("its keys are 'images', 'text'; accepted"));
    assert!(answer(Map::default()).unwrap().contains("no observation"));
    let handler = Asking::stub(Stub::default(), Settings::default());
    for (bytes, words) in [
        (&b""[..], "cut off at byte 0"),
        (b"\x93NUMPY", "2 bytes follow"),
        (b"\xc0", "the request is nothing"),
        (b"{\"endpoint\": \"ping\"}", "bytes follow"),
        (b"\x80\x02}q\x00.", "bytes follow"),
    ] {
        let error = error_of(&handler.handle(bytes)).unwrap();
        assert!(error.contains(words), "{bytes:?}: {error}");
    }
}

#[test]
fn frames_are_checked() {
    let key = "video.ego_view";
    assert_eq!(
        asked(flat([(key, None)])).unwrap(),
        format!(
            "'video.ego_view' is missing; the observation has '{LANGUAGE}', 'state.gripper', \
             'state.left_arm'"
        )
    );
    let text = refused(key, zeros(Dtype::F32, &[1, 64, 64, 3]));
    assert_eq!(text, "'video.ego_view' has elements of '<f4'; accepted: '|u1', RGB from 0 to 255");
    assert!(
        refused(key, zeros(Dtype::U8, &[64, 64, 3]))
            .contains("the shape [64, 64, 3]; accepted: [times")
    );
    assert!(refused(key, zeros(Dtype::U8, &[1, 3, 64, 64])).contains("the shape [1, 3, 64, 64]"));
    assert!(refused(key, zeros(Dtype::U8, &[1, 1, 1, 64, 64, 3])).contains("accepted: [times"));
    assert!(refused(key, zeros(Dtype::U8, &[1, 0, 64, 3])).contains("64x0; each side"));
    assert!(refused(key, zeros(Dtype::U8, &[1, 64, 63, 3])).contains("63x64; each side"));
    assert!(
        refused(key, zeros(Dtype::U8, &[4, 1, 64, 64, 3])).contains("a batch of 4; this server")
    );
    assert!(refused(key, zeros(Dtype::U8, &[0, 1, 64, 64, 3])).contains("a batch of 0"));
    assert!(refused(key, Value::List(vec![])).contains("is a list; accepted: an array"));
}

#[test]
fn states_are_checked() {
    let key = "state.left_arm";
    assert!(asked(flat([(key, None)])).unwrap().contains("'state.left_arm' is missing"));
    assert!(refused(key, zeros(Dtype::F64, &[3])).contains("the shape [3]; accepted: [1, values]"));
    assert!(refused(key, zeros(Dtype::F64, &[2, 3])).contains("has 2 times"));
    assert!(refused(key, zeros(Dtype::F64, &[0, 3])).contains("has 0 times"));
    assert!(refused(key, zeros(Dtype::F64, &[2, 1, 3])).contains("a batch of 2"));
    let mixed = refused(key, zeros(Dtype::F64, &[1, 1, 3]));
    assert!(
        mixed.contains("'state.left_arm' has a batch axis, unlike the arrays before"),
        "{mixed}"
    );
    assert!(refused(key, zeros(Dtype::Bool, &[1, 3])).contains("elements of '|b1'"));
    assert!(refused(key, Value::Float(0.5)).contains("is a number; accepted: an array"));
}

#[test]
fn instructions_are_found_and_checked() {
    let without = |changes: Vec<(&'static str, Value<'static>)>| {
        let changes = changes.into_iter().map(|(key, value)| (key, Some(value)));
        asked(flat([(LANGUAGE, None)].into_iter().chain(changes)))
    };
    assert!(without(vec![]).unwrap().contains(&format!("give it as '{LANGUAGE}'")));
    for other in ["annotation.human.task_description", "language.instruction", "task"] {
        assert_eq!(without(vec![(other, "pick".into())]), None, "{other}");
    }
    let two = without(vec![("annotation.a", "x".into()), ("annotation.b", "y".into())]).unwrap();
    assert!(
        two.contains("several instructions, 'annotation.a', 'annotation.b', but none"),
        "{two}"
    );
    let deep = Value::List(vec![Value::List(vec!["pick".into()])]);
    for accepted in ["pick".into(), deep, zeros(Dtype::Text { chars: 4 }, &[1])] {
        assert_eq!(asked(flat([(LANGUAGE, Some(accepted))])), None);
    }
    assert!(refused(LANGUAGE, Value::List(vec!["a".into(), "b".into()])).contains("a list of 2"));
    assert!(refused(LANGUAGE, Value::Nil).contains("is nothing; accepted: a string"));
    assert!(
        refused(LANGUAGE, zeros(Dtype::Text { chars: 1 }, &[2])).contains("array of 2 strings")
    );
    assert!(refused(LANGUAGE, zeros(Dtype::F64, &[1])).contains("an array of '<f8'"));
}

#[test]
fn simulations_may_send_the_task_under_its_other_name() {
    let mut stub = Stub { embodiment: embodiment(), ..Stub::default() };
    stub.embodiment.language_key = "task".to_owned();
    let asked = stub.asked.clone();
    let changes = [(LANGUAGE, None), ("annotation.human.coarse_action", Some("pour".into()))];
    let observation = flat(changes.into_iter().chain([("annotation.other", Some("x".into()))]));
    let request = Map::default().with("data", Value::Map(observation));
    let handler = Asking::stub(stub, Settings::default());
    assert_eq!(error_of(&handler.handle(&encode(&Value::Map(request), Dialect::DEFAULT))), None);
    assert_eq!(asked.lock().unwrap()[0].0.instruction, "pour");
}

#[test]
fn what_the_embodiment_does_not_have_is_left_out() {
    let stub = Stub::default();
    let asked = stub.asked.clone();
    let extra = [
        ("video.other", Some(zeros(Dtype::U8, &[1, 64, 64, 3]))),
        ("state.waist", Some(zeros(Dtype::F64, &[1, 3]))),
        ("timestamp", Some(Value::Float(1.0))),
    ];
    let request = Map::default().with("data", Value::Map(flat(extra)));
    let handler = Asking::stub(stub, Settings::default());
    assert_eq!(error_of(&handler.handle(&encode(&Value::Map(request), Dialect::DEFAULT))), None);
    let asked = asked.lock().unwrap();
    assert_eq!((asked[0].0.frames.len(), asked[0].0.state.len()), (1, 2));
}

#[test]
fn nested_modalities_are_checked() {
    let nested = |video: Value<'static>| {
        let (state, language) = (Value::Map(Map::default()), Value::Map(Map::default()));
        Map::default().with("video", video).with("state", state).with("language", language)
    };
    let text = asked(nested(Value::List(vec![]))).unwrap();
    assert_eq!(text, "'video' is a list; accepted: a map");
    let text = asked(nested(Value::Map(Map::default().with("front", Value::Nil)))).unwrap();
    assert_eq!(text, "'video.ego_view' is missing; the observation has 'front'");
    let text = asked(Map::default().with("video", Value::Map(Map::default()))).unwrap();
    assert_eq!(text, "'state' is missing; the observation has 'video'");
}

#[test]
fn several_times_become_frames_oldest_first() {
    let mut stub = Stub::default();
    stub.embodiment.frame_deltas = vec![-15, 0];
    let asked = stub.asked.clone();
    let side = 64 * 64 * 3;
    let data = [vec![1u8; side], vec![2; side]].concat();
    let video = Value::Array(Array::new(Dtype::U8, vec![2, 64, 64, 3], data).unwrap());
    let request = Map::default().with("data", Value::Map(flat([("video.ego_view", Some(video))])));
    let handler = Asking::stub(stub, Settings::default());
    assert_eq!(error_of(&handler.handle(&encode(&Value::Map(request), Dialect::DEFAULT))), None);
    let asked = asked.lock().unwrap();
    let frames = &asked[0].0.frames["ego_view"];
    assert_eq!(frames.iter().map(|frame| frame.rgb()[0]).collect::<Vec<_>>(), [1, 2]);
}

/// One for all cases.
fn shared() -> &'static Asking {
    static ASKING: OnceLock<Asking> = OnceLock::new();
    ASKING.get_or_init(|| Asking::stub(Stub::default(), Settings::default()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_request_gets_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(!shared().handle(&bytes).is_empty());
    }

    #[test]
    fn changed_requests_get_an_answer(
        pick in any::<prop::sample::Index>(),
        // Most of a request are pixels; what can go wrong stands before and behind them.
        changes in prop::collection::vec((any::<bool>(), 0usize..700, any::<u8>()), 1..4),
    ) {
        let exchanges = stored::exchanges();
        let mut request = pick.get(&exchanges).request.clone();
        let length = request.len();
        for (is_behind, at, byte) in changes {
            let at = at.min(length - 1);
            request[if is_behind { length - 1 - at } else { at }] = byte;
        }
        prop_assert!(!shared().handle(&request).is_empty());
    }
}
