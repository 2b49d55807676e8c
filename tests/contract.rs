//! `contract` and the choices that a checkpoint leaves, as a user calls them.

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
    assert_eq!(droid["aspect_ratios"], serde_json::json!([863.0 / 512.0, 929.0 / 512.0]));
    let libero = robots.iter().find(|robot| robot["tag"] == "libero_sim").unwrap();
    assert_eq!(libero["aspect_ratios"], serde_json::json!([]));
    // Slots that nothing was trained for are told with the reason.
    let other = robots.iter().find(|robot| robot["served"] == false).unwrap();
    assert!(other["reason"].as_str().unwrap().contains("modality_configs"), "{other}");

    let table = text(&run(&["contract"], &snapshot).stdout);
    for line in [
        "oxe_droid_relative_eef_relative_joint   slot 24, 40 steps per chunk",
        "    eef_9d                 9  min_max_per_step  pose xyz_rot6d, from eef_9d",
        "    width divided by height from 1.686 to 1.814",
        "not served",
    ] {
        assert!(table.lines().any(|found| found == line), "no line {line:?} in\n{table}");
    }
    let one = text(&run(&["contract", "--embodiment", DROID], &snapshot).stdout);
    assert!(one.contains(DROID) && !one.contains("libero"), "{one}");
    let padded = run(&["contract", "--embodiment", DROID, "--letterbox", "on"], &snapshot);
    assert!(!text(&padded.stdout).contains("width divided"), "padded frames may have any shape");
    let unknown = run(&["contract", "--embodiment", "gr2"], &snapshot);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains(DROID), "the tags that are served");
}

#[test]
fn a_checkpoint_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = folder.path().join("n16");
    synth::write(Version::N16, Size::Tiny, &snapshot, &|_, _| {}).unwrap();
    let predict = |version: &str| predict_nothing(&["--version", version], &snapshot);
    let (code, error) = predict("n17");
    assert_eq!(code, Some(1));
    assert!(error.contains("is a checkpoint of n16, not of n17"), "{error}");
    let (_, error) = predict("n16");
    assert!(error.contains("observation refused"), "the version is accepted: {error}");
    assert_eq!(predict("n18").0, Some(2));
}

/// Exit status and standard error of `predict` with an observation that has nothing in it.
fn predict_nothing(arguments: &[&str], snapshot: &Path) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let observation = folder.path().join("observation.json");
    let nothing = r#"{"instruction": "wave", "frames": {}, "state": {}}"#;
    std::fs::write(&observation, nothing).unwrap();
    let all = ["predict", "--embodiment", "gr1", "--observation", observation.to_str().unwrap()];
    let output = run(&[&all[..], arguments].concat(), snapshot);
    (output.status.code(), text(&output.stderr))
}

#[test]
fn a_data_config_can_be_chosen_where_there_are_any() {
    let folder = tempfile::tempdir().unwrap();
    let n15 = folder.path().join("n15");
    synth::write(Version::N15, Size::Tiny, &n15, &|_, _| {}).unwrap();
    let contract = |arguments: &[&str]| {
        let output = run(&[&["contract", "--embodiment", "gr1"], arguments].concat(), &n15);
        text(&[output.stdout, output.stderr].concat())
    };
    assert!(!contract(&[]).contains("waist"));
    assert!(contract(&["--data-config", "fourier_gr1_arms_waist"]).contains("waist"));
    let misfit = contract(&["--data-config", "so100"]);
    assert!(misfit.contains("data config 'so100' does not fit"), "{misfit}");
    let all = text(&run(&["contract", "--data-config", "so100"], &n15).stdout);
    assert!(all.contains("1 of"), "{all}");
    assert!(all.contains("\nnew_embodiment   slot"), "{all}");
    assert!(all.contains("  gr1: data config 'so100' does not fit: there is no camera"), "{all}");

    let (code, error) = predict_nothing(&["--data-config", "so100"], &n15);
    assert_eq!(code, Some(1));
    assert!(error.contains("data config 'so100' does not fit"), "{error}");
    let (_, error) = predict_nothing(&["--letterbox", "off"], &n15);
    assert!(error.contains("letterbox is off, but only n17 has the choice"), "{error}");
    assert_eq!(predict_nothing(&["--letterbox", "yes"], &n15).0, Some(2));

    let n16 = folder.path().join("n16");
    synth::write(Version::N16, Size::Tiny, &n16, &|_, _| {}).unwrap();
    let (code, error) = predict_nothing(&["--data-config", "so100"], &n16);
    assert_eq!(code, Some(1));
    assert!(error.contains("n16 knows no data config 'so100'; only n15 has"), "{error}");
}

#[test]
fn an_error_is_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = folder.path().join("n16");
    synth::write(Version::N16, Size::Tiny, &snapshot, &|_, _| {}).unwrap();
    let (_, error) = predict_nothing(&[], &snapshot);
    assert_eq!(error.matches("is missing").count(), 1, "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    std::fs::remove_file(snapshot.join("statistics.json")).unwrap();
    let (_, error) = predict_nothing(&[], &snapshot);
    assert_eq!(error.matches("No such file").count(), 1, "{error}");
    let (_, error) = predict_nothing(&["--tokenizer", "/nowhere"], &snapshot);
    assert_eq!(error.matches("No such file").count(), 1, "{error}");
}
