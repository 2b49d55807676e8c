//! `contract` and `--version`, as a user calls them.

use std::path::Path;
use std::process::{Command, Output};

use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::Version;
use serde_json::Value;

const DROID: &str = "oxe_droid_relative_eef_relative_joint";

fn run(arguments: &[&str], snapshot: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gr00t_blackhole"));
    command.args(arguments).arg("--snapshot").arg(snapshot).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_contract_is_what_the_checkpoint_declares() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = folder.path().join("n17");
    synth::write(Version::N17, Size::Tiny, &snapshot, &|_, _| {}).unwrap();

    let output = run(&["contract", "--json"], &snapshot);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["version"], "n17");
    let robots = report["embodiments"].as_array().unwrap();
    let droid = robots.iter().find(|robot| robot["tag"] == DROID).unwrap();
    assert_eq!((&droid["served"], &droid["horizon"]), (&true.into(), &40.into()));
    assert_eq!(droid["frame_deltas"], serde_json::json!([-15, 0]));
    let eef = serde_json::json!({
        "name": "eef_9d", "dim": 9, "encoding": "min_max", "pose": "xyz_rot6d",
    });
    assert_eq!(droid["state"][0], eef);
    let eef = serde_json::json!({
        "name": "eef_9d", "dim": 9, "representation": "pose_rot6d", "relative_to": "eef_9d",
        "normalization": "min_max_per_step",
    });
    assert_eq!(droid["action"][0], eef);
    // Slots that nothing was trained for are told with the reason.
    let other = robots.iter().find(|robot| robot["served"] == false).unwrap();
    assert!(other["reason"].as_str().unwrap().contains("modality_configs"), "{other}");

    let table = text(&run(&["contract"], &snapshot).stdout);
    for line in [
        "oxe_droid_relative_eef_relative_joint   slot 24, 40 steps per chunk",
        "    eef_9d                 9  min_max_per_step  pose xyz_rot6d, from eef_9d",
        "not served",
    ] {
        assert!(table.lines().any(|found| found == line), "no line {line:?} in\n{table}");
    }
    let one = text(&run(&["contract", "--embodiment", DROID], &snapshot).stdout);
    assert!(one.contains(DROID) && !one.contains("libero"), "{one}");
    let unknown = run(&["contract", "--embodiment", "gr2"], &snapshot);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains(DROID), "the tags that are served");
}

#[test]
fn a_checkpoint_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = folder.path().join("n16");
    synth::write(Version::N16, Size::Tiny, &snapshot, &|_, _| {}).unwrap();
    let observation = folder.path().join("observation.json");
    let nothing = r#"{"instruction": "wave", "frames": {}, "state": {}}"#;
    std::fs::write(&observation, nothing).unwrap();
    let observation = observation.to_str().unwrap();
    let predict = |version: &str| {
        let arguments = ["predict", "--version", version, "--observation", observation];
        let output = run(&[&arguments[..], &["--embodiment", "gr1"]].concat(), &snapshot);
        (output.status.code(), text(&output.stderr))
    };
    let (code, error) = predict("n17");
    assert_eq!(code, Some(1));
    assert!(error.contains("is a checkpoint of n16, not of n17"), "{error}");
    let (_, error) = predict("n16");
    assert!(error.contains("observation refused"), "the version is accepted: {error}");
    assert_eq!(predict("n18").0, Some(2));
}
