//! Damaged snapshots: refused before any work, with the file and the tensor in the text.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use gr00t_blackhole::checkpoint::{Checkpoint, CheckpointError, INDEX_FILE, ShardProblem};
use serde_json::{Value, json};

use crate::support::{Tiny, assert_names};

/// A tensor of the action head, `[32]`.
const VLLN: &str = "action_head.vlln.weight";

/// A tensor of the vision tower, which lies in another file than [`VLLN`].
const PATCHES: &str = "backbone.model.vision_model.vision_model.embeddings.patch_embedding.weight";

/// A tiny snapshot with the names of two of its shards: that of [`PATCHES`] and that of [`VLLN`].
fn tiny_and_shards() -> (Tiny, String, String) {
    let tiny = Tiny::new();
    let (first, second) = (tiny.shard_of(PATCHES), tiny.shard_of(VLLN));
    assert_ne!(first, second);
    (tiny, first, second)
}

fn refused(dir: &Path) -> CheckpointError {
    Checkpoint::open(dir).expect_err("the checkpoint is damaged")
}

/// The JSON header of a shard, and its data.
fn read_shard(path: &Path) -> (Value, Vec<u8>) {
    let bytes = fs::read(path).unwrap();
    let (length, rest) = bytes.split_first_chunk::<8>().unwrap();
    let (header, data) = rest.split_at(u64::from_le_bytes(*length) as usize);
    (serde_json::from_slice(header).unwrap(), data.to_vec())
}

/// The tensor that ends where the data of a shard end.
fn last_tensor(path: &Path) -> String {
    let (header, data) = read_shard(path);
    let ends = |entry: &Value| entry["data_offsets"][1].as_u64() == Some(data.len() as u64);
    header.as_object().unwrap().iter().find(|(_, entry)| ends(entry)).unwrap().0.clone()
}

/// Changes the JSON header of a shard; the data stay as they are.
fn edit_header(path: &Path, change: impl FnOnce(&mut Value)) {
    let (mut value, data) = read_shard(path);
    change(&mut value);
    let mut text = value.to_string();
    text += &" ".repeat(text.len().next_multiple_of(8) - text.len());
    let mut out = (text.len() as u64).to_le_bytes().to_vec();
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(&data);
    fs::write(path, out).unwrap();
}

/// Writes one safetensors file of zeros.
fn write_safetensors(path: &Path, tensors: &[(&str, &str, &[usize], usize)]) {
    let mut entries = serde_json::Map::new();
    let mut end = 0;
    for (name, dtype, shape, bytes) in tensors {
        let offsets = [end, end + bytes];
        entries.insert(
            (*name).to_owned(),
            json!({ "dtype": dtype, "shape": shape, "data_offsets": offsets }),
        );
        end += bytes;
    }
    let mut text = Value::Object(entries).to_string();
    text += &" ".repeat(text.len().next_multiple_of(8) - text.len());
    let mut file = (text.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(text.as_bytes());
    file.resize(file.len() + end, 0);
    fs::write(path, file).unwrap();
}

#[test]
fn a_directory_that_is_none_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("nowhere");
    let error = refused(&missing);
    assert!(matches!(error, CheckpointError::NotADirectory { .. }));
    assert_names(&error.to_string(), &["nowhere", "not a directory"]);
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(refused(&file), CheckpointError::NotADirectory { .. }));
}

#[test]
fn a_directory_without_weights_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = refused(dir.path());
    assert!(matches!(error, CheckpointError::NoWeights { .. }));
    assert_names(&error.to_string(), &[INDEX_FILE, "model.safetensors"]);
}

#[test]
fn case_41_absent_shard_is_named() {
    let (tiny, _, second) = tiny_and_shards();
    fs::remove_file(tiny.file(&second)).unwrap();
    let error = refused(tiny.path());
    let (named, present) = (tiny.shards(), tiny.shards() - 1);
    let CheckpointError::MissingShards { missing, .. } = &error else { panic!("{error}") };
    assert_eq!(missing, std::slice::from_ref(&second));
    let counts = format!("{named} shards, {present} of them are present");
    assert_names(&error.to_string(), &[INDEX_FILE, &second, &counts]);
}

