//! Synthetic snapshots: complete, readable, and careful with what is there already.

use std::fs;
use std::sync::Mutex;

use gr00t_blackhole::checkpoint::network::CrossAttention;
use gr00t_blackhole::checkpoint::synth::{self, Size, SynthError, TOKENIZER_FOLDER};
use gr00t_blackhole::checkpoint::{Checkpoint, Network, Snapshot};
use gr00t_blackhole::contract::{
    ActionNormalization, ActionReference, Embodiment, PoseFormat, StateEncoding, Version,
};
use tempfile::TempDir;
use tokenizers::Tokenizer;
use tokenizers::models::bpe::BPE;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

use crate::support::{Tiny, assert_names, read_json, shared};

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
fn progress_runs_up_to_everything() {
    let dir = tempfile::tempdir().unwrap();
    let seen = Mutex::new(Vec::new());
    let note = |done, total| seen.lock().unwrap().push((done, total));
    synth::write(Version::N16, Size::Tiny, dir.path(), &note).unwrap();
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    let values: usize =
        checkpoint.names().map(|name| checkpoint.tensor(name).unwrap().values.len()).sum();
    let bytes = 2 * values as u64;
    let seen = seen.into_inner().unwrap();
    assert!(seen.iter().all(|(done, total)| *total == bytes && (1..=bytes).contains(done)));
    assert!(seen.contains(&(bytes, bytes)));
}

#[test]
fn a_directory_with_something_in_it_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("model.safetensors");
    fs::write(&file, "precious").unwrap();
    for target in [dir.path(), &file] {
        let error = synth::write(Version::N16, Size::Tiny, target, &|_, _| {}).unwrap_err();
        assert!(matches!(error, SynthError::Occupied { .. }), "{error}");
        assert_names(&error.to_string(), &[target.to_str().unwrap(), "not an empty directory"]);
    }
    assert_eq!(fs::read(&file).unwrap(), b"precious");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_new_directory_is_made_and_nothing_is_left_beside_it() {
    let parent = tempfile::tempdir().unwrap();
    let target = parent.path().join("snapshot");
    synth::write(Version::N16, Size::Tiny, &target, &|_, _| {}).unwrap();
    Snapshot::open(&target).unwrap();
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
}

#[test]
fn versions_without_a_generator_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for version in [Version::N15] {
        let error = synth::write(version, Size::Tiny, dir.path(), &|_, _| {}).unwrap_err();
        assert_names(&error.to_string(), &[version.name()]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{version}");
    }
}

#[test]
fn configuration_is_read_back_as_it_was_meant() {
    let snapshot = Tiny::new().open().unwrap();
    let Network::N16(config) = snapshot.network() else { panic!("another version") };
    assert_eq!((config.vision.layers, config.llm.layers, config.head.dit_layers), (2, 2, 4));
    assert_eq!((config.head.action_rows, config.head.steps), (50, 4));
    assert_eq!(config.llm.rope_theta, 1e6);
    assert_eq!(config.vision.position_side, 16);
    assert_eq!(config.head.cross_attention, CrossAttention::Alternate { text_every: 2 });
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
    let path = |name: &str| dir.path().join(TOKENIZER_FOLDER).join(name).display().to_string();
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
    let Some(path) = shared("tokenizer/n16/added_tokens.json") else { return };
    let dir = tiny();
    let ours = read_json(&dir.path().join(TOKENIZER_FOLDER).join("added_tokens.json"));
    assert_eq!(ours, read_json(&path));
}
