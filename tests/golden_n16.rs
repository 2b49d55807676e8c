//! N1.6 end to end against NVIDIA's own outputs.

mod common;

use std::path::Path;
use std::sync::Arc;

use common::full_size::{check_peak_memory, with_generated_weights};
use common::golden::{Case, Taps, check};
use common::{data, shared, tokenizer};
use gr00t_blackhole::backend::Backend;
use gr00t_blackhole::backend::cpu::CpuBackend;
use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::checkpoint::{Network, Snapshot};
use gr00t_blackhole::contract::{Embodiment, Frame, Observation, PredictOptions, Version};
use gr00t_blackhole::encode::ModelInput;
use gr00t_blackhole::encode::prompt::n16::IMAGE_TOKEN_ID;
use gr00t_blackhole::policy::{Policy, PolicyOptions};
use gr00t_blackhole::prepared::Cache;
use gr00t_blackhole::program::n16::Model;
use tempfile::TempDir;

/// Slot of `gr1` in the tiny checkpoint.
const TINY_GR1_SLOT: usize = 2;

fn load(snapshot: &Path, tokenizer: &TempDir, embodiment: &str, taps: &mut Taps) -> Policy {
    let options = PolicyOptions {
        snapshot: snapshot.to_owned(),
        tokenizer: Some(tokenizer.path().to_owned()),
        embodiment: Some(embodiment.to_owned()),
        ..PolicyOptions::default()
    };
    Policy::load_with_taps(&options, Some(taps)).unwrap()
}

fn check_case(dir: &Path, snapshot: &Path, tokenizer: &TempDir, name: &str) {
    let case = Case::open(dir, name);
    let mut taps = Taps::default();
    let mut policy = load(snapshot, tokenizer, case.embodiment(), &mut taps);
    let options = PredictOptions { noise: Some(case.noise()), ..Default::default() };
    let chunk = policy.predict_with_taps(&case.observation(), &options, Some(&mut taps)).unwrap();
    case.check_chunk(&chunk, &taps);
}

/// Files of the reference's own.
const SETTINGS: [&str; 5] = [
    "config.json",
    "processor_config.json",
    "statistics.json",
    "embodiment_id.json",
    "eagle_config.json",
];

#[test]
fn the_network_reproduces_the_stored_case() {
    let dir = TempDir::new().unwrap();
    let dir = dir.path().join("tiny");
    synth::write(Version::N16, Size::Tiny, &dir, &|_, _| {}).unwrap();
    let snapshot = Snapshot::open(&dir).unwrap();
    let Network::N16(config, _) = snapshot.network() else { panic!("not N1.6") };
    let case = Case::open(&data("n16"), "c0_gr1_256");
    let mut taps = Taps::default();
    let model = Model { config: config.clone(), slot: TINY_GR1_SLOT };
    let tensors = Arc::clone(snapshot.tensors());
    let mut backend =
        CpuBackend::load(tensors, Box::new(model), 0, &Cache::default(), Some(&mut taps)).unwrap();

    let tensors = case.tensors();
    let picture = tensors.tensor("image0.u8").unwrap();
    let plane = picture.shape()[0] * picture.shape()[1];
    let pixel = |index: usize| (f32::from(picture.data()[index]) - 127.5) / 127.5;
    let pixels = (0..3 * plane).map(|i| pixel(i % plane * 3 + i / plane)).collect();
    let input = ModelInput {
        pixels,
        images: 1,
        grid: [config.vision.grid(); 2],
        token_ids: case.token_ids(),
        image_token: IMAGE_TOKEN_ID,
        state: case.f32("state_normalized").values,
        noise: case.f32("initial_noise").values,
    };
    let output = backend.run(&input, &PredictOptions::default(), Some(&mut taps)).unwrap();
    for name in case.taps() {
        case.check_tap(&format!("tap.{name}"), &taps.0[&name]);
    }
    check("action_pred", &case.f32("action_pred").values, &output.actions, 1e-5);
}

/// What is kept from one request to the next never shows in a chunk.
#[test]
fn chunks_do_not_depend_on_earlier_requests() {
    let dir = TempDir::new().unwrap();
    let dir = dir.path().join("tiny");
    synth::write(Version::N16, Size::Tiny, &dir, &|_, _| {}).unwrap();
    let options = PolicyOptions {
        snapshot: dir,
        embodiment: Some("gr1".to_owned()),
        ..PolicyOptions::default()
    };
    let predict = |policy: &mut Policy, instruction: &str| {
        let observation = observation(policy.embodiment(), instruction);
        policy.predict(&observation, &PredictOptions::default()).unwrap().normalized
    };
    // Instructions of the same number of tokens share the memory of a program.
    let instructions = ["take a", "take b", "take a", "take a", "a longer one", "take b", "take a"];
    let mut policy = Policy::load(&options).unwrap();
    let mut chunks = Vec::new();
    for instruction in instructions {
        let alone = predict(&mut Policy::load(&options).unwrap(), instruction);
        let found = predict(&mut policy, instruction);
        assert!(found.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits()), "{instruction}");
        chunks.push(found);
    }
    assert_ne!(chunks[0], chunks[1]);
}

/// A grey picture of every camera, and small states.
fn observation(embodiment: &Embodiment, instruction: &str) -> Observation {
    let frame = Arc::new(Frame::new(64, 64, vec![128; 3 * 64 * 64]).unwrap());
    let frames = embodiment.cameras.iter().map(|camera| (camera.clone(), vec![frame.clone()]));
    let state = embodiment.state.iter().map(|group| (group.name.clone(), vec![0.1; group.dim]));
    Observation {
        stamp_ns: 0,
        frames: frames.collect(),
        state: state.collect(),
        instruction: instruction.to_owned(),
    }
}

#[test]
fn tiny_cases_agree_in_every_tap_and_action() {
    let (Some(dir), Some(tokenizer)) = (shared("golden/n16/tiny"), tokenizer::real("n16")) else {
        return;
    };
    for name in
        ["c0_gr1_256", "c1_gr1_640x480", "c2_gr1_1280x720", "c3_libero_2cam", "c4_eef_2cam_2t"]
    {
        check_case(&dir, &dir.join("snapshot"), &tokenizer, name);
    }
}

#[test]
fn real_widths_agree_in_every_tap_and_action() {
    let (Some(dir), Some(tokenizer)) = (shared("golden/n16/mid"), tokenizer::real("n16")) else {
        return;
    };
    let generated = with_generated_weights(Version::N16, Size::Mid, &dir, &SETTINGS);
    check_case(&dir, &generated.path().join("snapshot"), &tokenizer, "m0_gr1_256");
}

/// Needs 7 GB of disk, 7 GB of memory and some minutes.
#[test]
#[ignore = "writes and runs the full 3B model; see the README"]
fn full_size_agrees_in_every_tap_and_action() {
    let (Some(dir), Some(tokenizer)) = (shared("golden/n16/full"), tokenizer::real("n16")) else {
        return;
    };
    let generated = with_generated_weights(Version::N16, Size::Full, &dir, &SETTINGS);
    check_case(&dir, &generated.path().join("snapshot"), &tokenizer, "f0_gr1_256");
    check_peak_memory();
}