#[test]
fn case_81_odd_shard_names_are_served_and_counts_are_told() {
    let (tiny, _, second) = tiny_and_shards();
    let odd = "model.safetensors-00002-of-00002.safetensors";
    fs::rename(tiny.file(&second), tiny.file(odd)).unwrap();
    let index = fs::read_to_string(tiny.file(INDEX_FILE)).unwrap().replace(&second, odd);
    fs::write(tiny.file(INDEX_FILE), &index).unwrap();
    assert!(Checkpoint::open(tiny.path()).unwrap().contains(VLLN));

    let dir = tempfile::tempdir().unwrap();
    let mut weight_map = serde_json::Map::new();
    for shard in 1..=30 {
        let file = format!("model-{shard:05}-of-00030.safetensors");
        let tensor = format!("t{shard}");
        if shard % 2 == 0 {
            write_safetensors(&dir.path().join(&file), &[(&tensor, "BF16", &[1], 2)]);
        }
        weight_map.insert(tensor, json!(file));
    }
    let text = json!({ "weight_map": weight_map }).to_string();
    fs::write(dir.path().join(INDEX_FILE), text).unwrap();
    let error = refused(dir.path()).to_string();
    assert_names(&error, &["30 shards", "15 of them", "model-00029-of-00030.safetensors"]);
}

#[test]
fn case_42_truncated_shard_is_named() {
    let (tiny, first, _) = tiny_and_shards();
    let file = OpenOptions::new().write(true).open(tiny.file(&first)).unwrap();
    let length = file.metadata().unwrap().len();
    let last = last_tensor(&tiny.file(&first));
    for cut in [1, 2, 4096, length / 2, length - 9, length - 8, length - 3, length] {
        file.set_len(length).unwrap();
        file.set_len(length - cut).unwrap();
        let error = refused(tiny.path());
        assert!(matches!(&error, CheckpointError::Shard { .. }), "{error}");
        assert_names(&error.to_string(), &[&first]);
        if cut <= 2 {
            assert_names(&error.to_string(), &["truncated", &last]);
        }
    }
}

#[test]
fn case_42_trailing_bytes_are_refused() {
    let (tiny, _, second) = tiny_and_shards();
    let mut file = OpenOptions::new().append(true).open(tiny.file(&second)).unwrap();
    file.write_all(&[0; 2]).unwrap();
    let error = refused(tiny.path());
    assert_names(&error.to_string(), &[&second, "2 bytes behind the last tensor"]);
}

#[test]
fn case_42_header_length_of_2_to_the_63_is_refused() {
    let (tiny, _, second) = tiny_and_shards();
    let mut file = OpenOptions::new().write(true).open(tiny.file(&second)).unwrap();
    file.write_all(&(1_u64 << 63).to_le_bytes()).unwrap();
    let error = refused(tiny.path());
    let expected = ShardProblem::HeaderTooLong { header: 1 << 63 };
    assert!(matches!(&error, CheckpointError::Shard { problem, .. } if *problem == expected));
    assert_names(&error.to_string(), &[&second, "9223372036854775808"]);
}

#[test]
fn case_42_overlap_and_hole_name_their_tensor() {
    let (tiny, _, second) = tiny_and_shards();
    edit_header(&tiny.file(&second), |header| {
        let offsets = header[VLLN]["data_offsets"].as_array_mut().unwrap();
        for offset in offsets {
            *offset = json!(offset.as_u64().unwrap() - 2);
        }
    });
    assert_names(&refused(tiny.path()).to_string(), &[&second, VLLN]);

    let (tiny, _, second) = tiny_and_shards();
    edit_header(&tiny.file(&second), |header| {
        header.as_object_mut().unwrap().remove(VLLN);
    });
    let error = refused(tiny.path());
    let CheckpointError::Shard { problem: ShardProblem::Hole { tensor, .. }, .. } = &error else {
        panic!("{error}")
    };
    assert_names(&error.to_string(), &[&second, tensor, "64 bytes"]);
}

#[test]
fn case_42_flipped_header_bits_never_load_another_layout() {
    let (tiny, _, second) = tiny_and_shards();
    let path = tiny.file(&second);
    let reference: Vec<(String, Vec<usize>)> = shapes(&Checkpoint::open(tiny.path()).unwrap());
    let mut file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    for at in (0..9000_u64).step_by(37) {
        let mut byte = [0];
        file.seek(SeekFrom::Start(at)).unwrap();
        file.read_exact(&mut byte).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&[byte[0] ^ 0x04]).unwrap();
        if let Ok(checkpoint) = Checkpoint::open(tiny.path()) {
            assert_eq!(shapes(&checkpoint), reference, "byte {at}");
        }
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&byte).unwrap();
    }
}

fn shapes(checkpoint: &Checkpoint) -> Vec<(String, Vec<usize>)> {
    checkpoint
        .names()
        .map(|name| (name.to_owned(), checkpoint.shape(name).unwrap().to_vec()))
        .collect()
}

