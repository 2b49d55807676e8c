//! From observations to the input of an N1.7 model, on synthetic checkpoints: order, refusals, letterbox, frames that
//! arrive ahead of their request.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use gr00t_blackhole::checkpoint::synth::{self, Size, TOKENIZER_FOLDER};
use gr00t_blackhole::checkpoint::{Network, Processor, Snapshot};
use gr00t_blackhole::contract::{
    ActionChunk, Embodiment, Frame, Letterbox, Noise, Observation, PredictOptions, Version,
};
use gr00t_blackhole::encode::n17::Encoder;
use gr00t_blackhole::encode::tokenizer::Tokenizer;
use gr00t_blackhole::encode::{Culprit, Encode, EncodeError, FrameShapes, ModelInput};
use gr00t_blackhole::policy::{Policy, PolicyOptions};
use proptest::prelude::*;
use tempfile::TempDir;

const DROID: &str = "oxe_droid_relative_eef_relative_joint";

static TINY: LazyLock<TempDir> = LazyLock::new(|| {
    let dir = TempDir::new().unwrap();
    synth::write(Version::N17, Size::Tiny, &dir.path().join("tiny"), &|_, _| {}).unwrap();
    dir
});

fn snapshot() -> Snapshot {
    Snapshot::open(&TINY.path().join("tiny")).unwrap()
}

fn encoder_with(
    tag: &str,
    letterbox: Letterbox,
    change: impl FnOnce(&mut Processor),
) -> Result<Encoder, EncodeError> {
    let snapshot = snapshot();
    let Network::N17(config, _) = snapshot.network() else { panic!("another version") };
    let mut processor = snapshot.processor().unwrap().clone();
    change(&mut processor);
    let tokenizer = Tokenizer::open(&snapshot.dir().join(TOKENIZER_FOLDER)).unwrap();
    let embodiment = snapshot.embodiment(tag).unwrap().clone();
    Encoder::new(config, &processor, embodiment, tokenizer, letterbox)
}

fn encoder(tag: &str, letterbox: Letterbox) -> Encoder {
    encoder_with(tag, letterbox, |_| {}).unwrap()
}

fn shapes(tag: &str, letterbox: Letterbox) -> FrameShapes {
    let snapshot = snapshot();
    FrameShapes::new(snapshot.network(), snapshot.embodiment(tag).unwrap(), letterbox).unwrap()
}

fn frame(seed: u32, width: u32, height: u32) -> Arc<Frame> {
    let sample = |i: u32| (i.wrapping_mul(2_654_435_761).wrapping_add(seed * 97) >> 13) as u8;
    let rgb: Vec<u8> = (0..3 * width * height).map(sample).collect();
    Arc::new(Frame::new(width, height, rgb).unwrap())
}

