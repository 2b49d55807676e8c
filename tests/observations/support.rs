//! Observations made at test time.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gr00t_blackhole::contract::{
    ActionChunk, ActionGroup, Frame, Noise, Observation, PredictOptions, Representation,
    StageTimings, Version,
};
use gr00t_blackhole::observations::{Identity, Recorded, Recorder, Recording};

pub const NO_LIMIT: u64 = u64::MAX;
pub const SECOND: i64 = 1_000_000_000;

pub fn identity(version: Version) -> Identity {
    Identity { version, embodiment: "gr1".into(), snapshot: "/models/tiny sha256:00ff".into() }
}

/// A frame that no other seed gives.
pub fn frame(width: u32, height: u32, seed: u64) -> Arc<Frame> {
    let mut noise = seed;
    let rgb = std::iter::repeat_with(|| {
        noise =
            noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (noise >> 56) as u8
    });
    let rgb: Vec<u8> = rgb.take(3 * (width * height) as usize).collect();
    Arc::new(Frame::new(width, height, rgb).unwrap())
}

/// Values that are easily changed on their way.
pub const ODD: [f64; 8] = [
    -0.0,
    f64::MIN_POSITIVE / 4.0,
    -5e-324,
    0.1,
    1.0 / 3.0,
    f64::MAX,
    f64::EPSILON,
    -1.797_693_134_862_315_7e308,
];

pub fn observation(number: u64, frames: &[(&str, Vec<Arc<Frame>>)]) -> Arc<Observation> {
    let state =
        [("left_arm", ODD.to_vec()), ("empty", vec![]), ("waist", vec![number as f64 / 3.0])];
    Arc::new(Observation {
        stamp_ns: 1_700_000_000 * SECOND + number as i64,
        frames: frames
            .iter()
            .map(|(camera, frames)| ((*camera).to_owned(), frames.clone()))
            .collect(),
        state: state.map(|(name, values)| (name.to_owned(), values)).into(),
        instruction: format!("pick the pear \"{number}\"\n ümlaut 梨"),
    })
}

pub fn chunk(observation: &Observation) -> ActionChunk {
    let group = |name: &str, representation, dim, values: &[f32]| ActionGroup {
        name: name.into(),
        representation,
        dim,
        values: values.into(),
    };
    ActionChunk {
        version: Version::N16,
        embodiment: "gr1".into(),
        instruction: observation.instruction.clone(),
        seed: Some(7),
        stamp_ns: observation.stamp_ns,
        horizon: 2,
        groups: vec![
            group("left_arm", Representation::Absolute, 2, &[-0.0, 1e-45, f32::MAX, 0.1]),
            group("pose", Representation::PoseRot6d, 1, &[0.3, -1e-40]),
            group("base", Representation::Delta, 1, &[1.0, 2.0]),
        ],
        normalized: vec![],
        timings: StageTimings::default(),
    }
}

pub fn seeded(seed: u64) -> PredictOptions {
    PredictOptions { noise: Some(Noise::Seed(seed)), ..PredictOptions::default() }
}

pub fn all(path: &Path) -> Vec<Recorded> {
    let recording = Recording::open(path).unwrap();
    recording.predictions().unwrap().map(Result::unwrap).collect()
}

/// Every bit of an observation is as it was.
pub fn assert_same(found: &Observation, expected: &Observation) {
    assert_eq!(found.stamp_ns, expected.stamp_ns);
    assert_eq!(found.instruction, expected.instruction);
    assert_eq!(found.frames, expected.frames);
    let bits = |observation: &Observation| -> Vec<(String, Vec<u64>)> {
        let groups = observation.state.iter();
        groups.map(|(name, v)| (name.clone(), v.iter().map(|v| v.to_bits()).collect())).collect()
    };
    assert_eq!(bits(found), bits(expected));
}

/// Waits until the recorder's thread has dealt with so many predictions.
pub fn wait_for(recorder: &Recorder, predictions: u64) {
    let start = Instant::now();
    loop {
        let counts = recorder.counts();
        if counts.recorded + counts.dropped >= predictions {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{counts:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
