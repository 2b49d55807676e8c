//! Against the golden snapshots: the loader reads them, the generator makes them again.

use std::collections::BTreeMap;
use std::fs;

use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::checkpoint::{Checkpoint, Network, Snapshot, n16};
use gr00t_blackhole::contract::Version;

use crate::support::{golden, read_json};

#[test]
fn tiny_tensors_are_made_again_byte_for_byte() {
    let Some(reference) = golden("n16/tiny/snapshot") else { return };
    let dir = tempfile::tempdir().unwrap();
    synth::write(Version::N16, Size::Tiny, dir.path(), &|_, _| {}).unwrap();
    let ours = Checkpoint::open(dir.path()).unwrap();
    let stored = Checkpoint::open(&reference).unwrap();
    assert_eq!(stored.names().count(), 159);
    for name in stored.names() {
        let (ours, stored) = (ours.tensor(name).unwrap(), stored.tensor(name).unwrap());
        assert_eq!(ours.shape, stored.shape, "{name}");
        assert!(ours.values == stored.values, "{name} differs");
    }
    // The golden snapshot leaves out what a checkpoint with tied embeddings may leave out.
    let extra: Vec<&str> = ours.names().filter(|name| !stored.contains(name)).collect();
    assert_eq!(extra, ["backbone.model.language_model.lm_head.weight"]);
}

#[test]
fn mid_and_full_tables_match_the_golden_shapes() {
    for (size, layers, blocks) in [("mid", 2, 4), ("full", 0, 0)] {
        let Some(path) = golden(&format!("n16/{size}/snapshot/shapes.json")) else { return };
        let mut config = n16::Config::released();
        if layers > 0 {
            config.vision.layers = layers;
            config.llm.layers = layers;
            config.head.dit_layers = blocks;
        }
        let ours: BTreeMap<String, Vec<usize>> =
            n16::tensors(&config).into_iter().map(|spec| (spec.name, spec.shape)).collect();
        let golden: BTreeMap<String, Vec<usize>> =
            serde_json::from_value(read_json(&path)).unwrap();
        assert_eq!(ours, golden, "{size}");
    }
}

#[test]
fn tiny_snapshot_is_read_whole() {
    let Some(reference) = golden("n16/tiny/snapshot") else { return };
    let snapshot = Snapshot::open(&reference).unwrap();
    assert_eq!(snapshot.version(), Version::N16);
    let Network::N16(config) = snapshot.network() else { panic!("another version") };
    assert_eq!((config.vision.width, config.vision.heads, config.vision.layers), (72, 2, 2));
    assert_eq!((config.vision.mlp_width, config.vision.image_side), (176, 252));
    assert_eq!((config.llm.width, config.llm.layers, config.llm.vocabulary), (32, 2, 151_680));
    assert_eq!((config.llm.heads, config.llm.kv_heads, config.llm.head_dim), (4, 2, 32));
    assert_eq!((config.head.dit_width(), config.head.dit_layers, config.head.slots), (96, 4, 3));
    assert_eq!((config.head.action_rows, config.head.position_rows), (50, 64));
    assert_eq!(snapshot.processor().image.crop_side(), 243);

    let gr1 = snapshot.embodiment("gr1").unwrap();
    assert_eq!((gr1.slot, gr1.horizon, gr1.action_dim()), (2, 16, 29));
    let served: Vec<&str> = snapshot.served().map(|embodiment| embodiment.tag.as_str()).collect();
    assert_eq!(served, ["gr1", "libero_panda", "new_embodiment"]);
}

/// The golden mid snapshot says nothing about its number of vision layers: that stands in the tensors only.
#[test]
fn sizes_that_no_file_states_are_read_off_the_tensors() {
    let Some(reference) = golden("n16/tiny/snapshot") else { return };
    let dir = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(&reference).unwrap() {
        let path = entry.unwrap().path();
        std::os::unix::fs::symlink(&path, dir.path().join(path.file_name().unwrap())).unwrap();
    }
    let backbone = dir.path().join("eagle_config.json");
    fs::remove_file(&backbone).unwrap();
    fs::write(&backbone, r#"{"vision_config": {"num_attention_heads": 2}}"#).unwrap();
    let seen = Snapshot::open(dir.path()).unwrap();
    assert_eq!(seen.network(), Snapshot::open(&reference).unwrap().network());
}
