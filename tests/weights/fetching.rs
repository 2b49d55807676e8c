//! What a fetch leaves in the cache, and what it spares.

use std::fs;

use gr00t_blackhole::weights::hub::Token;
use gr00t_blackhole::weights::lock::FileEntry;

use crate::server::{Fault, REVISION, hex};
use crate::support::{Notes, REPO, Rig, SHARD, SHARD_BYTES, content, files_in};

#[test]
fn everything_is_laid_out_as_python_has_it() {
    let rig = Rig::new();
    let fetched = rig.fetch().expect("fetched");
    assert_eq!((fetched.revision.as_str(), fetched.downloaded), (REVISION, 3));
    assert_eq!(fetched.snapshot, rig.snapshot());
    rig.assert_whole();
    let target = fs::read_link(rig.snapshot().join(SHARD)).expect("a link");
    assert_eq!(target.to_string_lossy(), format!("../../blobs/{}", rig.shard.tag()));
    let deep = fs::read_link(rig.snapshot().join("experiment_cfg/metadata.json")).expect("a link");
    assert!(deep.starts_with("../../../blobs"), "{}", deep.display());
    let config = fs::read_link(rig.snapshot().join("config.json")).expect("a link");
    assert!(config.ends_with("0967ef424bce6791893e9a57bb952f80fd536e93"), "{}", config.display());
    let main = fs::read_to_string(rig.repo_dir().join("refs/main")).expect("the hub's main branch");
    assert_eq!(main, REVISION);
}

#[test]
fn what_is_there_is_not_fetched_again() {
    let mut rig = Rig::new();
    rig.fetch().expect("fetched");
    rig.hub.forget();
    assert_eq!(rig.fetch().expect("again").downloaded, 0);
    assert_eq!(rig.hub.seen(), []);
    // Also without a network.
    rig.offline = true;
    assert_eq!(rig.fetch().expect("offline").downloaded, 0);
    // Only a link is missing.
    rig.offline = false;
    fs::remove_file(rig.snapshot().join(SHARD)).expect("removed");
    assert_eq!(rig.fetch().expect("linked").downloaded, 0);
    assert_eq!(rig.hub.sent(), 0);
    rig.assert_whole();
}

#[test]
fn a_main_branch_that_is_another_commit_is_not_written_down() {
    let rig = Rig::new();
    rig.hub.set_main(&"f".repeat(40));
    rig.fetch().expect("fetched");
    assert!(!rig.repo_dir().join("refs/main").exists());
}

#[test]
fn without_a_revision_the_main_branch_is_fetched_and_written_down() {
    let mut rig = Rig::new();
    rig.wanted.revision = None;
    let main = "f".repeat(40);
    rig.hub.set_main(&main);
    let fetched = rig.fetch().expect("fetched");
    assert_eq!(fetched.revision, main);
    assert_eq!(fs::read_to_string(rig.repo_dir().join("refs/main")).expect("ref"), main);
    // The other files are asked for by the commit: the branch may move meanwhile.
    let asked = |file: &str| {
        let seen = rig.hub.seen().into_iter().filter(|seen| seen.method == "HEAD");
        seen.filter(|seen| seen.path.contains("/main/") && seen.path.ends_with(file)).count()
    };
    assert_eq!(asked("config.json") + asked("metadata.json") + asked(SHARD), 1);
    rig.offline = true;
    assert_eq!(rig.fetch().expect("offline").revision, main);
}

#[test]
fn the_token_is_told_to_the_hub_and_to_nobody_else() {
    let mut rig = Rig::new();
    rig.token = Some(Token::new("hf_secret"));
    rig.hub.require("hf_secret");
    rig.fetch().expect("fetched");
    let seen = rig.hub.seen();
    assert!(seen.iter().any(|seen| seen.cdn));
    for request in seen {
        assert_eq!(request.token.is_some(), !request.cdn, "{request:?}");
    }
}

#[test]
fn a_cut_download_goes_on_where_it_was_cut() {
    let rig = Rig::new();
    rig.hub.fault("GET", &rig.shard.tag(), 2, Fault::Cut(1_000_000));
    let notes = Notes::default();
    rig.fetch_watched(&notes).expect("fetched");
    rig.assert_whole();
    let starts: Vec<_> =
        rig.hub.seen().iter().filter(|seen| seen.cdn).map(|seen| seen.from).collect();
    assert_eq!(starts.len(), 3, "{starts:?}");
    assert!(starts[1] >= Some(900_000) && starts[2] >= Some(1_900_000), "{starts:?}");
    let lines = notes.lines.lock().expect("lines").join("\n");
    assert!(lines.contains("was cut after"), "{lines}");
    let small = 3 + 1000;
    assert!(rig.hub.sent() < SHARD_BYTES + small + 300_000, "{}", rig.hub.sent());
}

