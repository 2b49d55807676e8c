//! The programs for traces on a simulated device: every instruction against the CPU with card numerics, then whole requests
//! through the captured traces. Without a simulator (`TT_METAL_SIMULATOR`) there is nothing to run on, and the tests say so.

use std::env;
use std::sync::Arc;

use gr00t_blackhole::backend::Backend;
use gr00t_blackhole::backend::blackhole::device::{DeviceBackend, DeviceKind, DeviceOptions};
use gr00t_blackhole::backend::cpu::CpuBackend;
use gr00t_blackhole::backend::cpu::card::CardNumerics;
use gr00t_blackhole::contract::{PredictOptions, TapSink, Version};
use gr00t_blackhole::prepared::Cache;

use super::tiny::{Reference, Tiny, place_of};

/// Least correlation of the actions with the CPU's.
pub const LEAST_PCC: f64 = 0.9999;
/// Of what any instruction on the way writes. The matrix engine's sums differ by about 3e-4 of a product's typical size, and a
/// stage adds up the differences of all that it has computed before.
const LEAST_PCC_ON_THE_WAY: f64 = 0.9995;

/// Whether there is a simulator; says so if not.
pub fn simulator() -> bool {
    let found = env::var_os("TT_METAL_SIMULATOR").is_some();
    if !found {
        eprintln!("passed over: TT_METAL_SIMULATOR names no simulator");
    }
    found
}

/// Of a simulator, with the Python of the environment.
pub fn options() -> DeviceOptions {
    let mut options = DeviceOptions::new(DeviceKind::Simulator);
    if let Some(python) = env::var_os("GR00T_DEVICE_PYTHON") {
        options.python = python.into();
    }
    options.cache_dir = Some(env::temp_dir().join("gr00t_blackhole_device_tests"));
    options
}

fn device(version: Version) -> DeviceBackend {
    let (checkpoint, model) = Tiny::new(version).tapped();
    let cpu = CpuBackend::load(Arc::clone(&checkpoint), model, 1, &Cache::default(), None).unwrap();
    DeviceBackend::new(cpu, CardNumerics::default(), options()).unwrap_or_else(|e| panic!("{e}"))
}

pub fn correlation(a: &[f32], b: &[f32]) -> f64 {
    let mean = |x: &[f32]| x.iter().map(|v| f64::from(*v)).sum::<f64>() / x.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (f64::from(*a) - mean_a, f64::from(*b) - mean_b);
        (ab, aa, bb) = (ab + a * b, aa + a * a, bb + b * b);
    }
    if aa == bb && ab == aa { 1.0 } else { ab / (aa * bb).sqrt() }
}

pub fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// Compares what every instruction has written.
struct Compare<'a> {
    reference: &'a Reference,
    worst: (f64, String),
    wrong: Vec<String>,
    count: usize,
}

impl TapSink for Compare<'_> {
    fn tap(&mut self, name: &str, _: usize, _: usize, values: &[f32]) {
        let Some((stage, op)) = place_of(name) else { return };
        let expected = self.reference.written_by(stage, op);
        assert_eq!(values.len(), expected.len(), "{name}");
        let found = correlation(values, expected);
        let largest = largest_difference(values, expected);
        self.count += 1;
        if found.is_nan() || found < self.worst.0 {
            self.worst = (found, name.to_owned());
        }
        if found.is_nan() || found < LEAST_PCC_ON_THE_WAY {
            let op = &self.reference.program.stages[stage].ops[op];
            self.wrong.push(format!("{name}: PCC {found}, largest difference {largest}: {op:?}"));
        }
    }
}

fn check(version: Version) {
    if !simulator() {
        return;
    }
    // Whoever waits wants to know for what.
    let _ = tracing_subscriber::fmt().with_test_writer().try_init();
    let (_, reference) = Tiny::new(version).reference(CardNumerics::default());
    let mut device = device(version);
    let options = PredictOptions::default();
    let worst = (1.0, String::new());
    let mut compare = Compare { reference: &reference, worst, wrong: Vec::new(), count: 0 };
    let tapped = device.run(&reference.input, &options, Some(&mut compare));
    let tapped = tapped.unwrap_or_else(|error| panic!("{version}: {error}"));
    println!("{version}: {} instructions, worst PCC {:?}", compare.count, compare.worst);
    assert!(compare.wrong.is_empty(), "{version}:\n{}", compare.wrong.join("\n"));
    assert!(compare.count > 100, "{} instructions", compare.count);

    let traced = device.run(&reference.input, &options, None).unwrap();
    let (pcc, largest) = (
        correlation(&traced.actions, &reference.actions),
        largest_difference(&traced.actions, &reference.actions),
    );
    println!("{version}: actions PCC {pcc}, largest difference {largest}");
    assert!(pcc >= LEAST_PCC, "{version}: PCC {pcc}");
    assert_eq!(traced.actions, tapped.actions, "{version}: traced and untraced");

    let mut other = reference.input.clone();
    other.noise.iter_mut().for_each(|value| *value = -*value);
    let b = device.run(&other, &options, None).unwrap().actions;
    assert_ne!(b, traced.actions);
    for _ in 0..2 {
        assert_eq!(device.run(&reference.input, &options, None).unwrap().actions, traced.actions);
        assert_eq!(device.run(&other, &options, None).unwrap().actions, b);
    }
}

#[test]
fn n16_on_a_simulated_device() {
    check(Version::N16);
}

#[test]
fn n15_on_a_simulated_device() {
    check(Version::N15);
}

#[test]
fn n17_on_a_simulated_device() {
    check(Version::N17);
}
