//! Synthetic snapshots: complete, readable, and careful with what is there already.

use std::cell::RefCell;
use std::fs;

use gr00t_blackhole::checkpoint::synth::{self, MARKER_FILE, Size, SynthError, TOKENIZER_DIR};
use gr00t_blackhole::checkpoint::{INDEX_FILE, Network, Snapshot, n16};
use gr00t_blackhole::contract::{
    ActionNormalization, ActionReference, Embodiment, PoseFormat, StateEncoding, Version,
};
use tempfile::TempDir;
use tokenizers::Tokenizer;
use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use crate::support::{Tiny, assert_names};

fn tiny() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    synth::write(Version::N16, Size::Tiny, dir.path(), &|_, _| {}).unwrap();
    dir
}

#[test]
fn a_written_snapshot_opens_and_serves_its_robots() {
    let dir = tiny();
    let snapshot = Snapshot::open(dir.path()).unwrap();
    let served: Vec<&str> = snapshot.served().map(|embodiment| embodiment.tag.as_str()).collect();
    assert_eq!(served, ["gr1", "libero_panda", "new_embodiment"]);

    let gr1 = snapshot.embodiment("gr1").unwrap();
    assert_eq!((gr1.slot, gr1.horizon), (2, 16));
    assert_eq!(gr1.cameras, ["ego_view_bg_crop_pad_res256_freq20"]);
    assert!(gr1.state.iter().all(|group| group.encoding == StateEncoding::SinCos));
    let relative: Vec<bool> =
        gr1.action.iter().map(|group| group.reference != ActionReference::Absolute).collect();
    assert_eq!(relative, [true, true, true, true, false]);

    let eef = snapshot.embodiment("new_embodiment").unwrap();
    assert_eq!(eef.frame_deltas, [-3, 0]);
    assert_eq!(
        eef.action[0].reference,
        ActionReference::RelativePose {
            state_group: "eef_9d".to_owned(),
            format: PoseFormat::Rot6d
        }
    );
    assert_eq!(
        eef.action[2].reference,
        ActionReference::RelativeJoint { state_group: "joints".to_owned() }
    );
    assert!(matches!(eef.action[3].normalization, ActionNormalization::MeanStd { .. }));
    for embodiment in snapshot.served() {
        assert_plausible(embodiment);
    }
}

fn assert_plausible(embodiment: &Embodiment) {
    for group in &embodiment.state {
        if let StateEncoding::MinMax { min, max, .. } = &group.encoding {
            assert!(min.iter().zip(max).all(|(min, max)| max - min > 0.01), "{}", group.name);
        }
    }
    for group in &embodiment.action {
        let (low, high) = match &group.normalization {
            ActionNormalization::MinMax { min, max }
            | ActionNormalization::MinMaxPerStep { min, max } => (min, max),
            ActionNormalization::MeanStd { std, .. }
            | ActionNormalization::MeanStdPerStep { std, .. } => {
                assert!(std.iter().all(|std| *std > 0.0));
                continue;
            }
        };
        assert!(low.iter().zip(high).all(|(low, high)| low < high), "{}", group.name);
        assert!(high.iter().all(|high| high.abs() < 4.0), "{}", group.name);
    }
}

#[test]
fn the_same_size_is_the_same_to_the_byte() {
    let (one, other) = (tiny(), tiny());
    for entry in fs::read_dir(one.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            let twin = other.path().join(path.file_name().unwrap());
            assert!(fs::read(&path).unwrap() == fs::read(&twin).unwrap(), "{}", path.display());
        }
    }
}

#[test]
fn progress_runs_from_nothing_to_everything() {
    let dir = tempfile::tempdir().unwrap();
    let seen = RefCell::new(Vec::new());
    let written = synth::write(Version::N16, Size::Tiny, dir.path(), &|done, total| {
        seen.borrow_mut().push((done, total));
    })
    .unwrap();
    let seen = seen.into_inner();
    assert_eq!(seen.first(), Some(&(0, written.bytes)));
    assert_eq!(seen.last(), Some(&(written.bytes, written.bytes)));
    assert!(seen.windows(2).all(|pair| pair[0].0 < pair[1].0));
}

