//! What was recorded is what is read.

use std::sync::Arc;

use gr00t_blackhole::bag::{Bag, BagReader};
use gr00t_blackhole::contract::{Noise, PredictOptions, Version};
use gr00t_blackhole::observations::{KEPT_FRAMES, Recorder, Recording};

use super::support::{
    NO_LIMIT, all, assert_same, chunk, frame, identity, observation, seeded, wait_for,
};

#[test]
fn every_bit_comes_back_with_several_cameras_and_histories() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let recorder = Recorder::create(&path, identity(Version::N17), NO_LIMIT).unwrap();
    // Keys that differ only in what ROS does not allow in names of topics.
    let wide: Vec<_> = (0..6).map(|seed| frame(96, 64, seed)).collect();
    let other: Vec<_> = (10..16).map(|seed| frame(64, 80, seed)).collect();
    let mut expected = Vec::new();
    for number in 0..5usize {
        let frames = [
            ("wrist.left", vec![Arc::clone(&wide[number]), Arc::clone(&wide[number + 1])]),
            ("wrist#left", vec![Arc::clone(&other[0]), Arc::clone(&other[number])]),
        ];
        let observation = observation(number as u64, &frames);
        recorder.record(&observation, &seeded(u64::MAX - number as u64), Ok(&chunk(&observation)));
        wait_for(&recorder, number as u64 + 1);
        expected.push(observation);
    }
    let counts = recorder.finish();
    assert_eq!((counts.recorded, counts.dropped, counts.ended), (5, 0, None));

    let found = all(&path);
    assert_eq!(found.len(), 5);
    for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found.number, number as u64);
        assert_same(&found.observation, expected);
        assert_eq!(found.identity, identity(Version::N17));
        assert_eq!(found.program, env!("CARGO_PKG_VERSION"));
        assert_eq!(found.options.noise, Some(Noise::Seed(u64::MAX - number as u64)));
        let (groups, made) = (found.outcome.as_ref().unwrap(), chunk(expected));
        assert_eq!(groups, &made.groups);
        assert_eq!(groups[0].values[0].to_bits(), (-0.0f32).to_bits());
    }
    // A frame that several predictions used is one frame, as it was for the policy.
    let [first, second] =
        [&found[0], &found[1]].map(|found| &found.observation.frames["wrist.left"]);
    assert!(Arc::ptr_eq(&first[1], &second[0]));
}

#[test]
fn frames_are_written_once_and_tools_can_read_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let recorder = Recorder::create(&path, identity(Version::N16), NO_LIMIT).unwrap();
    let same = frame(64, 64, 1);
    for number in 0..4 {
        let observation = observation(number, &[("ego_view", vec![Arc::clone(&same)])]);
        recorder.record(&observation, &seeded(1), Ok(&chunk(&observation)));
    }
    assert_eq!(recorder.finish().recorded, 4);
    let bag = Bag::read(&path).unwrap();
    assert!(bag.notes.is_empty(), "{:?}", bag.notes);
    let topics: Vec<_> =
        bag.topics.iter().map(|t| (&*t.name, &*t.message_type, t.stamped, t.messages)).collect();
    assert_eq!(
        topics,
        [
            ("/observation/prediction", "gr00t_blackhole/msg/RecordedPrediction", true, Some(4)),
            ("/observation/frames/ego_view", "sensor_msgs/msg/Image", true, Some(1)),
        ]
    );
    let image = bag.messages.iter().find(|message| message.topic == 1).unwrap();
    let image = gr00t_blackhole::node::messages::Image::from_cdr(image.data.clone()).unwrap();
    assert_eq!((image.encoding.as_str(), image.width, image.step), ("rgb8", 64, 192));
    assert_eq!(image.data, same.rgb());
}

#[test]
fn a_frame_that_comes_back_after_many_others_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let recorder = Recorder::create(&path, identity(Version::N16), NO_LIMIT).unwrap();
    let frames: Vec<_> = (0..=KEPT_FRAMES as u64).map(|seed| frame(64, 64, seed)).collect();
    let mut expected = Vec::new();
    for (number, frame) in frames.iter().chain([&frames[0], &frames[KEPT_FRAMES]]).enumerate() {
        let observation = observation(number as u64, &[("ego_view", vec![Arc::clone(frame)])]);
        recorder.record(&observation, &seeded(1), Ok(&chunk(&observation)));
        wait_for(&recorder, number as u64 + 1);
        expected.push(observation);
    }
    recorder.finish();
    for (found, expected) in all(&path).iter().zip(&expected) {
        assert_same(&found.observation, expected);
    }
    let images = BagReader::open(&path).unwrap().topics()[1].messages;
    assert_eq!(images, Some(KEPT_FRAMES as u64 + 2));
}

#[test]
fn failures_and_explicit_noise_are_recorded_and_the_default_seed_by_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let recorder = Recorder::create(&path, identity(Version::N16), NO_LIMIT).unwrap();
    let observation = observation(0, &[]);
    let noise = Noise::Explicit(vec![-0.0, 1e-42, 3.5]);
    let explicit = PredictOptions { noise: Some(noise.clone()), ..PredictOptions::default() };
    recorder.record(&observation, &explicit, Ok(&chunk(&observation)));
    recorder.record(
        &observation,
        &PredictOptions::default(),
        Err("the prediction was cancelled".into()),
    );
    let nothing = Noise::Explicit(vec![]);
    let without_values =
        PredictOptions { noise: Some(nothing.clone()), ..PredictOptions::default() };
    recorder.record(&observation, &without_values, Err(String::new()));
    recorder.finish();
    let found = all(&path);
    assert_eq!(found[0].options.noise, Some(noise));
    assert_eq!(found[2].options.noise, Some(nothing));
    assert_eq!(found[2].outcome, Err("no reason was given".into()));
    assert_eq!(found[1].options.noise, Some(Noise::Seed(Version::N16.default_seed())));
    assert_eq!(found[1].outcome, Err("the prediction was cancelled".into()));
}

#[test]
fn other_bags_are_refused() {
    let bag = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/pear_to_plate");
    let error = Recording::open(&bag).err().unwrap().to_string();
    assert!(error.contains("pear_to_plate is no recording of observations"), "{error}");
    assert!(!Recording::is_one(&BagReader::open(&bag).unwrap()));
}
