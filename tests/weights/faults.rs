//! What goes wrong on the way, told in words that help.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use gr00t_blackhole::weights::hub::Token;
use gr00t_blackhole::weights::lock::FileEntry;

use crate::server::Fault;
use crate::support::{Notes, REPO, Rig, SHARD, SHARD_BYTES, files_in};

fn status(code: u16) -> Fault {
    Fault::Status(code, vec![])
}

#[test]
fn passing_faults_are_waited_for() {
    let rig = Rig::new();
    rig.hub.fault("HEAD", "config.json", 1, status(503));
    rig.hub.fault("HEAD", SHARD, 1, Fault::Status(429, vec![("Retry-After", "0".to_owned())]));
    rig.hub.fault("GET", "metadata.json", 2, status(500));
    rig.hub.fault("GET", &rig.shard.tag(), 1, status(502));
    rig.fetch().expect("fetched");
    rig.assert_whole();
}

#[test]
fn a_server_that_asks_for_a_wait_gets_it() {
    let rig = Rig::new();
    rig.hub.fault("GET", SHARD, 1, Fault::Status(429, vec![("Retry-After", "1".to_owned())]));
    let start = std::time::Instant::now();
    rig.fetch().expect("fetched");
    // Its own patience would be 10 ms.
    assert!(start.elapsed() >= std::time::Duration::from_secs(1));
}

#[test]
fn patience_ends() {
    let rig = Rig::new();
    rig.hub.fault("GET", &rig.shard.tag(), 99, status(503));
    let error = rig.refused();
    assert!(error.contains("after 3 attempts without progress"), "{error}");
    assert!(error.contains("(503 Service Unavailable)") && error.contains(SHARD), "{error}");
    let rig = Rig::new();
    rig.hub.fault("HEAD", "", 99, status(429));
    assert!(rig.refused().contains("slow down (429)"));
}

#[test]
fn a_gated_model_says_where_to_accept_its_terms() {
    let mut rig = Rig::new();
    rig.hub.require("hf_right");
    let error = rig.refused();
    assert!(error.contains(&format!("open {}/{REPO}", rig.hub.address)), "{error}");
    assert!(error.contains("set HF_TOKEN to a token of that account"), "{error}");
    rig.token = Some(Token::new("hf_wrong"));
    let error = rig.refused();
    assert!(error.contains("check that HF_TOKEN is of that account"), "{error}");
    assert!(!error.contains("hf_wrong"), "{error}");
    // Such answers do not pass; nobody is asked again and again.
    assert_eq!(rig.hub.seen().len(), 2);
}

#[test]
fn a_token_that_is_not_valid_is_told() {
    let mut rig = Rig::new();
    rig.hub.fault("HEAD", "", 9, status(401));
    let error = rig.refused();
    assert!(error.contains("wants to know who asks (401)"), "{error}");
    assert!(error.contains("set HF_TOKEN"), "{error}");
    rig.token = Some(Token::new("hf_old"));
    assert!(rig.refused().contains("is not valid: make a new one"));
}

#[test]
fn a_file_that_does_not_exist_is_named() {
    let mut rig = Rig::new();
    rig.wanted.files.insert("no-such.json".to_owned(), FileEntry::default());
    let error = rig.refused();
    assert!(error.contains("no-such.json does not exist (404): Entry not found"), "{error}");
}

#[test]
fn a_wrong_hash_never_gets_into_the_cache() {
    let rig = Rig::new();
    rig.hub.fault("GET", &rig.shard.tag(), 9, Fault::Corrupt);
    let error = rig.refused();
    assert!(error.contains("arrived damaged") && error.contains(&rig.shard.tag()), "{error}");
    let names = files_in(&rig.repo_dir().join("blobs"));
    assert!(names.iter().all(|name| !name.contains(&rig.shard.tag())), "{names:?}");
}

#[test]
fn a_wrong_hash_of_a_small_file_is_found_too() {
    let rig = Rig::new();
    rig.hub.fault("GET", "/cached", 9, Fault::Corrupt);
    assert!(rig.refused().contains("arrived damaged"));
}

#[test]
fn a_lock_that_knows_another_content_is_obeyed() {
    let mut rig = Rig::new();
    let other = "0".repeat(64);
    let entry = FileEntry { size: None, sha256: Some(other.clone()) };
    rig.wanted.files.insert(SHARD.to_owned(), entry.clone());
    let error = rig.refused();
    assert!(error.contains(&other) && error.contains("in the lock file"), "{error}");
    // Before a byte of it is fetched.
    assert_eq!(rig.hub.sent(), 0);

    let mut rig = Rig::new();
    rig.wanted.files.insert("config.json".to_owned(), entry);
    let error = rig.fetch().expect_err("refused").to_string();
    assert!(error.contains("config.json") && error.contains("in the lock file"), "{error}");
    assert!(!rig.snapshot().join("config.json").exists());

    let mut rig = Rig::new();
    let entry = FileEntry { size: Some(7), sha256: None };
    rig.wanted.files.insert(SHARD.to_owned(), entry);
    let error = rig.refused();
    assert!(error.contains(&format!("{SHARD_BYTES} bytes on the hub, and 7")), "{error}");
}