#[test]
fn an_index_that_disagrees_with_a_shard_is_refused() {
    let (tiny, first, second) = tiny_and_shards();
    let mut index: Value =
        serde_json::from_slice(&fs::read(tiny.file(INDEX_FILE)).unwrap()).unwrap();
    index["weight_map"][VLLN] = json!(&first);
    fs::write(tiny.file(INDEX_FILE), index.to_string()).unwrap();
    let error = refused(tiny.path());
    assert!(
        matches!(&error, CheckpointError::StaleIndex { found_in: Some(other), .. } if other == &second)
    );
    assert_names(&error.to_string(), &[INDEX_FILE, VLLN, &first, &second]);

    index["weight_map"][VLLN] = json!(&second);
    index["weight_map"]["no.such.tensor"] = json!(&first);
    fs::write(tiny.file(INDEX_FILE), index.to_string()).unwrap();
    let error = refused(tiny.path());
    assert!(matches!(&error, CheckpointError::StaleIndex { found_in: None, .. }));
    assert_names(&error.to_string(), &["no.such.tensor", &first]);
}

#[test]
fn the_index_decides_which_shard_holds_a_tensor() {
    let dir = tempfile::tempdir().unwrap();
    write_safetensors(&dir.path().join("a.safetensors"), &[("x", "BF16", &[1], 2)]);
    write_safetensors(
        &dir.path().join("b.safetensors"),
        &[("x", "BF16", &[2], 4), ("y", "BF16", &[1], 2)],
    );
    let index = json!({ "weight_map": { "x": "b.safetensors" } });
    fs::write(dir.path().join(INDEX_FILE), index.to_string()).unwrap();
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    assert_eq!(checkpoint.shape("x"), Some(&[2][..]));
    assert!(!checkpoint.contains("y"), "a tensor that the index leaves out is not there");
}

#[test]
fn an_index_may_not_leave_its_directory() {
    let (tiny, _, second) = tiny_and_shards();
    fs::create_dir(tiny.file("sub")).unwrap();
    fs::copy(tiny.file(&second), tiny.file("sub").join("x.safetensors")).unwrap();
    for shard in ["../x", "/etc/passwd", "sub/x.safetensors", "..", ".", "", "./x", "x/", "a\0b"] {
        let index = json!({ "weight_map": { VLLN: shard } });
        fs::write(tiny.file(INDEX_FILE), index.to_string()).unwrap();
        let error = refused(tiny.path());
        assert!(matches!(&error, CheckpointError::ShardName { .. }), "{shard:?}: {error}");
        assert_names(&error.to_string(), &[INDEX_FILE, VLLN]);
    }
}

#[test]
fn an_index_that_is_no_index_is_refused() {
    let tiny = Tiny::new();
    let cases: [&[u8]; 9] = [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{",
        b"{}",
        b"{\"weight_map\": []}",
        b"{\"weight_map\": {\"a\": 1}}",
        b"{\"weight_map\": {\"a\": \"x\", \"a\": \"y\"}}",
        b"{\"weight_map\": NaN}",
    ];
    for text in cases {
        fs::write(tiny.file(INDEX_FILE), text).unwrap();
        let error = refused(tiny.path());
        let json = matches!(error, CheckpointError::Json { .. } | CheckpointError::Field { .. });
        assert!(json, "{error}");
        assert_names(&error.to_string(), &[INDEX_FILE]);
    }
}

#[test]
fn a_shard_that_is_a_directory_is_refused() {
    let (tiny, first, _) = tiny_and_shards();
    fs::remove_file(tiny.file(&first)).unwrap();
    fs::create_dir(tiny.file(&first)).unwrap();
    let error = refused(tiny.path());
    assert_names(&error.to_string(), &[&first, "not a regular file"]);
}

#[test]
fn one_file_without_index_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    write_safetensors(&path, &[("a", "BF16", &[2, 3], 12), ("b", "F32", &[2], 8)]);
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    assert_eq!(checkpoint.names().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(checkpoint.tensor("a").unwrap().values.len(), 6);
    assert_eq!(checkpoint.dir(), dir.path());
    checkpoint.expect("a", &[2, 3]).unwrap();

    let error = checkpoint.tensor("b").unwrap_err();
    assert!(matches!(&error, CheckpointError::Dtype { .. }));
    assert_names(&error.to_string(), &["'b'", "F32", "model.safetensors", "BF16"]);
    assert!(matches!(checkpoint.expect("b", &[2]), Err(CheckpointError::Dtype { .. })));
    let error = checkpoint.expect("a", &[3, 2]).unwrap_err().to_string();
    assert_names(&error, &["'a'", "[2, 3]", "[3, 2]", "model.safetensors"]);
    let error = checkpoint.expect("c", &[1]).unwrap_err();
    assert!(matches!(&error, CheckpointError::MissingTensor { .. }));
    assert_names(&error.to_string(), &["'c'"]);
    assert!(matches!(checkpoint.tensor("c"), Err(CheckpointError::MissingTensor { .. })));
}

#[test]
fn values_are_read_as_they_are_stored() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.safetensors");
    write_safetensors(&path, &[("a", "BF16", &[1], 2), ("b", "BF16", &[3], 6)]);
    let mut bytes = fs::read(&path).unwrap();
    let data = bytes.len() - 6;
    bytes[data..].copy_from_slice(&[0x80, 0x3f, 0x00, 0xc0, 0xc0, 0x7f]);
    fs::write(&path, bytes).unwrap();
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    let values = checkpoint.tensor("b").unwrap().values;
    assert_eq!((values[0].to_f32(), values[1].to_f32()), (1.0, -2.0));
    assert!(values[2].is_nan());
    assert_eq!(checkpoint.tensor("a").unwrap().values[0].to_bits(), 0);
}

