//! Whole predictions on synthetic checkpoints.
//!
//! `cargo bench --bench predict` measures the tiny one. Larger ones have to be written first and named:
//! `GR00T_BENCH_SNAPSHOT=DIR cargo bench --bench predict`. `benches/reference/torch_n16.py` measures the same forward
//! pass in torch; for prompts of the same length, `GR00T_BENCH_TOKENIZER=DIR` names the model's real tokenizer files, since
//! the made-up ones of synthetic checkpoints need more tokens.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::{Embodiment, Frame, Observation, PredictOptions, Version};
use gr00t_blackhole::policy::{Policy, PolicyOptions};
use tempfile::TempDir;

const SNAPSHOT_VARIABLE: &str = "GR00T_BENCH_SNAPSHOT";
const TOKENIZER_VARIABLE: &str = "GR00T_BENCH_TOKENIZER";
const FRAME_SIDE: u32 = 256;

/// The snapshot that the user named, or a tiny one that lives as long as the folder.
fn snapshot() -> (PathBuf, Option<TempDir>) {
    if let Some(named) = std::env::var_os(SNAPSHOT_VARIABLE) {
        return (named.into(), None);
    }
    let folder = TempDir::new().expect("a temporary folder");
    let dir = folder.path().join("tiny");
    synth::write(Version::N16, Size::Tiny, &dir, &|_, _| {}).expect("a tiny checkpoint");
    (dir, Some(folder))
}

fn observation(embodiment: &Embodiment) -> Observation {
    let pixels: Vec<u8> = (0..3 * FRAME_SIDE * FRAME_SIDE).map(|i| (i * 37 % 251) as u8).collect();
    let frame = Arc::new(Frame::new(FRAME_SIDE, FRAME_SIDE, pixels).expect("a frame"));
    let frames_of = |_: &String| vec![frame.clone(); embodiment.frame_deltas.len()];
    let cameras = embodiment.cameras.iter();
    let state = embodiment.state.iter().map(|group| (group.name.clone(), vec![0.1; group.dim]));
    Observation {
        stamp_ns: 0,
        frames: cameras.map(|camera| (camera.clone(), frames_of(camera))).collect(),
        state: BTreeMap::from_iter(state),
        instruction: "pick the pear from the counter and place it in the plate".to_owned(),
    }
}

fn predict_gr1(criterion: &mut Criterion) {
    let (dir, _folder) = snapshot();
    let options = PolicyOptions {
        snapshot: dir,
        tokenizer: std::env::var_os(TOKENIZER_VARIABLE).map(PathBuf::from),
        embodiment: Some("gr1".to_owned()),
        ..PolicyOptions::default()
    };
    let mut policy = Policy::load(&options).expect("the checkpoint loads");
    let observation = observation(policy.embodiment());
    let predict = PredictOptions::default();
    let mut group = criterion.benchmark_group("predict");
    group.sample_size(10);
    group.bench_function("gr1", |bencher| {
        bencher.iter(|| policy.predict(&observation, &predict).expect("a chunk"));
    });
    group.finish();
}

criterion_group!(benches, predict_gr1);
criterion_main!(benches);