/// An observation with frames of these sizes, one size per camera.
fn observation(embodiment: &Embodiment, sizes: &[(u32, u32)]) -> Observation {
    let mut seed = 0;
    let mut frames = BTreeMap::new();
    for (camera, (width, height)) in embodiment.cameras.iter().zip(sizes) {
        let of_camera = embodiment.frame_deltas.iter().map(|_| {
            seed += 1;
            frame(seed, *width, *height)
        });
        frames.insert(camera.clone(), of_camera.collect());
    }
    let state = |(name, values): (&str, &[f64])| (name.to_owned(), values.to_vec());
    let pose: &[f64] = &[0.4, 0.1, 0.3, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
    let state = match embodiment.tag.as_str() {
        DROID => BTreeMap::from(
            [("eef_9d", pose), ("gripper_position", &[0.03]), ("joint_position", &[0.1; 7])]
                .map(state),
        ),
        _ => embodiment.state.iter().map(|spec| (spec.name.clone(), vec![0.1; spec.dim])).collect(),
    };
    Observation { stamp_ns: 7, frames, state, instruction: "Put the marker in the pot.".into() }
}

fn droid(width: u32, height: u32) -> Observation {
    observation(snapshot().embodiment(DROID).unwrap(), &[(width, height); 2])
}

fn encoded(encoder: &mut Encoder, observation: &Observation) -> Result<ModelInput, EncodeError> {
    encoder.encode(observation, &Noise::Seed(42)).cloned()
}

#[test]
fn case_61_frames_of_another_shape_are_refused_with_the_range() {
    let mut encoder = encoder(DROID, Letterbox::Auto);
    let shapes = shapes(DROID, Letterbox::Auto);
    assert_eq!(shapes.aspect_ratios(), Some([863.0 / 512.0, 929.0 / 512.0]));
    for (width, height) in [
        (256, 256),
        (640, 480),
        (480, 640),
        (180, 320),
        (400, 240),
        (1280, 800),
        (2560, 1080),
        (720, 480),
        (505, 300),
        (547, 300),
    ] {
        let error = encoded(&mut encoder, &droid(width, height)).unwrap_err();
        assert!(matches!(error, EncodeError::AspectRatio { .. }), "{error}");
        assert_eq!(error.culprit(), Some(Culprit::Camera("exterior_image_1_left")));
        let text = error.to_string();
        // Known without encoding, and from the snapshot alone.
        for shapes in [&shapes, &encoder.frame_shapes()] {
            let refused = shapes.check("exterior_image_1_left", &frame(1, width, height));
            assert_eq!(refused.unwrap_err().to_string(), text);
        }
        let size = format!("{width}x{height}");
        for part in ["exterior_image_1_left", &size, "1.686 to 1.814", "16x28", "letterbox"] {
            assert!(text.contains(part), "'{part}' is missing in: {text}");
        }
    }
    for (width, height) in [(320, 180), (424, 240), (1024, 576), (543, 300), (1152, 640)] {
        assert!(shapes.check("wrist_image_left", &frame(1, width, height)).is_ok());
        assert_eq!(encoded(&mut encoder, &droid(width, height)).unwrap().grid, [16, 28]);
    }
}

#[test]
fn letterboxed_frames_of_any_shape_are_served() {
    let mut encoder = encoder(DROID, Letterbox::On);
    for (width, height) in [(320, 180), (640, 480), (64, 4096)] {
        let input = encoded(&mut encoder, &droid(width, height)).unwrap();
        assert_eq!((input.grid, input.image_rows().count()), ([16, 16], 4 * 64));
    }
    assert_eq!(shapes(DROID, Letterbox::On).aspect_ratios(), None);
    assert_eq!(shapes("libero_sim", Letterbox::Auto).aspect_ratios(), None);
}

#[test]
fn the_letterbox_setting_goes_before_the_checkpoint() {
    let grid = |declared, setting| {
        let encoder = encoder_with("libero_sim", setting, |processor| {
            processor.image.letterbox = declared;
        });
        let observation =
            observation(snapshot().embodiment("libero_sim").unwrap(), &[(640, 480); 2]);
        Ok::<_, EncodeError>(encoded(&mut encoder?, &observation)?.grid)
    };
    let (padded, plain) = ([16, 16], [16, 22]);
    assert_eq!(grid(Some(false), Letterbox::Auto).unwrap(), plain);
    assert_eq!(grid(Some(true), Letterbox::Auto).unwrap(), padded);
    assert_eq!(grid(Some(true), Letterbox::Off).unwrap(), plain);
    assert_eq!(grid(Some(false), Letterbox::On).unwrap(), padded);
    assert_eq!(grid(None, Letterbox::Off).unwrap(), plain);
    let error = grid(None, Letterbox::Auto).unwrap_err();
    assert!(matches!(error, EncodeError::LetterboxOpen), "{error}");
    for letterbox in Letterbox::ALL {
        assert_eq!(letterbox.to_string().parse(), Ok(letterbox));
    }
}

#[test]
fn cameras_whose_pictures_differ_in_shape_are_refused_by_name() {
    let snapshot = snapshot();
    let embodiment = snapshot.embodiment("libero_sim").unwrap();
    let mut encoder = encoder("libero_sim", Letterbox::Auto);
    let mixed = observation(embodiment, &[(640, 480), (320, 180)]);
    let text = encoded(&mut encoder, &mixed).unwrap_err().to_string();
    for part in ["'image' (640x480 becomes 340x256)", "'wrist_image' (320x180 becomes 455x256)"] {
        assert!(text.contains(part), "{text}");
    }
    // Both would end at 448x256, but the reference stacks them before that.
    let mixed = observation(embodiment, &[(1280, 720), (448, 256)]);
    let error = encoded(&mut encoder, &mixed).unwrap_err();
    assert!(matches!(error, EncodeError::UnequalPictures { .. }));
    assert_eq!(error.culprit(), Some(Culprit::Camera("wrist_image")));
    let scaled = observation(embodiment, &[(1280, 720), (320, 180)]);
    assert_eq!(encoded(&mut encoder, &scaled).unwrap().grid, [16, 28]);
}

#[test]
fn pictures_of_more_tokens_than_a_prompt_has_are_refused_before_any_work() {
    let snapshot = snapshot();
    let embodiment = snapshot.embodiment("new_embodiment").unwrap();
    let sharper = |processor: &mut Processor| processor.image.shortest_edge = 2048;
    let mut encoder = encoder_with("new_embodiment", Letterbox::Auto, sharper).unwrap();
    let start = Instant::now();
    let error = encoded(&mut encoder, &observation(embodiment, &[(4096, 64)])).unwrap_err();
    assert!(matches!(error, EncodeError::PictureTokens { .. }), "{error}");
    assert!(error.to_string().contains("'front' gives frames of 4096x64"), "{error}");
    assert!(start.elapsed().as_secs() < 2, "it was resized first");
}

#[test]
fn frames_are_time_major_in_the_order_of_the_checkpoint() {
    let mut encoder = encoder(DROID, Letterbox::Auto);
    let all = encoded(&mut encoder, &droid(320, 180)).unwrap();
    assert_eq!(all.images, 4);
    let picture = all.pixels.len() / 4;
    let frames = droid(320, 180).frames;
    let order =
        [("exterior_image_1_left", 0), ("wrist_image_left", 0), ("exterior_image_1_left", 1)];
    for (position, (camera, time)) in order.into_iter().enumerate() {
        // An observation of that frame alone, everywhere.
        let mut alone = droid(320, 180);
        for frames_of in alone.frames.values_mut() {
            *frames_of = vec![frames[camera][time].clone(); 2];
        }
        let alone = encoded(&mut encoder, &alone).unwrap();
        let expected = &alone.pixels[..picture];
        assert!(all.pixels[position * picture..][..picture] == *expected, "{camera} at {time}");
    }
}

#[test]
fn frames_encoded_as_they_arrive_give_the_same_input() {
    let observation = droid(1280, 720);
    let expected = encoded(&mut encoder(DROID, Letterbox::Auto), &observation).unwrap();
    let mut encoder = encoder(DROID, Letterbox::Auto);
    let intake = encoder.intake().unwrap();
    std::thread::scope(|scope| {
        for (camera, frames) in &observation.frames {
            let intake = &intake;
            scope.spawn(move || frames.iter().for_each(|f| intake.arrived(camera, f).unwrap()));
        }
    });
    assert!(encoded(&mut encoder, &observation).unwrap() == expected);
    // The frames of now are the history of the next request.
    let mut next = observation.clone();
    for (number, frames) in next.frames.values_mut().enumerate() {
        *frames = vec![frames[1].clone(), frame(50 + number as u32, 1280, 720)];
    }
    let fresh = encoded(&mut self::encoder(DROID, Letterbox::Auto), &next).unwrap();
    assert!(encoded(&mut encoder, &next).unwrap() == fresh);
}

#[test]
fn frames_that_would_be_refused_are_refused_on_arrival() {
    let encoder = encoder(DROID, Letterbox::Auto);
    let intake = encoder.intake().unwrap();
    let error = intake.arrived("wrist_image_left", &frame(1, 640, 480)).unwrap_err();
    assert!(matches!(error, EncodeError::AspectRatio { .. }), "{error}");
    let error = intake.arrived("elbow", &frame(1, 320, 180)).unwrap_err();
    assert!(matches!(error, EncodeError::UnknownCamera { .. }), "{error}");
}

#[test]
fn missing_unknown_and_miscounted_frames_are_named() {
    let mut encoder = encoder(DROID, Letterbox::Auto);
    let mut changed = |change: &dyn Fn(&mut Observation)| {
        let mut observation = droid(320, 180);
        change(&mut observation);
        encoded(&mut encoder, &observation).unwrap_err()
    };
    let error = changed(&|o| drop(o.frames.remove("wrist_image_left")));
    assert!(matches!(error, EncodeError::MissingCamera { .. }), "{error}");
    let error = changed(&|o| drop(o.frames.insert("elbow".into(), vec![])));
    assert!(matches!(error, EncodeError::UnknownCamera { .. }), "{error}");
    let error = changed(&|o| drop(o.frames.get_mut("wrist_image_left").unwrap().pop()));
    assert!(matches!(error, EncodeError::FrameCount { expected: 2, found: 1, .. }), "{error}");
    assert!(error.to_string().contains("[-15, 0]"), "{error}");
}

fn policy(tag: &str) -> Policy {
    let options = PolicyOptions {
        snapshot: TINY.path().join("tiny"),
        embodiment: Some(tag.to_owned()),
        ..PolicyOptions::default()
    };
    Policy::load(&options).unwrap()
}

fn values(chunk: &ActionChunk) -> Vec<u32> {
    chunk.groups.iter().flat_map(|group| &group.values).map(|value| value.to_bits()).collect()
}

#[test]
fn every_synthetic_robot_gets_a_chunk() {
    for (tag, sizes, horizon, dims) in [
        (DROID, &[(320, 180); 2][..], 40, &[9, 1, 7][..]),
        ("libero_sim", &[(256, 256), (128, 128)], 16, &[1; 7]),
        ("new_embodiment", &[(640, 480)], 24, &[9, 6, 7, 2]),
    ] {
        let mut policy = policy(tag);
        let mut observation = observation(policy.embodiment(), sizes);
        if let Some(pose) = observation.state.get_mut("left_eef") {
            *pose = vec![0.4, 0.1, 0.3, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0];
        }
        let chunk = policy.predict(&observation, &PredictOptions::default()).unwrap();
        assert_eq!((chunk.version, chunk.horizon, chunk.seed), (Version::N17, horizon, Some(42)));
        assert_eq!(chunk.groups.iter().map(|group| group.dim).collect::<Vec<_>>(), dims);
        assert!(chunk.groups.iter().all(|group| group.values.len() == horizon * group.dim));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the order in which cameras and state groups are filled in, and whichever frames arrived beforehand.
    #[test]
    fn the_order_of_arrival_never_changes_a_chunk(
        order in Just(vec![0usize, 1, 2, 3]).prop_shuffle(),
        ahead in proptest::collection::vec(any::<bool>(), 4),
        reverse_state in any::<bool>(),
    ) {
        static EXPECTED: LazyLock<Vec<u32>> = LazyLock::new(|| {
            values(&policy(DROID).predict(&droid(320, 180), &PredictOptions::default()).unwrap())
        });
        let source = droid(320, 180);
        let mut policy = policy(DROID);
        let intake = policy.intake().unwrap();
        let cameras = ["wrist_image_left", "exterior_image_1_left"];
        let mut observation = Observation { frames: BTreeMap::new(), ..source.clone() };
        for position in order {
            let camera = cameras[position / 2];
            if ahead[position] {
                intake.arrived(camera, &source.frames[camera][position % 2]).unwrap();
            }
            let frames = source.frames[camera].clone();
            observation.frames.insert(camera.to_owned(), frames);
        }
        let mut groups: Vec<_> = source.state.clone().into_iter().collect();
        if reverse_state {
            groups.reverse();
        }
        observation.state = groups.into_iter().collect();
        let chunk = policy.predict(&observation, &PredictOptions::default()).unwrap();
        prop_assert_eq!(values(&chunk), EXPECTED.clone());
    }
}
