//! What `tests/data/zmq/make.py` has written.

use std::path::Path;

use gr00t_blackhole::serve::arrays::{Map, Value, decode};

fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/zmq");
    std::fs::read(folder.join(name)).unwrap()
}

fn map(value: Value<'_>) -> Map<'_> {
    match value {
        Value::Map(map) => map,
        other => panic!("{other:?} is no map"),
    }
}

fn bytes(value: Value<'_>) -> Vec<u8> {
    match value {
        Value::Bytes(bytes) => bytes.into_owned(),
        other => panic!("{other:?} is no binary data"),
    }
}

/// Names and bytes of arrays.
pub fn arrays() -> Vec<(String, Vec<u8>)> {
    let file = file("arrays.msgpack");
    let entries = map(decode(&file).unwrap().value).into_iter();
    entries.map(|(key, value)| (key.name().into_owned(), bytes(value))).collect()
}

/// A request and its answer.
pub struct Exchange {
    pub name: String,
    pub request: Vec<u8>,
    pub answer: Vec<u8>,
}

pub fn exchanges() -> Vec<Exchange> {
    let file = file("messages.msgpack");
    let entries = map(decode(&file).unwrap().value).into_iter();
    entries
        .map(|(key, value)| {
            let mut pair = map(value);
            let mut part = |name| bytes(pair.take(name).unwrap());
            Exchange {
                name: key.name().into_owned(),
                request: part("request"),
                answer: part("answer"),
            }
        })
        .collect()
}

/// The request of that name.
pub fn request(name: &str) -> Vec<u8> {
    exchanges().into_iter().find(|exchange| exchange.name == name).unwrap().request
}