#[test]
fn a_snapshot_names_the_tensor_that_does_not_fit_its_configuration() {
    let (tiny, _, second) = tiny_and_shards();
    let swapped = edit_and_open(&tiny, |header| header[VLLN]["shape"] = json!([2, 16]));
    assert!(matches!(&swapped, CheckpointError::Shape { .. }), "{swapped}");
    assert_names(&swapped.to_string(), &[VLLN, "[2, 16]", "[32]", &second]);

    let half = edit_and_open(&tiny, |header| header[VLLN]["dtype"] = json!("F16"));
    assert_names(&half.to_string(), &[VLLN, "F16", &second]);

    let renamed = edit_and_open(&tiny, |header| rename(header, VLLN, "action_head.vlln.w"));
    assert!(matches!(&renamed, CheckpointError::StaleIndex { .. }), "{renamed}");
}

/// Opens the snapshot with one changed header in its second shard, then puts the shard back.
fn edit_and_open(tiny: &Tiny, change: impl FnOnce(&mut Value)) -> CheckpointError {
    let second = tiny.shard_of(VLLN);
    let before = fs::read(tiny.file(&second)).unwrap();
    edit_header(&tiny.file(&second), change);
    let error = tiny.open().expect_err("the snapshot is damaged");
    fs::write(tiny.file(&second), before).unwrap();
    error
}

fn rename(header: &mut Value, from: &str, to: &str) {
    let entry = header.as_object_mut().unwrap().remove(from).unwrap();
    header[to] = entry;
}

#[test]
fn missing_and_foreign_tensors_are_named() {
    let tiny = Tiny::new();
    let error = tiny
        .open_with(INDEX_FILE, |index| {
            index["weight_map"].as_object_mut().unwrap().remove(VLLN);
        })
        .unwrap_err();
    assert!(matches!(&error, CheckpointError::MissingTensor { tensor, .. } if tensor == VLLN));

    for (name, served) in [
        ("action_head.model.transformer_blocks.0.attn1.to_q.lora_A.weight", false),
        ("action_head.vl_self_attention.transformer_blocks.0.norm1.weight", false),
        ("action_head.mask_token", true),
        ("backbone.model.language_model.model.rotary_emb.inv_freq", true),
    ] {
        let tiny = Tiny::new();
        write_safetensors(&tiny.file("extra.safetensors"), &[(name, "BF16", &[1], 2)]);
        let result = tiny.open_with(INDEX_FILE, |index| {
            index["weight_map"][name] = json!("extra.safetensors");
        });
        match result {
            Ok(_) => assert!(served, "{name}"),
            Err(error) => {
                assert!(matches!(&error, CheckpointError::UnknownTensor { .. }), "{error}");
                assert!(!served, "{error}");
                assert_names(&error.to_string(), &[name]);
            }
        }
    }
}

/// The pooling head and `lm_head` are never read: they may be absent, and of any type.
#[test]
fn unused_tensors_do_not_matter() {
    let tiny = Tiny::new();
    tiny.open_with(INDEX_FILE, |index| {
        index["weight_map"].as_object_mut().unwrap().retain(|name, _| !name.contains(".head."));
    })
    .unwrap();
    let name = "backbone.model.language_model.lm_head.weight";
    write_safetensors(&tiny.file("extra.safetensors"), &[(name, "F32", &[3], 12)]);
    tiny.open_with(INDEX_FILE, |index| index["weight_map"][name] = json!("extra.safetensors"))
        .unwrap();
}
