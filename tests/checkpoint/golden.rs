//! Against the golden snapshots: the loader reads them, the generator makes them again.

use std::collections::BTreeMap;
use std::fs;

use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::checkpoint::{Checkpoint, INDEX_FILE, Network, Snapshot, n16};
use gr00t_blackhole::contract::Version;
use sha2::{Digest, Sha256};

use crate::support::{golden, read_json};

#[test]
fn tiny_shards_and_index_are_made_again_byte_for_byte() {
    let Some(reference) = golden("n16/tiny/snapshot") else { return };
    let dir = tempfile::tempdir().unwrap();
    let written = synth::write(Version::N16, Size::Tiny, dir.path(), &|_, _| {}).unwrap();
    assert_eq!((written.shards, written.tensors, written.bytes), (2, 159, 11_743_856));
    for shard in ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"] {
        let ours = fs::read(dir.path().join(shard)).unwrap();
        assert!(ours == fs::read(reference.join(shard)).unwrap(), "{shard} differs");
    }
    let index = |dir: &std::path::Path| read_json(&dir.join(INDEX_FILE));
    assert_eq!(index(dir.path()), index(&reference));
}

#[test]
fn tiny_tensors_equal_the_generated_ones_through_the_loader() {
    let Some(reference) = golden("n16/tiny/snapshot") else { return };
    let stored = Checkpoint::open(&reference).unwrap();
    assert_eq!(stored.names().count(), 159);
    for name in stored.names() {
        let tensor = stored.tensor(name).unwrap();
        let mut expected = vec![half::bf16::ZERO; tensor.shape.iter().product()];
        let spread = synth::Spread::of(name, tensor.shape);
        synth::fill(synth::fnv1a64(name.as_bytes()), spread, 0, &mut expected);
        assert_eq!(tensor.values, expected, "{name}");
    }
}

/// All versions share the generator; the golden table of N1.7 holds hashes of whole tensors.
#[test]
fn tensors_of_n17_match_their_hashes() {
    let Some(path) = golden("n17/tensors.json") else { return };
    let table = read_json(&path);
    for (name, entry) in table.as_object().unwrap() {
        let shape: Vec<usize> = serde_json::from_value(entry["shape"].clone()).unwrap();
        let mut values = vec![half::bf16::ZERO; shape.iter().product()];
        let spread = synth::Spread::of(name, &shape);
        synth::fill(synth::fnv1a64(name.as_bytes()), spread, 0, &mut values);
        let hash = Sha256::digest(bytemuck::cast_slice::<_, u8>(&values));
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(entry["sha256_bf16le"], hash, "{name}");
    }
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
    let Network::N16(config) = snapshot.network();
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
