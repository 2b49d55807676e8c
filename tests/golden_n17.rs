//! N1.7 end to end against NVIDIA's own outputs.

mod common;

use std::os::unix::fs::symlink;
use std::path::Path;

use common::golden::{Case, Taps, check};
use common::n17::{self, TINY_CASES};
use common::{shared, tokenizer};
use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::checkpoint::{Network, Snapshot};
use gr00t_blackhole::contract::{Letterbox, Noise, PredictOptions, Version};
use gr00t_blackhole::encode::image::n17::PATCH_VALUES;
use gr00t_blackhole::encode::n17::Encoder;
use gr00t_blackhole::encode::tokenizer::Tokenizer;
use gr00t_blackhole::encode::{Encode, ModelInput};
use gr00t_blackhole::policy::{Policy, PolicyOptions};
use gr00t_blackhole::program::mrope;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

fn vision_blocks(snapshot: &Snapshot) -> usize {
    let Network::N17(config) = snapshot.network() else { panic!("another version") };
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
fn tiny_cases_are_encoded_exactly() {
    let (Some(dir), Some(tokenizer)) = (shared("golden/n17"), tokenizer::real("n17")) else {
        return;
    };
    let snapshot = Snapshot::open(&dir.join("snapshot")).unwrap();
    let Network::N17(config) = snapshot.network() else { panic!("another version") };
    for name in TINY_CASES {
        let case = n17::open(&dir, name, vision_blocks(&snapshot));
        let mut encoder = Encoder::new(
            config,
            snapshot.processor(),
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
    assert_eq!(prefix, 3);
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
    let golden = case.f32("pixel_values");
    assert_eq!(golden.cols, PATCH_VALUES);
}

/// A snapshot with generated weights and the reference's own configuration and statistics.
fn with_generated_weights(golden: &Path, size: Size) -> TempDir {
    let dir = TempDir::new().unwrap();
    let snapshot = dir.path().join("snapshot");
    synth::write(Version::N17, size, &snapshot, &|_, _| {}).unwrap();
    let golden = golden.join("snapshot").canonicalize().unwrap();
    for file in ["config.json", "processor_config.json", "statistics.json", "embodiment_id.json"] {
        let target = snapshot.join(file);
        std::fs::remove_file(&target).unwrap();
        symlink(golden.join(file), target).unwrap();
    }
    dir
}

/// Needs 7 GB of disk, 8 GB of memory and some minutes.
#[test]
#[ignore = "writes and runs the full 3B model; see the README"]
fn full_size_agrees_in_every_tap_and_action() {
    let (Some(dir), Some(tokenizer)) = (shared("golden/n17/full"), tokenizer::real("n17")) else {
        return;
    };
    let generated = with_generated_weights(&dir, Size::Full);
    check_case(&dir, &generated.path().join("snapshot"), &tokenizer, "f0_droid_320x180");
    println!("peak resident memory: {:.2} GB", peak_resident_bytes() as f64 / 1e9);
    assert!(peak_resident_bytes() < 9_000_000_000);
}

/// `VmHWM` of this process.
fn peak_resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes * 1024
}