#[test]
fn a_directory_with_something_else_in_it_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("model.safetensors"), "precious").unwrap();
    let error = synth::write(Version::N16, Size::Tiny, dir.path(), &|_, _| {}).unwrap_err();
    assert!(matches!(error, SynthError::Occupied { .. }));
    assert_names(&error.to_string(), &["not empty", MARKER_FILE]);
    assert_eq!(fs::read(dir.path().join("model.safetensors")).unwrap(), b"precious");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

    let file = dir.path().join("model.safetensors");
    let error = synth::write(Version::N16, Size::Tiny, &file, &|_, _| {}).unwrap_err();
    assert!(matches!(error, SynthError::Io { .. }), "{error}");
}

#[test]
fn an_earlier_synthetic_snapshot_is_replaced() {
    let dir = tiny();
    fs::write(dir.path().join("model-00003-of-00009.safetensors.partial"), "left behind").unwrap();
    fs::write(dir.path().join("notes.txt"), "mine").unwrap();
    fs::remove_file(dir.path().join(INDEX_FILE)).unwrap();
    synth::write(Version::N16, Size::Tiny, dir.path(), &|_, _| {}).unwrap();
    Snapshot::open(dir.path()).unwrap();
    let names: Vec<String> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.iter().all(|name| !name.ends_with(".partial")), "{names:?}");
    assert!(names.contains(&"notes.txt".to_owned()), "what others put there stays");
}

#[test]
fn versions_without_a_generator_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for version in [Version::N15, Version::N17] {
        let error = synth::write(version, Size::Tiny, dir.path(), &|_, _| {}).unwrap_err();
        assert_names(&error.to_string(), &[version.name()]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

#[test]
fn configuration_is_read_back_as_it_was_meant() {
    let snapshot = Tiny::new().open().unwrap();
    let Network::N16(config) = snapshot.network();
    let released = n16::Config::released();
    assert_eq!((config.llm.layers, config.head.steps), (2, released.head.steps));
    assert_eq!(config.llm.rope_theta, 1e6);
    assert_eq!(config.vision.position_side, 16);
    assert_eq!(config.head.attend_text_every, 2);
}

#[test]
fn sizes_are_parsed_by_name() {
    for size in Size::ALL {
        assert_eq!(size.to_string().parse(), Ok(size));
    }
    assert_names(&"big".parse::<Size>().unwrap_err(), &["big", "tiny, mid, full"]);
}

#[test]
fn the_tokenizer_reads_back_what_it_writes() {
    let dir = tiny();
    let path = |name: &str| dir.path().join(TOKENIZER_DIR).join(name).display().to_string();
    let model = BPE::from_file(&path("vocab.json"), &path("merges.txt")).build().unwrap();
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
    tokenizer.with_decoder(Some(ByteLevel::default()));
    for text in [
        "pick the pear from the counter and place it in the plate",
        "system\nYou are a helpful assistant.",
        "<image 1> \t \u{e9}\u{4e2d}\u{1f916}\u{0}\u{7f}\u{ad}",
    ] {
        let ids = tokenizer.encode(text, false).unwrap();
        assert_eq!(tokenizer.decode(ids.get_ids(), false).unwrap(), text);
    }
    let ids = tokenizer.encode(" pick the block", false).unwrap();
    assert_eq!(ids.get_ids().len(), 3, "known words are one token each");

    let added: std::collections::BTreeMap<String, u32> =
        serde_json::from_slice(&fs::read(path("added_tokens.json")).unwrap()).unwrap();
    assert_eq!(added.values().copied().min(), Some(151_643));
    assert_eq!(added.len(), 37);
    assert!(tokenizer.get_vocab_size(false) < 151_643);
}

#[test]
fn special_tokens_are_those_of_the_real_tokenizer() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/tokenizer/n16/added_tokens.json");
    if !path.exists() {
        println!("skipped: ../shared/tokenizer is not here");
        return;
    }
    let dir = tiny();
    let ours = crate::support::read_json(&dir.path().join(TOKENIZER_DIR).join("added_tokens.json"));
    assert_eq!(ours, crate::support::read_json(&path));
}
