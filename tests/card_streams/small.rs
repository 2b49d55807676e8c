//! A small program on a simulated device, again and again: what a replay leaves behind must not change the next one.

use std::sync::Arc;

use gr00t_blackhole::backend::Backend;
use gr00t_blackhole::backend::blackhole::device::DeviceBackend;
use gr00t_blackhole::backend::cpu::card::CardNumerics;
use gr00t_blackhole::backend::cpu::{CpuBackend, Numerics};
use gr00t_blackhole::checkpoint::{Checkpoint, CheckpointError};
use gr00t_blackhole::contract::{PredictOptions, TapSink, Version};
use gr00t_blackhole::encode::ModelInput;
use gr00t_blackhole::prepared::Cache;
use gr00t_blackhole::program::{
    ACTIONS, Activation, BufferId, BufferSource, BufferSpec, Input, Layout, ModelPrograms, Op,
    Program, Stage, StageKind, WeightId, WeightSpec,
};

use super::device::{LEAST_PCC, correlation, largest_difference, options, simulator};
use super::tiny::Tiny;

/// A simulated run takes more than a second; GR00T_DEVICE_RUNS asks for another number of them.
const RUNS: usize = 100;
/// No whole tile.
const ROWS: usize = 20;

/// A product with a norm and a sum behind it.
#[derive(Clone)]
struct Small {
    weight: WeightSpec,
}

impl ModelPrograms for Small {
    fn prepare(&self, _: &Checkpoint) -> Result<Program, CheckpointError> {
        Ok(self.program(Vec::new(), Vec::new(), Vec::new()))
    }

    fn request(&self, _: &Checkpoint, _: Layout) -> Result<Program, CheckpointError> {
        let (inputs, outputs) = (self.weight.inputs(), self.weight.outputs());
        let buffer = |name: &str, cols, source| BufferSpec {
            name: name.to_owned(),
            rows: ROWS,
            cols,
            source,
        };
        let buffers = vec![
            buffer("noise", inputs, BufferSource::Input(Input::Noise)),
            buffer("product", outputs, BufferSource::Scratch),
            buffer("norm", outputs, BufferSource::Scratch),
            buffer(ACTIONS, outputs, BufferSource::Scratch),
        ];
        let mut program = self.program(buffers, vec![self.weight.clone()], Vec::new());
        let [x, product, norm, actions] = [0, 1, 2, 3].map(|number| program.view(BufferId(number)));
        let (weight, activation) = (WeightId(0), Activation::Silu);
        program.stages = vec![Stage {
            kind: StageKind::Denoise,
            leading_tokens: None,
            ops: vec![
                Op::Linear { x, weight, bias: None, activation, out: product },
                Op::LayerNorm { x: product, affine: None, modulation: None, eps: 1e-5, out: norm },
                Op::Copy { x: norm, out: actions },
                Op::AddScaled { x: product, factor: 0.5, out: actions },
                Op::Tap { x: actions, name: ACTIONS.to_owned() },
            ],
        }];
        program.exports = vec![(ACTIONS.to_owned(), BufferId(3))];
        Ok(program)
    }
}

impl Small {
    fn program(
        &self,
        buffers: Vec<BufferSpec>,
        weights: Vec<WeightSpec>,
        stages: Vec<Stage>,
    ) -> Program {
        let version = Version::N16;
        Program { version, buffers, indices: Vec::new(), weights, stages, exports: Vec::new() }
    }
}

/// The smallest weight of a product in the denoise stage of a tiny network, and its checkpoint.
fn small() -> (Arc<Checkpoint>, Small) {
    let tiny = Tiny::new(Version::N16);
    let program = tiny.request();
    let stage = program.stages.iter().find(|stage| stage.kind == StageKind::Denoise).unwrap();
    let weights = stage.ops.iter().filter_map(|op| match op {
        Op::Linear { weight, .. } => Some(&program.weights[weight.0]),
        _ => None,
    });
    let weight = weights.min_by_key(|weight| (weight.outputs(), weight.inputs())).unwrap().clone();
    (tiny.checkpoint, Small { weight })
}

fn input(small: &Small) -> ModelInput {
    let count = ROWS * small.weight.inputs();
    let value = |i: usize| ((i * 2_654_435_761) % 1009) as f32 / 504.5 - 1.0;
    ModelInput {
        pixels: Vec::new(),
        images: 0,
        grid: [0, 0],
        token_ids: vec![1],
        image_token: 0,
        state: Vec::new(),
        noise: (0..count).map(value).collect(),
    }
}

/// Takes what is handed over, which makes the programs run one by one.
struct Ignore;

impl TapSink for Ignore {
    fn tap(&mut self, _: &str, _: usize, _: usize, _: &[f32]) {}
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn every_replay_gives_the_bits_of_the_first_run() {
    if !simulator() {
        return;
    }
    let (checkpoint, small) = small();
    let load = || {
        let model = Box::new(small.clone());
        CpuBackend::load(Arc::clone(&checkpoint), model, 1, &Cache::default(), None).unwrap()
    };
    let (input, numerics) = (input(&small), CardNumerics::default());
    let predict = PredictOptions::default();
    let mut cpu = load().with_numerics(Numerics::Card(numerics));
    let expected = cpu.run(&input, &predict, None).unwrap().actions;
    let mut device = DeviceBackend::new(load(), numerics, options()).unwrap();
    let one_by_one = device.run(&input, &predict, Some(&mut Ignore)).unwrap().actions;
    let first = device.run(&input, &predict, None).unwrap().actions;
    let found = correlation(&first, &expected);
    println!("PCC {found}, largest difference {}", largest_difference(&first, &expected));
    assert!(found >= LEAST_PCC, "PCC {found}");
    assert_eq!(bits(&first), bits(&one_by_one), "traced and one by one");

    let mut other = input.clone();
    other.noise.iter_mut().for_each(|value| *value = -*value);
    let others = device.run(&other, &predict, None).unwrap().actions;
    assert_ne!(bits(&others), bits(&first));
    let asked = std::env::var("GR00T_DEVICE_RUNS").ok();
    let runs = asked.map_or(RUNS, |runs| runs.parse().expect("GR00T_DEVICE_RUNS is a number"));
    for number in 2..=runs {
        // Now and then another request comes between.
        if number % 10 == 0 {
            let again = device.run(&other, &predict, None).unwrap().actions;
            assert_eq!(bits(&again), bits(&others), "the other request before run {number}");
            println!("{number} runs");
        }
        let again = device.run(&input, &predict, None).unwrap().actions;
        assert_eq!(bits(&again), bits(&first), "run {number}");
    }
}
