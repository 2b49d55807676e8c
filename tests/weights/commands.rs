//! The commands as people use them, one after the other, with the environment variables of the hub.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::released::{Answer, Released};
use crate::server::{Fault, REVISION};

/// An observation that the tiny checkpoint has no robot for: what matters is how far `predict` gets.
const OBSERVATION: &str = r#"{"instruction": "wave", "frames": {}, "state": {}}"#;

fn predict(released: &Released, more: &[&str]) -> Answer {
    fs::write(released.folder.path().join("observation.json"), OBSERVATION).expect("observation");
    let arguments = ["predict", "--version", "n17", "--observation", "observation.json"];
    let robot = ["--embodiment", "oxe_droid_relative_eef_relative_joint"];
    released.run(&[&arguments[..], &robot, more].concat())
}

#[test]
fn from_nothing_to_a_start_by_version_alone() {
    let released = Released::new();
    let error = predict(&released, &[]).failed().err;
    assert!(error.contains(&released.snapshot().display().to_string()), "{error}");
    assert!(error.contains("gr00t_blackhole weights fetch --version n17"), "{error}");

    let fetched = released.fetch().succeeded();
    assert!(fetched.out.contains(&released.snapshot().display().to_string()), "{fetched:?}");
    assert!(fetched.out.contains("n17 tokenizer: "), "{fetched:?}");

    // Checkpoint and tokenizer are found, without the network; the observation is refused.
    let error = predict(&released, &[]).failed().err;
    assert!(error.contains("observation refused"), "{error}");
    // As it is when the checkpoint is named.
    let made = released.made.display().to_string();
    assert!(
        predict(&released, &["--snapshot", &made]).failed().err.contains("observation refused")
    );

    let contract = released.run(&["contract", "--version", "n17"]).succeeded().out;
    assert!(contract.contains("oxe_droid_relative_eef_relative_joint"), "{contract}");
    let listed = released.run(&["weights", "list"]).succeeded().out;
    assert!(listed.contains("weights in ") && listed.contains("tokenizer in "), "{listed}");
}

#[test]
fn a_checkpoint_without_tokenizer_says_where_it_comes_from() {
    let released = Released::new();
    let made = released.made.display().to_string();
    let error = predict(&released, &["--snapshot", &made]).failed().err;
    assert!(error.contains("no tokenizer files") && error.contains("maker/backbone"), "{error}");
    assert!(error.contains("weights fetch --version n17"), "{error}");
    let doctor = released.run(&["doctor", "--snapshot", &made]).failed().out;
    assert!(doctor.contains("maker/backbone"), "{doctor}");
    let doctor = released.run(&["doctor", "--version", "n17"]).failed().out;
    assert!(doctor.contains("weights fetch --version n17"), "{doctor}");
}

#[test]
fn a_snapshot_that_is_not_whole_is_not_started() {
    let released = Released::new();
    released.fetch().succeeded();
    fs::remove_file(released.snapshot().join(released.shard())).expect("removed");
    let error = predict(&released, &[]).failed().err;
    assert!(error.contains(&format!("is not whole: {} is missing", released.shard())), "{error}");
}

