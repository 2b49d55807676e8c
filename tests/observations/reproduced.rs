//! Chunks made again from their recordings, for every version.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::{
    Embodiment, Noise, Observation, PredictOptions, StateEncoding, Version,
};
use gr00t_blackhole::observations::{
    Difference, Identity, Recorder, Recording, Reproduction, reproduce, reproduce_all,
};
use gr00t_blackhole::policy::{Policy, PolicyOptions};

use super::support::{NO_LIMIT, SECOND, all, frame, wait_for};

const PREDICTIONS: u64 = 3;

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

fn values(name: &str, dim: usize, encoding: &StateEncoding, number: u64) -> Vec<f64> {
    if name == "eef_9d" {
        return vec![0.4, -0.0, 0.3 + number as f64 / 7.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
    }
    let middle = |at: usize| match encoding.bounds() {
        Some((min, max)) => (min[at] + max[at]) / 2.0,
        None => 0.0,
    };
    (0..dim).map(|at| middle(at) + (number + 1) as f64 / 300.0).collect()
}

/// Each looks back at a frame that an earlier one had as its newest.
fn observations(embodiment: &Embodiment) -> Vec<Arc<Observation>> {
    let depth = embodiment.frame_deltas.len();
    let cameras: BTreeMap<_, Vec<_>> = (0..)
        .zip(&embodiment.cameras)
        .map(|(at, camera)| {
            let frames = 0..PREDICTIONS + depth as u64;
            (camera.clone(), frames.map(|seed| frame(320, 180, 100 * at + seed)).collect())
        })
        .collect();
    let observation = |number: u64| {
        let frames = cameras.iter().map(|(camera, frames)| {
            (camera.clone(), frames[number as usize..number as usize + depth].to_vec())
        });
        let state = embodiment.state.iter().map(|group| {
            (group.name.clone(), values(&group.name, group.dim, &group.encoding, number))
        });
        Arc::new(Observation {
            stamp_ns: 1_700_000_000 * SECOND + number as i64 * 50_000_000,
            frames: frames.collect(),
            state: state.collect(),
            instruction: "pick the pear from the counter".into(),
        })
    };
    (0..PREDICTIONS).map(observation).collect()
}

fn record(version: Version, folder: &Path) -> std::path::PathBuf {
    let mut policy = policy(version, folder);
    let path = folder.join(format!("{version}-recording"));
    let identity = Identity {
        version,
        embodiment: policy.embodiment().tag.clone(),
        snapshot: folder.join(version.name()).display().to_string(),
    };
    let recorder = Recorder::create(&path, identity, NO_LIMIT).unwrap();
    let [rows, columns] = policy.noise_shape();
    let explicit: Vec<f32> = (0..rows * columns).map(|at| (at as f32).sin()).collect();
    let noises = [None, Some(Noise::Seed(99)), Some(Noise::Explicit(explicit))];
    for (number, (observation, noise)) in
        (1..).zip(observations(policy.embodiment()).iter().zip(noises))
    {
        let options = PredictOptions { noise, ..PredictOptions::default() };
        let chunk = policy.predict(observation, &options).unwrap();
        recorder.record(observation, &options, Ok(&chunk));
        wait_for(&recorder, number);
    }
    // One that the policy refuses, and one that had no chance.
    let mut short = (*observations(policy.embodiment())[0]).clone();
    short.state.pop_first();
    let short = Arc::new(short);
    let refusal = policy.predict(&short, &PredictOptions::default()).unwrap_err().to_string();
    recorder.record(&short, &PredictOptions::default(), Err(refusal));
    recorder.record(&short, &PredictOptions::default(), Err("the prediction was cancelled".into()));
    let counts = recorder.finish();
    assert_eq!((counts.recorded, counts.dropped), (PREDICTIONS + 2, 0));
    path
}

#[test]
fn every_version_answers_a_recording_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for version in Version::ALL {
        let path = record(version, folder.path());
        // Another process would load it anew too.
        let mut policy = policy(version, folder.path());
        let recording = Recording::open(&path).unwrap();
        let mut heard = 0;
        let summary = reproduce_all(&recording, &mut policy, |_, _| heard += 1).unwrap();
        assert_eq!(heard, PREDICTIONS + 2);
        assert_eq!((summary.same, summary.not_comparable), (PREDICTIONS + 1, 1), "{version}");
        assert!(summary.different.is_empty() && summary.unreadable.is_empty(), "{summary:?}");
    }
}

#[test]
fn one_bit_is_a_difference() {
    let folder = tempfile::tempdir().unwrap();
    let path = record(Version::N16, folder.path());
    let mut policy = policy(Version::N16, folder.path());
    let mut recorded = all(&path).swap_remove(1);
    let groups = recorded.outcome.as_mut().unwrap();
    let at = groups[1].values.len() - 1;
    let (dim, value) = (groups[1].dim, groups[1].values[at]);
    groups[1].values[at] = f32::from_bits(value.to_bits() ^ 1);
    let (group, changed) = (groups[1].name.clone(), groups[1].values[at]);
    let found = reproduce(&recorded, &mut policy);
    let (row, column) = (at / dim, at % dim);
    let expected =
        Difference::Values { group, row, column, recorded: changed, now: value, different: 1 };
    assert_eq!(found, Reproduction::Differs(expected));

    recorded.options.noise = Some(Noise::Seed(1));
    let Reproduction::Differs(Difference::Values { different, .. }) =
        reproduce(&recorded, &mut policy)
    else {
        panic!("another seed gives other values")
    };
    assert!(different > 100, "{different}");
}
