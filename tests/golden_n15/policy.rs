//! Whole predictions: every tap and every action.

use std::path::Path;

use gr00t_blackhole::checkpoint::CONFIG_FILE;
use gr00t_blackhole::checkpoint::n15::{BACKBONE_FILE, Config, METADATA_FILE};
use gr00t_blackhole::checkpoint::synth::Size;
use gr00t_blackhole::contract::{PredictOptions, Version};
use gr00t_blackhole::policy::{Policy, PolicyOptions};
use tempfile::TempDir;

use super::common::full_size::{check_peak_memory, with_generated_weights};
use super::common::golden::{Case, Taps, check};
use super::common::n15::{Depth, open, tiny_cases};
use super::common::{shared, tokenizer};

/// Largest difference of a physical action.
const PHYSICAL: f32 = 5e-6;

fn check_case(case: &Case, snapshot: &Path, tokenizer: &TempDir) {
    let options = PolicyOptions {
        snapshot: snapshot.to_owned(),
        tokenizer: Some(tokenizer.path().to_owned()),
        embodiment: Some(case.embodiment().to_owned()),
        ..PolicyOptions::default()
    };
    let mut taps = Taps::default();
    let mut policy = Policy::load_with_taps(&options, Some(&mut taps)).unwrap();
    let options = PredictOptions { noise: Some(case.noise()), ..Default::default() };
    let chunk = policy.predict_with_taps(&case.observation(), &options, Some(&mut taps)).unwrap();
    case.check_chunk(&chunk, &taps);
    assert!(!chunk.groups.is_empty());
    for group in &chunk.groups {
        let golden = case.f32(&format!("action.{}", group.name)).values;
        check(&format!("{}: {}", case.name, group.name), &golden, &group.values, PHYSICAL);
    }
}

#[test]
fn tiny_cases_agree_in_every_tap_and_action() {
    let (Some(dir), Some(tokenizer)) = (shared("golden/n15"), tokenizer::real("n15")) else {
        return;
    };
    for case in tiny_cases() {
        // Most of what the goldens hold is compared, and not nothing.
        assert!(case.taps().len() > 40, "{}: {}", case.name, case.taps().len());
        check_case(&case, &dir.join("snapshot-tiny"), &tokenizer);
    }
}

/// Needs 6 GB of disk, 6 GB of memory and some minutes.
#[test]
#[ignore = "writes and runs the full 3B model; see docs/measurements.md"]
fn full_size_agrees_in_every_tap_and_action() {
    let (Some(golden), Some(tokenizer)) = (shared("golden/n15/full"), tokenizer::real("n15"))
    else {
        return;
    };
    let files = [CONFIG_FILE, BACKBONE_FILE, METADATA_FILE];
    let dir = with_generated_weights(Version::N15, Size::Full, &golden, &files);
    let snapshot = dir.path().join("snapshot");
    let Config { vision, llm, .. } = Config::released();
    let depth = Depth { vision: vision.layers, llm: llm.layers };
    check_case(&open(&golden.join("case0_256x256"), depth), &snapshot, &tokenizer);
    check_peak_memory();
}
