//! The recorder never waits, and tells what it leaves out.

use std::fs;

use gr00t_blackhole::bag::BagError;
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::observations::{Recorder, free_directory};

use super::support::{
    NO_LIMIT, all, assert_same, chunk, frame, identity, observation, seeded, wait_for,
};

#[test]
fn what_the_disk_cannot_keep_up_with_is_left_out_and_counted() {
    const PREDICTIONS: u64 = 60;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let recorder = Recorder::create(&path, identity(Version::N16), NO_LIMIT).unwrap();
    let observations: Vec<_> = (0..PREDICTIONS)
        .map(|number| observation(number, &[("ego_view", vec![frame(640, 480, number)])]))
        .collect();
    for observation in &observations {
        recorder.record(observation, &seeded(1), Ok(&chunk(observation)));
    }
    let counts = recorder.finish();
    assert_eq!(counts.recorded + counts.dropped, PREDICTIONS);
    assert!(counts.dropped > 0, "60 frames were written before they could be handed over");
    assert_eq!(counts.ended, None);
    let found = all(&path);
    assert_eq!(found.len() as u64, counts.recorded);
    for found in &found {
        let number = found.observation.state["waist"][0] * 3.0;
        assert_same(&found.observation, &observations[number.round() as usize]);
    }
}

#[test]
fn a_recording_ends_at_its_size_and_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let recorder = Recorder::create(&path, identity(Version::N16), 100_000).unwrap();
    for number in 0..20 {
        let observation = observation(number, &[("ego_view", vec![frame(64, 64, number)])]);
        recorder.record(&observation, &seeded(1), Ok(&chunk(&observation)));
        wait_for(&recorder, number + 1);
    }
    let counts = recorder.finish();
    // A frame has 12,288 bytes; the one that goes beyond the limit is written whole.
    assert_eq!((counts.recorded, counts.dropped), (8, 12));
    assert!(counts.ended.unwrap().contains("may have 100000"));
    assert!(path.join("metadata.yaml").exists());
    assert_eq!(all(&path).len(), 8);
    let bytes = fs::metadata(path.join("recording_0.mcap")).unwrap().len();
    assert!(bytes < 130_000, "{bytes}");
}

#[test]
fn nothing_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let error = Recorder::create(folder.path(), identity(Version::N16), NO_LIMIT).err().unwrap();
    assert!(matches!(error, BagError::Exists(_)), "{error}");
}

#[test]
fn the_next_recording_has_a_name_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let wanted = folder.path().join("run");
    for expected in ["run", "run_2", "run_3"] {
        let directory = free_directory(&wanted);
        assert_eq!(directory, folder.path().join(expected));
        Recorder::create(&directory, identity(Version::N16), NO_LIMIT).unwrap();
    }
}

#[test]
fn another_policy_is_told_apart_before_it_predicts() {
    let recorded = identity(Version::N16);
    recorded.check(Version::N16, "gr1").unwrap();
    for (version, embodiment) in [(Version::N17, "gr1"), (Version::N16, "oxe_droid")] {
        let error = recorded.check(version, embodiment).unwrap_err().to_string();
        assert!(error.contains("n16 for gr1") && error.contains(embodiment), "{error}");
    }
}

#[test]
fn a_prediction_that_cannot_be_written_does_not_end_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let recorder = Recorder::create(&path, identity(Version::N16), NO_LIMIT).unwrap();
    let mut beyond = (*observation(0, &[])).clone();
    beyond.stamp_ns = i64::MAX;
    let good = observation(1, &[]);
    recorder.record(&beyond.into(), &seeded(1), Err("late".into()));
    recorder.record(&good, &seeded(1), Ok(&chunk(&good)));
    let counts = recorder.finish();
    assert_eq!((counts.recorded, counts.dropped, counts.ended), (1, 1, None));
    assert_same(&all(&path)[0].observation, &good);
}

#[test]
fn a_directory_that_is_gone_ends_the_recording_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let recorder = Recorder::create(&path, identity(Version::N16), NO_LIMIT).unwrap();
    let first = observation(0, &[]);
    recorder.record(&first, &seeded(1), Ok(&chunk(&first)));
    wait_for(&recorder, 1);
    // A directory that is gone cannot be asked for its room.
    fs::remove_dir_all(&path).unwrap();
    for number in 1..30 {
        let observation = observation(number, &[]);
        recorder.record(&observation, &seeded(1), Ok(&chunk(&observation)));
        wait_for(&recorder, number + 1);
    }
    let counts = recorder.finish();
    assert_eq!((counts.recorded, counts.dropped), (1, 29));
    assert!(counts.ended.is_some());
}
