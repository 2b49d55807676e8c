//! What a kill leaves can be read.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use gr00t_blackhole::contract::Version;
use gr00t_blackhole::observations::{RecordError, Recorder, Recording};
use proptest::prelude::*;

use super::support::{
    NO_LIMIT, all, assert_same, chunk, frame, identity, observation, seeded, wait_for,
};

const PREDICTIONS: u64 = 6;

/// The file of a recording that goes on, copied as a kill at this moment would leave it.
fn killed(directory: &Path) -> Vec<u8> {
    let path = directory.join("live");
    let recorder = Recorder::create(&path, identity(Version::N16), NO_LIMIT).unwrap();
    let frames: Vec<_> = (0..=PREDICTIONS).map(|seed| frame(64, 64, seed)).collect();
    for number in 0..PREDICTIONS {
        let pair = [number as usize, number as usize + 1].map(|at| Arc::clone(&frames[at]));
        let observation = observation(number, &[("ego_view", pair.into())]);
        recorder.record(&observation, &seeded(number), Ok(&chunk(&observation)));
        wait_for(&recorder, number + 1);
    }
    assert!(!path.join("metadata.yaml").exists());
    fs::read(path.join("live_0.mcap")).unwrap()
}

#[test]
fn all_that_was_recorded_before_a_kill_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = killed(folder.path());
    let path = folder.path().join("killed.mcap");
    fs::write(&path, &bytes).unwrap();
    let found = all(&path);
    assert_eq!(found.len() as u64, PREDICTIONS);
    for (number, found) in found.iter().enumerate() {
        let frames: Vec<_> = [number, number + 1].map(|seed| frame(64, 64, seed as u64)).into();
        assert_same(&found.observation, &observation(number as u64, &[("ego_view", frames)]));
    }
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.count(), Some(PREDICTIONS));
    assert!(recording.notes()[0].to_string().contains("never finished"), "{:?}", recording.notes());
}

/// Where the process that is to be killed records; without it, there is nothing to do.
const VICTIM: &str = "GR00T_TEST_RECORDING";

#[test]
#[ignore = "the other half of a_killed_process_leaves_all_that_it_had_recorded, which starts it"]
fn victim() {
    let Some(path) = std::env::var_os(VICTIM) else { return };
    let recorder = Recorder::create(Path::new(&path), identity(Version::N16), NO_LIMIT).unwrap();
    for number in 0.. {
        let observation = observation(number, &[("ego_view", vec![frame(64, 64, number)])]);
        recorder.record(&observation, &seeded(number), Ok(&chunk(&observation)));
        wait_for(&recorder, number + 1);
        println!("\nrecorded {}", number + 1);
    }
}

#[test]
fn a_killed_process_leaves_all_that_it_had_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "damaged::victim", "--nocapture"])
        .env(VICTIM, &path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "recorded 20"));
    victim.kill().unwrap();
    victim.wait().unwrap();
    let found = all(&path);
    assert!(found.len() >= 20, "{}", found.len());
    for (number, found) in (0..).zip(&found) {
        let frames = vec![frame(64, 64, number)];
        assert_same(&found.observation, &observation(number, &[("ego_view", frames)]));
    }
}

#[test]
fn a_prediction_whose_frame_is_lost_is_named_and_the_others_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("killed.mcap");
    let mut bytes = killed(folder.path());
    // The image of frame 3 becomes one of another camera.
    let name = b"ego_view#3\0";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
    bytes[at..at + 3].copy_from_slice(b"ogo");
    let chunk = mend_checksums(&mut bytes);
    assert!(chunk > 0);
    fs::write(&path, &bytes).unwrap();
    let recording = Recording::open(&path).unwrap();
    let found: Vec<_> = recording.predictions().unwrap().collect();
    assert_eq!(found.len() as u64, PREDICTIONS);
    for (number, found) in found.iter().enumerate() {
        match found {
            Err(error @ RecordError::MissingFrame { .. }) => {
                assert!(number == 2 || number == 3, "{number}: {error}");
                let expected = format!("prediction {number}: frame 3 of ego_view is not in");
                assert!(error.to_string().contains(&expected), "{error}");
            }
            Err(error) => panic!("{number}: {error}"),
            Ok(found) => assert_eq!(found.number, number as u64),
        }
    }
    assert_eq!(found.iter().filter(|found| found.is_err()).count(), 2);
}

/// Writes the checksum of every chunk anew; returns how many there are.
fn mend_checksums(bytes: &mut [u8]) -> usize {
    let (mut at, mut chunks) = (8, 0);
    while at + 9 <= bytes.len() {
        let length = u64::from_le_bytes(bytes[at + 1..at + 9].try_into().unwrap()) as usize;
        // Not compressed, so that the data begins 40 bytes into the chunk.
        if bytes[at] == mcap::records::op::CHUNK {
            let crc = crc32fast::hash(&bytes[at + 9 + 40..at + 9 + length]);
            bytes[at + 9 + 24..at + 9 + 28].copy_from_slice(&crc.to_le_bytes());
            chunks += 1;
        }
        at += 9 + length;
    }
    chunks
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Cut anywhere, a recording gives whole predictions from its beginning on, or says that it is none yet.
    #[test]
    fn a_cut_recording_gives_the_predictions_before_the_cut(at in any::<prop::sample::Index>()) {
        thread_local! {
            static WHOLE: Vec<u8> = killed(tempfile::tempdir().unwrap().path());
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut.mcap");
        let bytes = WHOLE.with(Clone::clone);
        fs::write(&path, &bytes[..at.index(bytes.len())]).unwrap();
        let Ok(recording) = Recording::open(&path) else { return Ok(()) };
        for (number, found) in recording.predictions().unwrap().enumerate() {
            let found = found.unwrap();
            prop_assert_eq!(found.number, number as u64);
            let frames: Vec<_> = [number, number + 1].map(|seed| frame(64, 64, seed as u64)).into();
            assert_same(&found.observation, &observation(number as u64, &[("ego_view", frames)]));
        }
    }
}