#[test]
fn neither_snapshot_nor_version_is_wrong_usage() {
    let released = Released::new();
    let answer = released.run(&["predict", "--observation", "x"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.err.contains("--snapshot"), "{answer:?}");
}

#[test]
fn a_licence_is_accepted_once() {
    let released = Released::new();
    let fetch = ["weights", "fetch", "--version", "n17"];
    let refused = released.run(&fetch).failed();
    assert!(refused.err.contains("No License: Nothing is allowed."), "{refused:?}");
    assert!(refused.err.contains(&format!("/blob/{REVISION}/LICENSE")), "{refused:?}");
    assert!(refused.err.contains("--accept-licence"), "{refused:?}");
    assert_eq!(released.hub.seen(), []);
    released.fetch().succeeded();
    let again = released.run(&fetch).succeeded();
    assert!(!again.err.contains("No License"), "{again:?}");
    assert!(again.out.contains("was in the cache"), "{again:?}");
}

#[test]
fn what_others_have_fetched_needs_no_acceptance() {
    let released = Released::new();
    released.fetch().succeeded();
    let record = released.cache().join("models--maker--tiny-n17/licence-accepted.txt");
    fs::remove_file(record).expect("removed");
    let answer = released.run(&["weights", "fetch", "--version", "n17"]).succeeded();
    assert!(answer.out.contains("was in the cache"), "{answer:?}");
}

#[test]
fn hashes_are_filled_in_from_a_verified_download_and_compared_from_then_on() {
    let released = Released::new();
    let error = released.run(&["weights", "lock"]).failed().err;
    assert!(error.contains("no released checkpoint is in the cache"), "{error}");
    released.fetch().succeeded();
    let filled = released.run(&["weights", "lock"]).succeeded().out;
    assert!(filled.contains("filled in n17 config.json: sha256 "), "{filled}");
    assert!(filled.contains(&format!("filled in n17.tokenizer: revision {REVISION}")), "{filled}");
    let text = fs::read_to_string(released.lock()).expect("lock");
    assert!(text.starts_with("# A lock file for tests."), "{text}");
    assert!(!text.contains("{}"), "{text}");
    let again = released.run(&["weights", "lock"]).succeeded().out;
    assert!(again.contains("is known already"), "{again}");

    let count = released.files().len();
    let verified = released.run(&["weights", "verify"]).succeeded().out;
    assert!(verified.contains(&format!("{count} of {count} hashes compared")), "{verified}");
    let tensors = gr00t_blackhole::checkpoint::survey(&released.made).tensors;
    assert!(verified.contains(&format!("{tensors} of {tensors} tensors")), "{verified}");
    // A plain copy is the release, too; a changed one is not.
    let copy = released.copied("copy").display().to_string();
    let arguments = ["weights", "verify", "--snapshot", &copy, "--released", "n17"];
    released.run(&arguments).succeeded();
    let statistics = released.folder.path().join("copy/statistics.json");
    let text = fs::read_to_string(&statistics).expect("statistics");
    fs::write(&statistics, text + " ").expect("written");
    let found = released.run(&arguments).failed();
    assert!(
        found.out.contains("FAULT") && found.out.contains("statistics.json: has "),
        "{found:?}"
    );
    assert!(found.err.contains("1 fault"), "{found:?}");
    // As a fine-tune of which no hash is known it is whole.
    let fine_tuned = released.run(&["weights", "verify", "--snapshot", &copy]).succeeded().out;
    assert!(fine_tuned.contains("no fault"), "{fine_tuned}");
}

#[test]
fn a_damaged_download_is_not_locked() {
    let released = Released::new();
    released.fetch().succeeded();
    let blob = fs::canonicalize(released.snapshot().join("config.json")).expect("blob");
    let text = fs::read_to_string(&blob).expect("config");
    fs::write(&blob, text + "\n").expect("written");
    let before = fs::read_to_string(released.lock()).expect("lock");
    let error = released.run(&["weights", "lock"]).failed().err;
    assert!(error.contains("nothing is filled in") && error.contains("config.json"), "{error}");
    assert_eq!(fs::read_to_string(released.lock()).expect("lock"), before);
}

#[test]
fn a_plain_copy_in_the_cache_is_not_locked_since_nothing_vouches_for_it() {
    let released = Released::new();
    fs::create_dir_all(released.snapshot().parent().expect("folder")).expect("folder");
    symlink(&released.made, released.snapshot()).expect("link");
    let error = released.run(&["weights", "lock"]).failed().err;
    assert!(error.contains("nothing says which content"), "{error}");
}

#[test]
fn verify_without_a_checkpoint_says_what_to_do() {
    let released = Released::new();
    let error = released.run(&["weights", "verify"]).failed().err;
    assert!(error.contains("no released checkpoint is in the cache"), "{error}");
    let error = released.run(&["weights", "verify", "--version", "n17"]).failed().err;
    assert!(error.contains("weights fetch --version n17"), "{error}");
    let error = released.run(&["weights", "verify", "--version", "n15"]).failed().err;
    assert!(error.contains("does not know n15; it has: n17"), "{error}");
}

#[test]
fn a_lock_file_that_is_wrong_is_named() {
    let released = Released::new();
    fs::write(released.lock(), "[n17]\nrepo = 1\n").expect("lock");
    let error = released.run(&["weights", "list"]).failed().err;
    assert!(error.contains("weights.lock") && error.contains("repo"), "{error}");
    let listed = released.command(&["weights", "list"]).env("GR00T_WEIGHTS_LOCK", "").output();
    let listed = Answer::of(listed.expect("the program")).succeeded().out;
    assert!(listed.starts_with("the built-in weights.lock"), "{listed}");
    assert!(listed.contains("nvidia/GR00T-N1.6-3B"), "{listed}");
}

#[test]
fn offline_and_a_broken_proxy_are_told() {
    let released = Released::new();
    let fetch = ["weights", "fetch", "--version", "n17", "--accept-licence"];
    let run = |name: &str, value: &str| {
        let output = released.command(&fetch).env(name, value).output().expect("the program");
        Answer::of(output).failed().err
    };
    let offline = run("HF_HUB_OFFLINE", "1");
    assert!(offline.contains("HF_HUB_OFFLINE forbids the network"), "{offline}");
    let proxy = run("HTTPS_PROXY", "http://[x");
    assert!(
        proxy.contains("HTTPS_PROXY is 'http://[x', which is no address of a proxy"),
        "{proxy}"
    );
    let endpoint = run("HF_ENDPOINT", "nonsense");
    assert!(endpoint.contains("HF_ENDPOINT is 'nonsense'"), "{endpoint}");
}

#[test]
fn a_relative_home_with_other_letters_is_taken_from_the_current_directory() {
    let released = Released::new();
    let fetch = ["weights", "fetch", "--version", "n17", "--accept-licence"];
    let output = released.command(&fetch).env("HF_HOME", "größe ü").output().expect("the program");
    Answer::of(output).succeeded();
    let snapshot = released.folder.path().join("größe ü/hub/models--maker--tiny-n17/snapshots");
    assert!(snapshot.join(REVISION).join(released.shard()).exists());
}

#[test]
fn a_killed_download_goes_on_and_two_processes_share_the_work() {
    let released = Released::new();
    // Small enough for quick tests, slow enough to be killed in the middle.
    released.hub.fault("GET", "Signature", 1, Fault::Slow(100));
    let fetch = ["weights", "fetch", "--version", "n17", "--accept-licence", "--jobs", "1"];
    let mut first = released
        .command(&fetch)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program");
    let start = Instant::now();
    while released.hub.sent() < 500_000 {
        assert!(start.elapsed() < Duration::from_secs(60), "nothing is sent");
        std::thread::sleep(Duration::from_millis(20));
    }
    first.kill().expect("killed");
    first.wait().expect("ended");

    released.hub.forget();
    let run = || released.fetch().succeeded();
    std::thread::scope(|scope| {
        for process in [scope.spawn(run), scope.spawn(run)] {
            process.join().expect("a process");
        }
    });
    let resumed = released.hub.seen().into_iter().filter(|seen| seen.cdn && seen.from > Some(0));
    assert_eq!(resumed.count(), 1, "{:?}", released.hub.seen());
    let verified = released.run(&["weights", "verify"]).succeeded().out;
    assert!(verified.contains("no fault"), "{verified}");
    let size = |file: &String| fs::metadata(released.made.join(file)).expect("file").len() as usize;
    let weights: usize = released.files().iter().map(size).sum();
    assert!(released.hub.sent() < weights + 3_000_000, "{} of {weights}", released.hub.sent());
}
