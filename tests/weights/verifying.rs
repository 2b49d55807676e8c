//! `verify` finds every fault, and says what was expected.

use std::fs::{self, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::weights::verify::{Report, verify};
use serde_json::{Value, json};

use crate::released::Released;

const INDEX: &str = "model.safetensors.index.json";

fn faults(report: &Report) -> Vec<String> {
    report.faults.iter().map(ToString::to_string).collect()
}

/// Verifies a directory without a lock file.
fn plain(dir: &Path) -> Report {
    verify(dir, None, &|_, _| {})
}

/// Changes the header of a shard without changing its length.
fn edit_header(shard: &Path, edit: impl FnOnce(&str) -> String) {
    let mut file = OpenOptions::new().read(true).write(true).open(shard).expect("shard");
    let mut length = [0; 8];
    file.read_exact(&mut length).expect("length");
    let mut header = vec![0; u64::from_le_bytes(length) as usize];
    file.read_exact(&mut header).expect("header");
    let text = edit(std::str::from_utf8(&header).expect("text"));
    assert_eq!(text.len(), header.len(), "the header must not move the data");
    file.seek(SeekFrom::Start(8)).expect("seek");
    file.write_all(text.as_bytes()).expect("written");
}

fn edit_headers(dir: &Path, edit: impl Fn(&str) -> String) {
    let files = crate::support::files_in(dir).into_iter();
    for shard in files.filter(|file| file.ends_with(".safetensors")) {
        edit_header(&dir.join(shard), &edit);
    }
}

fn edit_index(dir: &Path, edit: impl FnOnce(&mut serde_json::Map<String, Value>)) {
    let path = dir.join(INDEX);
    let mut index: Value = serde_json::from_slice(&fs::read(&path).expect("index")).expect("JSON");
    edit(index["weight_map"].as_object_mut().expect("map"));
    fs::write(path, index.to_string()).expect("index");
}

#[test]
fn a_good_checkpoint_has_no_fault_and_unused_tensors_are_told() {
    let released = Released::new();
    let report = plain(&released.made);
    assert_eq!(faults(&report), [""; 0]);
    assert_eq!(report.version, Some(Version::N17));
    assert!(
        report.unused.iter().any(|name| name.ends_with("language_model.norm.weight")),
        "{:?}",
        report.unused
    );

    let lock = released.parsed();
    let release = lock.release(Version::N17).expect("n17");
    let report = verify(&released.made, Some((Version::N17, release)), &|_, _| {});
    assert_eq!(faults(&report), [""; 0]);
    assert_eq!(report.files.len(), released.files().len());
    assert!(report.files.iter().all(|file| !file.known));
}

#[test]
fn every_version_can_be_verified() {
    let folder = tempfile::tempdir().expect("folder");
    for version in Version::ALL {
        let dir = folder.path().join(version.name());
        synth::write(version, Size::Tiny, &dir, &|_, _| {}).expect("checkpoint");
        let report = plain(&dir);
        assert_eq!(faults(&report), [""; 0]);
        assert_eq!(report.version, Some(version));
        assert!(report.tensors > report.unused.len(), "{version}");
        // Made-up weights leave out nothing: the output embeddings are stored, and never read.
        assert!(report.unused.iter().any(|name| name.ends_with("lm_head.weight")), "{version}");
    }
}

#[test]
fn every_tensor_is_looked_at_and_not_the_first_one_alone() {
    let released = Released::new();
    let dir = released.copied("damaged");
    // Two tensors change their names to ones that the network does not know.
    edit_headers(&dir, |text| {
        text.replace("vlln.weight", "vlln.weighs").replace("vlln.bias", "vlln.bios")
    });
    let found = faults(&plain(&dir)).join("\n");
    for name in ["vlln.weight", "vlln.bias"] {
        assert!(found.contains(&format!("'action_head.{name}'")), "{found}");
    }
    assert!(
        found.contains(
            "vlln.weighs', which the index model.safetensors.index.json does not put there"
        ),
        "{found}"
    );
}

#[test]
fn a_wrong_shape_names_tensor_found_and_expected() {
    let released = Released::new();
    let dir = released.copied("damaged");
    let stored = gr00t_blackhole::checkpoint::Checkpoint::open(&dir).expect("checkpoint");
    let name = "action_head.position_embedding.weight";
    let [rows, columns] = *stored.shape(name).expect("tensor") else { panic!("two sides") };
    drop(stored);
    let from = format!("[{rows},{columns}]");
    edit_headers(&dir, |text| match text.find(&format!("\"{name}\"")) {
        Some(at) => {
            let (before, entry) = text.split_at(at);
            before.to_owned() + &entry.replacen(&from, &format!("[{columns},{rows}]"), 1)
        }
        None => text.to_owned(),
    });
    let found = faults(&plain(&dir)).join("\n");
    assert!(
        found.contains(&format!(
            "has shape [{columns}, {rows}]; the model needs [{rows}, {columns}]"
        )),
        "{found}"
    );
    assert!(found.contains(name), "{found}");
}

#[test]
fn case_81_an_index_that_disagrees_with_the_shards_is_told_entry_by_entry() {
    let released = Released::new();
    let dir = released.copied("damaged");
    let shard = released.shard();
    edit_index(&dir, |map| {
        map.insert("no.such.tensor".to_owned(), json!(shard));
        map.insert("far.away".to_owned(), json!("model-00099-of-00099.safetensors"));
        map.remove("action_head.vlln.bias").expect("was there");
    });
    let found = faults(&plain(&dir)).join("\n");
    for part in [
        "missing: model-00099-of-00099.safetensors",
        "'no.such.tensor'",
        "has tensor 'action_head.vlln.bias', which the index",
        "tensor 'action_head.vlln.bias' is not in the checkpoint",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
}

#[test]
fn a_cut_shard_and_missing_files_are_told() {
    let released = Released::new();
    let dir = released.copied("damaged");
    let path = dir.join(released.shard());
    let length = fs::metadata(&path).expect("shard").len();
    OpenOptions::new()
        .write(true)
        .open(&path)
        .and_then(|file| file.set_len(length - 10))
        .expect("cut");
    let found = faults(&plain(&dir)).join("\n");
    assert!(found.contains("is truncated"), "{found}");

    let lock = released.parsed();
    let release = lock.release(Version::N17).expect("n17");
    fs::remove_file(dir.join("statistics.json")).expect("removed");
    let report = verify(&dir, Some((Version::N17, release)), &|_, _| {});
    let found = faults(&report).join("\n");
    assert!(found.contains("statistics.json: is missing"), "{found}");
    assert!(found.contains("tensors are stored, expected"), "{found}");

    let found = faults(&plain(Path::new("/no/such/folder")));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("/no/such/folder is not a directory"), "{found:?}");
}

#[test]
fn contents_are_compared_with_the_lock_and_with_the_names_of_blobs() {
    let released = Released::new();
    released.fetch().succeeded();
    let whole = plain(&released.snapshot());
    assert_eq!(faults(&whole), [""; 0]);
    assert_eq!(whole.files.len(), released.files().len());
    assert!(whole.files.iter().all(|file| file.known));

    // One byte of a tensor: no header knows.
    let blob = fs::canonicalize(released.snapshot().join(released.shard())).expect("blob");
    let mut file = OpenOptions::new().write(true).open(blob).expect("blob");
    file.seek(SeekFrom::End(-3)).expect("seek");
    file.write_all(b"x").expect("written");
    drop(file);
    let found = faults(&plain(&released.snapshot()));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains(&released.shard()) && found[0].contains("(name of its blob)"),
        "{found:?}"
    );

    let text = fs::read_to_string(released.lock()).expect("lock");
    let hash = "0".repeat(64);
    let text = text
        .replace("\"config.json\" = {}", &format!("\"config.json\" = {{ sha256 = \"{hash}\" }}"));
    let text = text.replace("\"statistics.json\" = {}", "\"statistics.json\" = { size = 5 }");
    fs::write(released.lock(), text).expect("lock");
    let lock = released.parsed();
    let release = lock.release(Version::N17).expect("n17");
    let found =
        faults(&verify(&released.made, Some((Version::N17, release)), &|_, _| {})).join("\n");
    assert!(found.contains(&format!("expected {hash} (lock file)")), "{found}");
    assert!(found.contains("bytes, expected 5"), "{found}");
}

#[test]
fn progress_ends_with_all_bytes() {
    use std::sync::atomic::{AtomicU64, Ordering};
    let released = Released::new();
    let lock = released.parsed();
    let release = lock.release(Version::N17).expect("n17");
    let (last, all) = (AtomicU64::new(0), AtomicU64::new(0));
    let report = verify(&released.made, Some((Version::N17, release)), &|done, total| {
        last.fetch_max(done, Ordering::Relaxed);
        all.store(total, Ordering::Relaxed);
    });
    let bytes: u64 = report.files.iter().map(|file| file.size).sum();
    assert_eq!((last.into_inner(), all.into_inner()), (bytes, bytes));
}
