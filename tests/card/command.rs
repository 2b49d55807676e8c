//! The command `fidelity`, and the card's numbers in other commands, as a user calls them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::Version;
use serde_json::Value;
use tempfile::TempDir;

/// A tiny checkpoint, and room for files.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let place = Self { folder };
        synth::write(Version::N16, Size::Tiny, &place.path("tiny"), &|_, _| {}).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a command of the checkpoint, with paths inside of this place for the names that begin with `@`.
    fn run(&self, arguments: &[&str]) -> Output {
        let argument = |argument: &&str| match argument.strip_prefix('@') {
            Some(name) => self.path(name).into_os_string(),
            None => argument.into(),
        };
        Command::new(env!("CARGO_BIN_EXE_gr00t_blackhole"))
            .args(arguments.iter().map(argument))
            .args(["--embodiment", "gr1", "--no-cache", "--snapshot"])
            .arg(self.path("tiny"))
            .output()
            .unwrap()
    }

    /// What a command prints that has to work.
    fn print(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Exit status and what is said, in one line, of a command that does not work.
    fn fail(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.run(arguments);
        assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
        (output.status.code(), text(&output.stderr))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn every_value_is_compared_and_drawn() {
    let place = Place::new();
    let printed = place.print(&["fidelity", "--out", "@out"]);
    assert!(printed.starts_with("passes: ") && printed.contains("reach 0.999\n"), "{printed}");
    let report = json(&place.path("out/fidelity.json"));
    assert_eq!((&report["floor"], &report["below"]), (&0.999.into(), &Value::Array(vec![])));
    assert_eq!(report["version"], "n16");
    assert_eq!(report["made_up_observation"], true);
    for (key, expected) in
        [("dtype_policy", "mixed_dit"), ("math_fidelity", "hifi2"), ("accumulation", "f32")]
    {
        assert_eq!(report[key], expected);
    }
    let groups = report["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 5);
    for group in groups {
        let pcc = group["pcc"].as_f64().unwrap();
        assert!((0.999..1.0).contains(&pcc), "{group}");
        let name = group["name"].as_str().unwrap();
        let line = printed.lines().find(|line| line.contains(name));
        assert!(line.unwrap().contains(&format!("{pcc:.7}")), "{printed}");
    }
    let weights = &report["weights"];
    for format in ["bf16", "bfp8_b"] {
        assert!(weights["products"][format].as_u64().unwrap() > 0, "{weights}");
    }

    let taps = report["taps"].as_array().unwrap();
    let position = |name: &str| taps.iter().position(|tap| tap["name"] == name).unwrap();
    let order = ["vit.patch_embed", "llm.embeds", "vlln_out", "k0.dit_in", "actions.step4"];
    assert!(order.map(position).is_sorted());
    // The noise is given, and stays as it is.
    assert_eq!(taps[position("actions.step0")]["pcc"], 1.0);
    let stages: Vec<&str> = taps.iter().map(|tap| tap["stage"].as_str().unwrap()).collect();
    assert_eq!(stages[0], "vision");
    assert_eq!(stages[position("vlln_out")], "adapter");
    assert_eq!(*stages.last().unwrap(), "denoise");
    let loss = |tap: &Value| tap["pcc"].as_f64().map_or(0.0, |pcc| 1.0 - pcc);
    let worst = taps.iter().max_by(|a, b| loss(a).total_cmp(&loss(b))).unwrap();
    let first = printed.lines().skip_while(|line| !line.starts_with("worst")).nth(2).unwrap();
    assert!(first.trim_start().starts_with(worst["name"].as_str().unwrap()), "{printed}");

    let picture = image::open(place.path("out/fidelity.png")).unwrap();
    assert!(picture.width() > 1000 && picture.height() > 500);
}

#[test]
fn an_observation_a_seed_and_other_numbers_can_be_given() {
    let place = Place::new();
    place.print(&["golden", "record", "--out", "@golden"]);
    // The folder is used again.
    fs::create_dir(place.path("out")).unwrap();
    fs::write(place.path("out/fidelity.json"), "old").unwrap();
    let printed = place.print(&[
        "fidelity",
        "--observation",
        "@golden/observation.json",
        "--seed",
        "7",
        "--dtype-policy",
        "bf16",
        "--math-fidelity",
        "hifi4",
        "--accumulation",
        "bf16",
        "--json",
        "--out",
        "@out",
    ]);
    let report: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(report, json(&place.path("out/fidelity.json")));
    assert_eq!((&report["seed"], &report["made_up_observation"]), (&7.into(), &false.into()));
    assert!(report["card"].as_str().unwrap().contains("bf16, hifi4, bf16 sums"), "{printed}");
    assert_eq!(report["weights"]["products"]["bfp8_b"], Value::Null);

    // The golden of f32 holds for the card's numbers, but is not what they give.
    let checked = place.print(&["golden", "check", "--golden", "@golden", "--numerics", "card"]);
    let lines: Vec<&str> = checked.lines().collect();
    assert!(lines.len() == 7 && !checked.contains("max|d| 0.000e0"), "{checked}");
    assert_eq!(lines[0], "passes: correlation and concordance of every action group reach 0.999");
    assert!(lines[1].contains("card numerics: mixed_dit, hifi2, f32 sums), against cpu ("));
    let predict = ["predict", "--observation", "@golden/observation.json"];
    let answer = |more: &[&str]| -> Value {
        let printed = place.print(&[&predict, more].concat());
        serde_json::from_str(&printed).unwrap()
    };
    let backend = answer(&["--numerics", "card", "--threads", "1"])["backend"].take();
    assert_eq!(backend, "cpu (1 thread, card numerics: mixed_dit, hifi2, f32 sums)");
    assert_eq!(answer(&["--threads", "2"])["backend"], "cpu (2 threads, f32)");
    let actions = |more: &[&str]| answer(more)["actions"].take();
    let card = actions(&["--numerics", "card"]);
    assert_eq!(card, actions(&["--numerics", "card", "--threads", "1"]));
    assert_ne!(card, actions(&[]));
    assert_ne!(card, actions(&["--numerics", "card", "--dtype-policy", "mixed"]));
}

#[test]
fn numbers_that_keep_too_little_are_a_failure_that_names_them() {
    let place = Place::new();
    place.print(&["golden", "record", "--out", "@golden"]);
    let lofi = ["--math-fidelity", "lofi", "--floor", "0.9999999"];
    let output = place.run(&[&["fidelity", "--out", "@out"], &lofi[..]].concat());
    assert_eq!(output.status.code(), Some(1));
    let (printed, error) = (text(&output.stdout), text(&output.stderr));
    assert!(printed.starts_with("does not pass: ") && printed.contains("'left_arm'"), "{printed}");
    let numbers = "error: the card's numbers (mixed_dit, lofi, sums in f32)";
    assert!(error.starts_with(numbers) && error.contains("0.9999999: left_arm: PCC"), "{error}");
    // What was found is there all the same.
    let below = json(&place.path("out/fidelity.json"))["below"].take();
    assert!(below.as_array().unwrap().contains(&"left_arm".into()), "{below}");
    assert!(place.path("out/fidelity.png").is_file());

    let check = ["golden", "check", "--golden", "@golden", "--numerics", "card"];
    let (status, error) = place.fail(&[&check, &lofi[..]].concat());
    assert_eq!(status, Some(1));
    for part in ["lofi, f32 sums)", "the golden is of cpu (", ", f32); see first", "lower floor"] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
    assert!(!error.contains("record another"), "{error}");
}

#[test]
fn what_has_no_chunk_says_with_which_numbers() {
    let place = Place::new();
    place.print(&["golden", "record", "--out", "@golden"]);
    let shards = fs::read_dir(place.path("tiny")).unwrap().map(|entry| entry.unwrap().path());
    let is_shard = |path: &PathBuf| path.extension().is_some_and(|end| end == "safetensors");
    let last = shards.filter(is_shard).max().unwrap();
    let mut bytes = fs::read(&last).unwrap();
    let half = bytes.len() / 2;
    // A bf16 of all ones is no number.
    bytes[half..].fill(0xff);
    fs::write(last, bytes).unwrap();
    let refused = |arguments: &[&str], said: &str| {
        let (status, error) = place.fail(arguments);
        assert_eq!(status, Some(1), "{error}");
        assert!(error.contains(said), "{error}");
    };
    let of_f32 = "in f32 there is no chunk: chunk refused: ";
    refused(&["fidelity"], of_f32);
    refused(&["fidelity"], "; the first intermediate value that is not finite is ");
    let predict = ["predict", "--observation", "@golden/observation.json", "--numerics", "card"];
    let of_card = "card numerics: mixed_dit, hifi2, f32 sums): chunk refused: ";
    refused(&predict, of_card);
}

#[test]
fn wrong_usage_has_a_status_of_its_own() {
    let place = Place::new();
    for (arguments, said) in [
        (&["fidelity", "--numerics", "card"][..], "--numerics"),
        (&["fidelity", "--dtype-policy", "bfp4"], "mixed_dit"),
        (&["fidelity", "--seed", "x"], "--seed"),
        (&["fidelity", "--floor", "1.5"], "from 0 to 1"),
        (&["predict", "--observation", "@x", "--dtype-policy", "mixed"], "add --numerics card"),
        (&["golden", "check", "--math-fidelity", "lofi"], "add --numerics card"),
        (&["golden", "record", "--numerics", "card"], "--numerics"),
        (&["golden", "check", "--times", "0"], "--times"),
        (&["predict", "--observation", "@x", "--numerics", "bf16"], "card"),
    ] {
        let (status, error) = place.fail(arguments);
        assert_eq!(status, Some(2), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}

#[test]
fn what_cannot_be_read_or_written_is_one_sentence() {
    let place = Place::new();
    let one_line = |arguments: &[&str], said: &str| {
        let (status, error) = place.fail(arguments);
        assert_eq!(status, Some(1), "{error}");
        assert!(error.contains(said) && error.lines().count() == 1, "{error}");
    };
    one_line(&["fidelity", "--observation", "@nothing.json"], "nothing.json");
    fs::write(place.path("file"), "").unwrap();
    one_line(
        &["fidelity", "--out", "@file"],
        "file: this is no folder; name another folder with --out",
    );
    fs::remove_file(place.path("tiny/statistics.json")).unwrap();
    one_line(&["fidelity", "--out", "@new"], "statistics.json");
    assert!(!place.path("new").exists());
}