#[test]
fn a_server_that_contradicts_itself_is_refused() {
    for fault in [Fault::Size(SHARD_BYTES - 10), Fault::Size(SHARD_BYTES + 10)] {
        let rig = Rig::new();
        rig.hub.fault("HEAD", SHARD, 9, fault);
        let error = rig.refused();
        assert!(error.contains(&format!("a file of {SHARD_BYTES} bytes")), "{error}");
    }
    let rig = Rig::new();
    rig.hub.fault("GET", &rig.shard.tag(), 9, Fault::Longer);
    let error = rig.refused();
    assert!(error.contains("sends more"), "{error}");
    let rig = Rig::new();
    rig.hub.fault("HEAD", "config.json", 9, Fault::Commit("e".repeat(40)));
    let error = rig.fetch().expect_err("refused").to_string();
    assert!(error.contains("revision 0123456789"), "{error}");
    assert!(error.contains("eeeeeeee"), "{error}");
}

#[test]
fn a_server_that_names_no_hash_is_believed_and_that_is_told() {
    let rig = Rig::new();
    rig.hub.fault("HEAD", SHARD, 1, Fault::Tag("opaque-1"));
    let blobs = rig.repo_dir().join("blobs");
    fs::create_dir_all(&blobs).expect("folder");
    // Nothing says of which content this is the beginning.
    fs::write(blobs.join("opaque-1.incomplete"), "something").expect("left");
    let notes = Notes::default();
    rig.fetch_watched(&notes).expect("fetched");
    rig.assert_whole();
    assert!(blobs.join("opaque-1").exists());
    let lines = notes.lines.lock().expect("lines").join("\n");
    assert!(lines.contains(&format!("{SHARD}: the hub names no hash")), "{lines}");
}

#[test]
fn what_is_no_hub_is_told() {
    let rig = Rig::new();
    rig.hub.fault("HEAD", "", 9, status(200));
    let error = rig.refused();
    assert!(error.contains("is there a hub behind HF_ENDPOINT?"), "{error}");
    let rig = Rig::new();
    rig.hub.fault("HEAD", "", 99, Fault::Status(302, vec![("Location", "/x".to_owned())]));
    assert!(rig.refused().contains("leads nowhere after 10 redirects"));
    let rig = Rig::new();
    rig.hub.fault("HEAD", "", 9, Fault::Status(302, vec![("Location", "ftp://x".to_owned())]));
    assert!(rig.refused().contains("'ftp://x', which is not followed"));
}

#[test]
fn a_hub_that_cannot_be_reached_is_told() {
    let mut rig = Rig::new();
    let other = Rig::new();
    let address = other.hub.address.clone();
    drop(other);
    rig.hub.address.clone_from(&address);
    let error = rig.refused();
    assert!(error.contains("cannot be reached"), "{error}");
    assert!(error.contains("check the network, or HTTPS_PROXY"), "{error}");
}

#[test]
fn a_proxy_that_does_not_answer_is_told() {
    let mut rig = Rig::new();
    let gone = Rig::new().hub.address.clone();
    rig.proxy = Some(gone.clone());
    let error = rig.refused();
    let address = gone.trim_start_matches("http://");
    assert!(error.contains(&format!("through the proxy {address}")), "{error}");
    assert!(error.contains("check HTTPS_PROXY and NO_PROXY"), "{error}");
}

#[test]
fn a_proxy_that_refuses_is_told() {
    let mut rig = Rig::new();
    // As a proxy, the small hub knows nothing of CONNECT.
    rig.hub.fault("CONNECT", "", 99, status(407));
    rig.proxy = Some(rig.hub.address.clone());
    let error = rig.refused();
    assert!(error.contains("does not connect to 127.0.0.1"), "{error}");
    assert!(error.contains("the proxy's user and password"), "{error}");
}

#[test]
fn offline_names_what_is_missing() {
    let mut rig = Rig::new();
    rig.offline = true;
    let error = rig.refused();
    assert!(error.contains("HF_HUB_OFFLINE forbids the network, and 3 files"), "{error}");
    assert!(error.contains(&format!("{SHARD} is missing")), "{error}");
    assert_eq!(rig.hub.seen(), []);
}

#[test]
fn a_cache_that_cannot_be_written_is_told() {
    let rig = Rig::new();
    let root = rig.folder.path().join("hub");
    // A file where the cache should be stops root, too.
    fs::write(&root, "x").expect("file");
    let error = rig.fetch().expect_err("no folder").to_string();
    assert!(error.contains("cannot write") && error.contains("set HF_HOME"), "{error}");
}

#[test]
fn case_80_a_read_only_cache_that_is_whole_is_enough() {
    let mut rig = Rig::new();
    rig.fetch().expect("fetched");
    rig.hub.forget();
    let dirs = [rig.snapshot(), rig.repo_dir(), rig.folder.path().join("hub")];
    let set = |mode| {
        for dir in &dirs {
            fs::set_permissions(dir, fs::Permissions::from_mode(mode)).expect("permissions");
        }
    };
    set(0o555);
    let fetched = rig.fetch();
    rig.offline = true;
    let offline = rig.fetch();
    set(0o755);
    assert_eq!(fetched.expect("whole").downloaded, 0);
    assert_eq!(offline.expect("whole").downloaded, 0);
    assert_eq!(rig.hub.seen(), []);
}
