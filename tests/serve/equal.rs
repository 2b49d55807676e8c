//! Served chunks are those of `Policy::predict`, whoever asks beside.

use std::thread;

use gr00t_blackhole::contract::{ActionChunk, Noise, PredictOptions, Version};
use serde_json::{Value, json};

use super::rig::Rig;

/// Bits of the actions of an answer, in the order of its keys.
fn bits(answer: &Value) -> Vec<u32> {
    let keys = answer["action_keys"].as_array().expect("keys").iter();
    let groups = keys.flat_map(|key| answer["actions"][key.as_str().expect("text")].as_array());
    let rows = groups.flatten().flat_map(|row| row.as_array().expect("a row"));
    rows.map(|value| (value.as_f64().expect("a number") as f32).to_bits()).collect()
}

fn chunk_bits(chunk: &ActionChunk) -> Vec<u32> {
    chunk.groups.iter().flat_map(|group| &group.values).map(|value| value.to_bits()).collect()
}

fn request(rig: &Rig, seed: u64) -> Value {
    let mut request = rig.demo();
    request["seed"] = json!(seed);
    request
}

#[test]
fn served_chunks_are_those_of_predict() {
    for version in Version::ALL {
        let rig = Rig::of(version);
        let model = rig.ready();
        let mut policy = rig.spare.as_ref().expect("a shared rig").lock().expect("no panic");
        for seed in [0, 7] {
            let options =
                PredictOptions { noise: Some(Noise::Seed(seed)), ..PredictOptions::default() };
            let expected = policy.predict(&model.demo.observation, &options).expect("a chunk");
            let mut request = request(rig, seed);
            request["return_normalized"] = json!(true);
            let answer = rig.predict(&request).chunk();
            assert_eq!(bits(&answer), chunk_bits(&expected), "{version}, seed {seed}");
            let rows = answer["action_pred_normalized"].as_array().expect("rows").iter();
            let found: Vec<f32> = rows
                .flat_map(|row| row.as_array().expect("a row"))
                .map(|value| value.as_f64().expect("a number") as f32)
                .collect();
            assert_eq!(found, expected.normalized);
            assert_eq!(answer["seq_len"], policy.last_layout().expect("a layout").tokens);
        }
    }
}

#[test]
fn the_seed_and_its_noise_give_the_same() {
    let rig = Rig::of(Version::N16);
    let seeded = rig.predict(&request(rig, 7)).chunk();
    let [rows, cols] = rig.ready().noise_shape;
    let noise = gr00t_blackhole::encode::noise::initial_noise(&Noise::Seed(7), rows, cols);
    let noise = noise.expect("noise");
    let mut explicit = rig.demo();
    explicit.as_object_mut().expect("fields").remove("seed");
    explicit["noise"] = json!(noise.chunks(cols).collect::<Vec<_>>());
    let given = rig.predict(&explicit).chunk();
    assert_eq!(bits(&seeded), bits(&given));
    assert_eq!(given["seed"], Value::Null);
}

#[test]
fn space_around_an_instruction_changes_nothing() {
    let rig = Rig::of(Version::N15);
    let plain = request(rig, 1);
    let mut spaced = plain.clone();
    spaced["instruction"] = json!(format!("\t {}\n", plain["instruction"].as_str().expect("text")));
    assert_eq!(bits(&rig.predict(&plain).chunk()), bits(&rig.predict(&spaced).chunk()));
}

#[test]
fn concurrent_requests_give_what_sequential_ones_do() {
    for version in Version::ALL {
        let rig = Rig::of(version);
        let requests: Vec<Value> = (0..2).map(|seed| request(rig, seed)).collect();
        let one_by_one = |requests: &[Value]| -> Vec<Vec<u32>> {
            requests.iter().map(|request| bits(&rig.predict(request).chunk())).collect()
        };
        let expected = one_by_one(&requests);
        assert!(expected.windows(2).all(|pair| pair[0] != pair[1]), "seeds make a difference");
        assert_eq!(one_by_one(&requests), expected, "two equal requests");
        thread::scope(|scope| {
            let clients: Vec<_> = (0..2).map(|_| scope.spawn(|| one_by_one(&requests))).collect();
            for client in clients {
                assert_eq!(client.join().expect("no panic"), expected, "{version}");
            }
        });
    }
}
