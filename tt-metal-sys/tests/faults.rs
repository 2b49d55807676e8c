//! A worker may do what it likes in any phase: the client gets an error that says what, in time, and the card is free again.

mod common;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{STAGES, drive, impatient, options, scripted};
use tt_metal_sys::{Error, Exit, WorkerCommand};

/// How long a worker is waited for that will not answer.
const SHORT: Duration = Duration::from_millis(300);

/// How long one is waited for that will answer, or end.
const LONG: Duration = Duration::from_secs(20);

/// The error of a worker with a fault in a stage. Its processes have to be gone, and its lock.
fn fault(fault: &str, stage: &str) -> Error {
    let dir = tempfile::tempdir().expect("a directory");
    let wait = if ["hang", "half"].contains(&fault) { SHORT } else { LONG };
    let begin = Instant::now();
    let error = drive(&scripted(fault, stage), &impatient(dir.path(), stage, wait));
    let (error, took) = (error.expect_err("a fault"), begin.elapsed());
    assert!(took < LONG, "{fault} in {stage} took {took:?}: {error}");
    // The lock is taken before a worker is started.
    let free = drive(&absent(), &options(dir.path())).expect_err("no worker");
    assert!(matches!(free, Error::Spawn { .. }), "the card is free again: {free}");
    error
}

/// A worker that cannot be started.
fn absent() -> WorkerCommand {
    WorkerCommand { program: "/nowhere/python3".into(), ..scripted("none", "none") }
}

/// Faults of a kind in every stage from `first` on, with the request that the error has to name.
fn in_each_stage(kind: &str, first: &str, check: impl Fn(&Error, &str)) {
    for stage in STAGES.iter().skip_while(|stage| **stage != first) {
        let error = fault(kind, stage);
        // Before it has connected, a worker is lost on its way to `hello`.
        check(&error, if *stage == "start" { "hello" } else { stage });
    }
}

#[test]
fn case_49_a_worker_that_exits_in_any_phase() {
    in_each_stage("exit", "start", |error, stage| {
        let Error::WorkerGone { exit, request, stderr } = error else { panic!("{stage}: {error}") };
        assert_eq!((*exit, *request), (Exit::Status(7), stage));
        assert!(stderr.contains("last words before"), "{stderr}");
    });
}

#[test]
fn a_worker_that_aborts_in_any_phase() {
    in_each_stage("abort", "start", |error, stage| {
        let Error::WorkerGone { exit, request, .. } = error else { panic!("{stage}: {error}") };
        assert_eq!((*exit, *request), (Exit::Signal(6), stage));
    });
}

#[test]
fn a_worker_that_is_killed_in_any_phase() {
    in_each_stage("kill", "start", |error, stage| {
        let Error::WorkerGone { exit, request, .. } = error else { panic!("{stage}: {error}") };
        assert_eq!((*exit, *request), (Exit::Signal(9), stage));
        assert!(error.to_string().contains("signal 9"), "{error}");
    });
}

#[test]
fn case_49_a_worker_that_hangs_in_any_phase() {
    in_each_stage("hang", "start", |error, stage| {
        let Error::Timeout { request, waited, stderr } = error else { panic!("{stage}: {error}") };
        assert_eq!(*request, stage);
        assert!(
            *waited >= SHORT && (stage == "hello" || stderr.contains("last words")),
            "{waited:?}, {stderr}"
        );
    });
}

#[test]
fn a_worker_that_leaves_the_line_and_lives_on() {
    let error = fault("leave", "run");
    let Error::WorkerGone { exit: Exit::Ended, request: "run", .. } = error else {
        panic!("{error}")
    };
}

#[test]
fn half_a_reply_in_any_phase() {
    in_each_stage("half", "hello", |error, stage| {
        let Error::Timeout { request, .. } = error else { panic!("{stage}: {error}") };
        assert_eq!(*request, stage);
    });
}

#[test]
fn half_a_reply_and_the_end() {
    for stage in ["hello", "open", "replay"] {
        let error = fault("cut", stage);
        let Error::WorkerGone { exit: Exit::Status(7), request, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(request, stage);
    }
}

#[test]
fn garbage_in_any_phase() {
    in_each_stage("text", "hello", |error, stage| {
        let Error::Garbage { request, .. } = error else { panic!("{stage}: {error}") };
        assert_eq!(*request, stage);
    });
}

#[test]
fn every_kind_of_garbage() {
    let kinds = [
        ("empty", "a frame of 0 bytes"),
        ("oversize", "a frame of 4194305 bytes"),
        ("not_json", "expected value"),
        ("no_object", "invalid"),
        ("wrong_id", "the request"),
        ("both", "either 'ok' or 'error'"),
        ("neither", "either 'ok' or 'error'"),
        ("wrong_fields", "unknown field `surprise`"),
        ("unknown_code", "unknown variant `whim`"),
    ];
    for (kind, text) in kinds {
        let error = fault(kind, "build");
        let Error::Garbage { request: "build", reason, .. } = &error else {
            panic!("{kind}: {error}")
        };
        assert!(reason.contains(text), "{kind}: {reason}");
    }
    assert!(matches!(fault("bad_granule", "allocate"), Error::Garbage { .. }));
}

#[test]
fn a_card_that_fails_is_told_and_ends_the_worker() {
    let error = fault("device", "replay");
    assert!(error.ends_worker());
    assert_eq!(error.to_string(), "'replay' was refused (device): the card is lost");
}

#[test]
fn a_worker_that_behaves() {
    let dir = tempfile::tempdir().expect("a directory");
    drive(&scripted("none", "none"), &options(dir.path())).expect("every request is answered");
}

#[test]
fn versions_are_exact() {
    let kinds = [("protocol", "protocol"), ("worker", "kind"), ("tt_metal", "tt-metal version")];
    for (kind, name) in kinds {
        let error = fault(kind, "hello");
        let Error::Handshake { field, .. } = error else { panic!("{error}") };
        assert_eq!(field, name);
    }
    let text = fault("tt_metal", "hello").to_string();
    assert!(text.contains("'1.2.4'") && text.contains("'1.2.3' exactly"), "{text}");
}

#[test]
fn a_program_that_is_not_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let error = drive(&absent(), &options(dir.path())).expect_err("no program");
    assert!(matches!(error, Error::Spawn { .. }) && error.to_string().contains("/nowhere/python3"));
}

#[test]
fn what_a_hanging_worker_has_started_is_ended_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut device = tt_metal_sys::Device::open(
        &scripted("hang", "telemetry"),
        &impatient(dir.path(), "telemetry", SHORT),
    )
    .expect("a device");
    let group = device.worker_pid();
    device.telemetry().expect_err("no reply");
    let listed = Command::new("ps").args(["-o", "stat=", "-g", &group.to_string()]).output();
    let listed = String::from_utf8(listed.expect("ps").stdout).expect("text");
    // An orphan that its new parent has not waited for yet is a zombie.
    assert!(listed.lines().all(|state| state.trim_start().starts_with('Z')), "{listed}");
    assert!(!Path::new(&format!("/proc/{group}")).exists(), "the worker is waited for");
}
