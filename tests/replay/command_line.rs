//! `gr00t_blackhole replay` as a program: what it prints, and how it ends.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::Version;

use super::rig::Rig;

fn replay(rig: &Rig, arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    Command::new(env!("CARGO_BIN_EXE_gr00t_blackhole"))
        .arg("replay")
        .arg(root.join("demo/pear_to_plate"))
        .arg("--params")
        .arg(root.join("config/gr1.yaml"))
        .arg("--snapshot")
        .arg(rig.path("tiny"))
        .args(["--rate", "1", "-p", "threads:=1"])
        .args(arguments)
        .output()
        .expect("it runs")
}

fn status(output: &Output) -> Option<i32> {
    output.status.code()
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_status_says_whether_every_bound_is_kept() {
    let rig = Rig::new(Version::N16);
    let instruction = ["--instruction", "wave"];
    let with = |more: &[&str]| replay(&rig, &[&instruction, more].concat());

    let kept = with(&["--expect", "chunks>=4", "--expect", "refusals == 0"]);
    assert_eq!(status(&kept), Some(0), "{}", error(&kept));
    let text = String::from_utf8_lossy(&kept.stdout);
    assert!(text.contains("Kept: refusals == 0; measured 0."), "{text}");

    let broken = with(&["--expect", "chunks>=100"]);
    assert_eq!(status(&broken), Some(1));
    let complaint = error(&broken);
    assert!(complaint.contains("chunks >= 100 is expected, and 4 was measured"), "{complaint}");

    // Nothing was recorded that could be compared.
    let unknown = with(&["--max-mae", "0.1"]);
    assert_eq!(status(&unknown), Some(2));
    assert!(error(&unknown).contains("'mae' was not measured"), "{}", error(&unknown));

    let json = with(&["--json"]);
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(report["moments"]["chunks"], 4);
}

#[test]
fn another_policy_without_a_chunk_is_a_failure_and_no_wrong_usage() {
    let rig = Rig::new(Version::N16);
    let broken = rig.path("broken");
    synth::write(Version::N16, Size::Tiny, &broken, &|_, _| {}).expect("written");
    let shards = fs::read_dir(&broken).expect("a checkpoint").map(|entry| entry.unwrap().path());
    for shard in shards.filter(|path| path.extension().is_some_and(|end| end == "safetensors")) {
        let mut bytes = fs::read(&shard).expect("a shard");
        let half = bytes.len() / 2;
        // A bf16 of all ones is no number.
        bytes[half..].fill(0xff);
        fs::write(&shard, bytes).expect("written");
    }
    let against = format!("snapshot={}", broken.display());
    let bound = "against.pcc.left_arm>=0.999";
    for more in [&[][..], &["--expect", bound]] {
        let arguments = [&["--instruction", "wave", "--against", &against], more].concat();
        let output = replay(&rig, &arguments);
        assert_eq!(status(&output), Some(1), "{}", error(&output));
        let expected = format!("error: the other policy, {against}, gave no chunk: ");
        assert!(error(&output).contains(&expected), "{}", error(&output));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(!text.contains("0 of 0") && text.contains("no chunk for 4 observations"), "{text}");
    }
}

#[test]
fn wrong_usage_has_a_status_of_its_own() {
    let rig = Rig::new(Version::N16);
    for (arguments, expected) in [
        (&[][..], "there is no instruction"),
        (
            &["--instruction", "wave", "--against", "backend=tt"],
            "no backend 'tt'; there are cpu, blackhole, sim",
        ),
        (&["--instruction", "wave", "-p", "rate_Hz:=2.0"], "'rate_Hz' does not exist"),
        (&["--instruction", "wave", "--remap", "/joint_states:=/robot/joints"], "/robot/joints"),
        (&["--instruction", "wave", "--node", "/left/policy"], "/left/joint_states"),
    ] {
        let output = replay(&rig, arguments);
        assert_eq!(status(&output), Some(2), "{arguments:?}: {}", error(&output));
        assert!(error(&output).contains(expected), "{arguments:?}: {}", error(&output));
    }
}