#[test]
fn an_interrupted_run_goes_on_in_the_next() {
    let rig = Rig::new();
    rig.leave(&rig.shard.bytes[..2_000_000]);
    let notes = Notes::default();
    rig.fetch_watched(&notes).expect("fetched");
    rig.assert_whole();
    let starts: Vec<_> =
        rig.hub.seen().iter().filter(|seen| seen.cdn).map(|seen| seen.from).collect();
    assert_eq!(starts, [Some(2_000_000)]);
    assert_eq!(notes.positions.lock().expect("positions")[SHARD][0], 2_000_000);
}

#[test]
fn what_was_left_whole_is_only_checked() {
    let rig = Rig::new();
    rig.leave(&rig.shard.bytes);
    rig.fetch().expect("fetched");
    rig.assert_whole();
    assert!(rig.hub.seen().iter().all(|seen| !seen.cdn));
}

#[test]
fn what_was_left_damaged_or_too_long_is_thrown_away() {
    for left in [content(2_000_000, 9), content(SHARD_BYTES + 5, 9), content(SHARD_BYTES, 9)] {
        let rig = Rig::new();
        rig.leave(&left);
        rig.fetch().expect("fetched");
        rig.assert_whole();
    }
}

#[test]
fn a_server_without_ranges_sends_everything_again() {
    let rig = Rig::new();
    rig.leave(&rig.shard.bytes[..2_000_000]);
    rig.hub.fault("GET", &rig.shard.tag(), 1, Fault::NoRanges);
    rig.fetch().expect("fetched");
    rig.assert_whole();
}

#[test]
fn a_blob_of_another_size_is_fetched_again() {
    let rig = Rig::new();
    fs::create_dir_all(rig.repo_dir().join("blobs")).expect("folder");
    fs::write(rig.blob(""), "short").expect("blob");
    rig.fetch().expect("fetched");
    rig.assert_whole();
}

#[test]
fn what_the_lock_knows_is_compared() {
    let mut rig = Rig::new();
    let known = FileEntry { size: Some(SHARD_BYTES as u64), sha256: Some(rig.shard.tag()) };
    rig.wanted.files.insert(SHARD.to_owned(), known);
    let sha256 = hex(&<sha2::Sha256 as sha2::Digest>::digest(b"{}\n"));
    let config = FileEntry { size: Some(3), sha256: Some(sha256) };
    rig.wanted.files.insert("config.json".to_owned(), config);
    rig.fetch().expect("fetched");
    rig.assert_whole();
}

#[test]
fn names_are_encoded_in_addresses_and_plain_on_disk() {
    let mut rig = Rig::new();
    let file = "Größe 1#?.json";
    rig.hub.put(REPO, "Gr%C3%B6%C3%9Fe%201%23%3F.json", b"[]".to_vec(), false);
    rig.wanted.files.insert(file.to_owned(), FileEntry::default());
    rig.fetch().expect("fetched");
    assert_eq!(fs::read(rig.snapshot().join(file)).expect("file"), b"[]");
}

#[test]
fn equal_files_are_one_blob() {
    let mut rig = Rig::new();
    rig.hub.put(REPO, "copy.safetensors", rig.shard.bytes.to_vec(), true);
    rig.wanted.files.insert("copy.safetensors".to_owned(), FileEntry::default());
    let fetched = rig.fetch().expect("fetched");
    assert_eq!((fetched.downloaded, files_in(&rig.repo_dir().join("blobs")).len()), (3, 3));
    assert!(fs::read(rig.snapshot().join("copy.safetensors")).expect("file") == *rig.shard.bytes);
}

#[test]
fn two_at_once_download_once() {
    let rig = Rig::new();
    rig.hub.fault("GET", &rig.shard.tag(), 9, Fault::Slow(10));
    std::thread::scope(|scope| {
        let run = || rig.fetch().expect("fetched");
        let (one, other) = (scope.spawn(run), scope.spawn(run));
        let downloaded =
            one.join().expect("one").downloaded + other.join().expect("other").downloaded;
        assert_eq!(downloaded, 3);
    });
    rig.assert_whole();
}
