//! N1.7 end to end against NVIDIA's own outputs.

mod common;

use std::path::Path;

use common::full_size::{check_peak_memory, with_generated_weights};
use common::golden::{Case, Taps, check};
use common::n17::{self, FULL_CASE, TINY_CASES};
use common::stored_network::{PREFIX_TOKENS, StoredNetwork};
use common::{shared, tokenizer};
use gr00t_blackhole::backend::Backend;
use gr00t_blackhole::checkpoint::synth::Size;
use gr00t_blackhole::checkpoint::{Network, Snapshot};
use gr00t_blackhole::contract::{Letterbox, Noise, PredictOptions, Version};
use gr00t_blackhole::encode::n17::Encoder;
use gr00t_blackhole::encode::tokenizer::Tokenizer;
use gr00t_blackhole::encode::{Encode, ModelInput};
use gr00t_blackhole::policy::{Policy, PolicyOptions};
use gr00t_blackhole::program::mrope;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

fn vision_blocks(snapshot: &Snapshot) -> usize {
    let Network::N17(config, _) = snapshot.network() else { panic!("another version") };
    config.vision.layers
}

/// Predicts one case and checks every tap and action on the way.
fn check_case(dir: &Path, snapshot: &Path, tokenizer: &TempDir, name: &str) {
    let blocks = vision_blocks(&Snapshot::open(snapshot).unwrap());
    let case = n17::open(dir, name, blocks);
    let mut taps = Taps::default();
    let options = PolicyOptions {
        snapshot: snapshot.to_owned(),
        tokenizer: Some(tokenizer.path().to_owned()),
        embodiment: Some(case.embodiment().to_owned()),
        ..PolicyOptions::default()
    };
    let mut policy = Policy::load_with_taps(&options, Some(&mut taps)).unwrap();
    let options = PredictOptions { noise: Some(case.noise()), ..Default::default() };
    let chunk = policy.predict_with_taps(&case.observation(), &options, Some(&mut taps)).unwrap();
    case.check_chunk(&chunk, &taps);
}

/// The tiny network on the input of a stored case, which needs nothing outside the repository.
#[test]
fn the_network_reproduces_the_stored_case() {
    let network = StoredNetwork::of(Version::N17);
    check_pixels(&network.case, &network.input);
    let mut taps = Taps::default();
    let mut backend = network.load(0, Some(&mut taps));
    let options = PredictOptions::default();
    let output = backend.run(&network.input, &options, Some(&mut taps)).unwrap();
    network.case.check_taps(&taps);
    check("action_pred", &network.case.f32("action_pred").values, &output.actions, 1e-5);
}

#[test]
fn tiny_cases_agree_in_every_tap_and_action() {
    let (Some(dir), Some(tokenizer)) = (shared("golden/n17"), tokenizer::real("n17")) else {
        return;
    };
    for name in TINY_CASES {
        check_case(&dir, &dir.join("snapshot"), &tokenizer, name);
    }
}

#[test]
fn every_case_is_encoded_exactly() {
    let (Some(dir), Some(tokenizer)) = (shared("golden/n17"), tokenizer::real("n17")) else {
        return;
    };
    let snapshot = Snapshot::open(&dir.join("snapshot")).unwrap();
    let Network::N17(config, _) = snapshot.network() else { panic!("another version") };
    // The full case is processed by the very same files as the tiny ones.
    let full = (dir.join("full"), FULL_CASE);
    for (dir, name) in TINY_CASES.map(|name| (dir.clone(), name)).into_iter().chain([full]) {
        let case = n17::open(&dir, name, vision_blocks(&snapshot));
        let mut encoder = Encoder::new(
            config,
            snapshot.processor().unwrap(),
            snapshot.embodiment(case.embodiment()).unwrap().clone(),
            Tokenizer::open(tokenizer.path()).unwrap(),
            Letterbox::Auto,
        )
        .unwrap();
        let prefix = encoder.prefix_tokens();
        let seed = case.json()["seed"].as_u64().unwrap();
        let input = encoder.encode(&case.observation(), &Noise::Seed(seed)).unwrap();
        check_tokens(&case, input, prefix);
        check_pixels(&case, input);
        let same_bits = |found: &[f32], golden: &str| {
            let expected = case.f32(golden).values;
            found.iter().map(|value| value.to_bits()).eq(expected.iter().map(|v| v.to_bits()))
        };
        assert!(same_bits(&input.state, "state_normalized"), "{name}");
        check(name, &case.f32("initial_noise").values, &input.noise, 1e-6);
    }
}

fn check_tokens(case: &Case, input: &ModelInput, prefix: usize) {
    let name = &case.name;
    assert_eq!(input.token_ids, case.token_ids(), "{name}");
    assert_eq!(prefix, PREFIX_TOKENS);
    let integers = |tensor: &str| -> Vec<usize> {
        let tensors = case.tensors();
        let data = tensors.tensor(tensor).unwrap().data();
        data.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap()) as usize).collect()
    };
    assert!(integers("attention_mask").iter().all(|mask| *mask == 1), "{name}");
    let mask = integers("image_mask");
    let image_rows: Vec<u32> = (0..).zip(&mask).filter(|(_, m)| **m == 1).map(|(r, _)| r).collect();
    assert!(input.image_rows().eq(image_rows), "{name}");
    let grids = integers("image_grid_thw");
    assert_eq!(grids, [1, input.grid[0], input.grid[1]].repeat(input.images), "{name}");

    let token_grid = input.grid.map(|patches| patches / 2);
    let positions = mrope::positions(input.token_ids.len(), prefix, input.images, token_grid);
    let by_axis: Vec<usize> =
        (0..3).flat_map(|axis| positions.iter().map(move |position| position[axis])).collect();
    assert_eq!(by_axis, integers("position_ids"), "{name}");
}

fn check_pixels(case: &Case, input: &ModelInput) {
    let bytes: Vec<u8> = input.pixels.iter().flat_map(|value| value.to_le_bytes()).collect();
    let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(case.json()["pixel_values_sha256_f32le"], digest, "{}", case.name);
}

/// Files of the reference's own.
const SETTINGS: [&str; 4] =
    ["config.json", "processor_config.json", "statistics.json", "embodiment_id.json"];

/// Needs 7 GB of disk, 8 GB of memory and some minutes.
#[test]
#[ignore = "writes and runs the full 3B model; see docs/measurements.md"]
fn full_size_agrees_in_every_tap_and_action() {
    let (Some(dir), Some(tokenizer)) = (shared("golden/n17/full"), tokenizer::real("n17")) else {
        return;
    };
    let generated = with_generated_weights(Version::N17, Size::Full, &dir, &SETTINGS);
    check_case(&dir, &generated.path().join("snapshot"), &tokenizer, FULL_CASE);
    check_peak_memory();
}
