//! `bag info`.

use std::path::Path;
use std::process::{Command, Output};

fn info(arguments: &[&str]) -> Output {
    let binary = env!("CARGO_BIN_EXE_gr00t_blackhole");
    Command::new(binary).args(["bag", "info"]).args(arguments).output().unwrap()
}

fn stranger(kind: &str) -> String {
    let bags = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bags");
    bags.join(kind).to_str().unwrap().to_owned()
}

#[test]
fn topics_counts_and_rates_are_printed() {
    for arguments in [vec![stranger("sqlite3")], vec![stranger("sqlite3"), "--check".into()]] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = info(&arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success());
        assert!(text.contains("sqlite3.db3 (sqlite3)"), "{text}");
        assert!(text.contains("28 messages in 2.400 s"), "{text}");
        let states = text.lines().find(|line| line.contains("/joint_states")).unwrap();
        let words: Vec<&str> = states.split_whitespace().collect();
        assert_eq!(words, ["/joint_states", "sensor_msgs/msg/JointState", "25", "10.00", "Hz"]);
        assert!(!text.contains("note:"), "{text}");
    }
}

#[test]
fn json_has_the_same_and_the_notes_by_kind() {
    let folder = tempfile::tempdir().unwrap();
    let bag = folder.path().join("bag");
    std::fs::create_dir(&bag).unwrap();
    std::fs::copy(format!("{}/mcap.mcap", stranger("mcap")), bag.join("mcap.mcap")).unwrap();
    let output = info(&[bag.to_str().unwrap(), "--json", "--check"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["messages"], 28);
    assert_eq!(report["duration_s"], 2.4);
    assert_eq!(report["topics"][1]["name"], "/words");
    assert_eq!(report["topics"][1]["rate_hz"], 1.0);
    assert_eq!(report["files"][0]["storage"], "mcap");
    assert_eq!(report["notes"][0]["kind"], "no_metadata");
    assert!(report["notes"][0]["text"].as_str().unwrap().contains("no metadata.yaml"));
}

#[test]
fn a_bag_that_is_none_is_one_sentence_and_status_1() {
    let output = info(&["/nowhere/bag"]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("/nowhere/bag") && error.lines().count() == 1, "{error}");
}
