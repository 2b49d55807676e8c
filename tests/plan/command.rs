//! The command: its files, its tables, and what it refuses.

use std::path::Path;
use std::process::{Command, Output};

use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::plan;
use serde_json::Value;

fn command(arguments: &[&str]) -> Output {
    let program =
        Command::new(env!("CARGO_BIN_EXE_gr00t_blackhole")).arg("plan").args(arguments).output();
    program.expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list"))
}

#[test]
fn its_files_add_up() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("plans/n16");
    let path = out.to_str().expect("UTF-8");
    let output = command(&["--version", "n16", "--out", path]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for part in ["llm, instruction (kept)", "ff.net.2", "mixed *", "goal is 15.60 ms", "Written: "]
    {
        assert!(table.contains(part), "{part}: {table}");
    }

    let json = std::fs::read(out.join(plan::REPORT)).expect("plan.json");
    let report: Value = serde_json::from_slice(&json).expect("JSON");
    let sum = |values: Vec<f64>, whole: &Value| {
        let sum: f64 = values.iter().sum();
        assert!((sum / number(whole) - 1.0).abs() < 1e-9, "{sum} instead of {whole}");
    };
    let stages = list(&report["stages"]);
    for stage in stages {
        let ops = list(&stage["operations"]);
        let of = |key: &'static str| ops.iter().map(|op| number(&op[key])).collect::<Vec<f64>>();
        for key in ["memory_s", "noc_s", "arithmetic_s", "rates_alone_s", "weight_bytes"] {
            sum(of(key), &stage[key]);
        }
        let longest = |op: &Value| {
            let parts = ["memory_s", "noc_s", "arithmetic_s"].map(|key| number(&op[key]));
            parts.into_iter().fold(0.0, f64::max)
        };
        let mut total: Vec<f64> = ops.iter().map(longest).collect();
        total.push(number(&stage["dispatch_s"]));
        sum(total, &stage["total_s"]);
        let groups = list(&stage["groups"]);
        let mut of_groups: Vec<f64> =
            groups.iter().map(|group| number(&group["total_s"])).collect();
        of_groups.push(number(&stage["dispatch_s"]));
        sum(of_groups, &stage["total_s"]);
    }
    let counted: Vec<&Value> = stages.iter().filter(|stage| stage["kept"] == false).collect();
    assert_eq!((stages.len(), counted.len()), (5, 4));
    for key in ["total_s", "rates_alone_s", "weight_bytes"] {
        sum(counted.iter().map(|stage| number(&stage[key])).collect(), &report["total"][key]);
    }
    for bank in 0..8 {
        let bytes = counted.iter().map(|stage| number(&stage["bank_bytes"][bank])).collect();
        sum(bytes, &report["bank_bytes"][bank]);
    }

    let page = std::fs::read_to_string(out.join(plan::PAGE)).expect("plan.html");
    for outside in ["<script", "src=", "href=", "http", "NaN", "inf\""] {
        assert!(!page.contains(outside), "{outside}");
    }
    // Two maps of 110 cores, eight banks, and a bar for every kind of operation.
    let groups: usize = stages.iter().map(|stage| list(&stage["groups"]).len()).sum();
    assert_eq!(
        page.matches(" times)</text>").count() + page.matches(" (once)</text>").count(),
        groups
    );
    assert_eq!(page.matches("<rect class=\"bank\"").count(), 8);
    assert!(page.matches("<title>(").count() == 220, "{}", page.matches("<title>(").count());

    // Printed, it is the same, whatever is written.
    let printed = command(&["--version", "n16", "--json"]);
    assert_eq!(text(&printed.stdout), text(&json));
}

#[test]
fn a_snapshot_is_planned_by_its_own_shapes() {
    let folder = tempfile::tempdir().expect("a folder");
    let tiny = folder.path().join("tiny");
    for version in Version::ALL {
        synth::write(version, Size::Tiny, &tiny, &|_, _| {}).expect("a snapshot");
        let path = tiny.to_str().expect("UTF-8");
        let output = command(&["--snapshot", path, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["version"], version.name());
        // Nobody has measured it, and there is no goal for it.
        assert!(report["goal"].is_null() && report["total"]["documents_s"].is_null());
        let bytes = number(&report["total"]["weight_bytes"]);
        assert!(bytes > 0.0 && bytes < 100e6, "{bytes}");
        let table = text(&command(&["--snapshot", path]).stdout);
        for part in ["snapshot /", "No measurement of this request", "fit on the card: they take "]
        {
            assert!(table.contains(part), "{part}: {table}");
        }
        for part in ["documents [ms]", "goal at", " 0.00 GB", " 0.00 us"] {
            assert!(!table.contains(part), "{part}: {table}");
        }
        std::fs::remove_dir_all(&tiny).expect("it is ours");
    }
}

#[test]
fn what_cannot_be_planned_is_told_with_what_can() {
    for (arguments, part) in [
        (&[][..], "--version"),
        (&["--version", "n18"], "'n18' is not one of n15, n16, n17"),
        (&["--version", "n16", "--snapshot", "x"], "cannot be used with"),
        (&["--version", "n16", "--rate", "speed=1"], "accepted: dram_bf16, "),
        (&["--version", "n16", "--rate", "clock"], "not NAME=VALUE"),
        (&["--version", "n16", "--rate", "clock=0"], "accepted: 1e-6 to 1e12"),
        (&["--version", "n16", "--rate", "clock=1", "--rate", "clock=2"], "given twice"),
        (&["--version", "n16", "--images", "0"], "accepted: 1 to 32"),
        (&["--version", "n16", "--text-tokens", "5000"], "accepted: 1 to 4096"),
        (&["--version", "n16", "--text-tokens", "0"], "accepted: 1 to 4096"),
        (&["--version", "n17", "--text-tokens", "4000"], "at most 4096"),
        (&["--version", "n16", "--grid", "16x28"], "18 x 18 patches, and no other grid"),
        (&["--version", "n17", "--grid", "16x27"], "multiples of 2"),
        (&["--version", "n17", "--grid", "0x28"], "multiples of 2"),
        (&["--version", "n17", "--grid", "4096x4096"], "multiples of 2 up to 256"),
        (&["--version", "n17", "--grid", "16"], "such as 16x28"),
        (&["--version", "n16", "--history-cache"], "accepted: n17"),
        (&["--version", "n17", "--history-cache", "--images", "3"], "an even number"),
        (&["--version", "n16", "--dtype-policy", "fp8"], "bf16, mixed, mixed_dit"),
        (&["--version", "n16", "--math-fidelity", "hifi3"], "lofi, hifi2, hifi4"),
        (&["--version", "n16", "--core-layout", "ring"], "two-columns, last-column"),
    ] {
        let output = command(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
        assert!(error.contains(part), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    // No wrong usage: what is there cannot be read, or written.
    let missing = command(&["--snapshot", "/nowhere/at/all"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("/nowhere/at/all"), "{}", text(&missing.stderr));
    let file = tempfile::NamedTempFile::new().expect("a file");
    let unwritable = command(&["--version", "n15", "--out", &path_of(file.path())]);
    assert_eq!(unwritable.status.code(), Some(1));
    let error = text(&unwritable.stderr);
    assert!(error.contains("is not a folder; name another one with --out"), "{error}");
}

fn path_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// What was measured stands once, beside both parts together.
#[test]
fn both_parts_of_a_stage_are_compared_with_what_was_measured() {
    let table = text(&command(&["--version", "n16", "--new-instruction"]).stdout);
    let row = |name: &str| {
        let row = table.lines().find(|line| line.starts_with(name));
        row.unwrap_or_else(|| panic!("{name}: {table}"))
    };
    assert!(row("llm, both parts").contains("9.60"));
    assert!(!row("llm  ").contains("9.60") && !row("llm, instruction ").contains("9.60"));
    let kept = text(&command(&["--version", "n16"]).stdout);
    assert!(!kept.contains("both parts"), "{kept}");
}

#[test]
fn another_rate_or_layout_is_told_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = path_of(folder.path());
    let output = command(&[
        "--version",
        "n15",
        "--rate",
        "matrix_reached=0.48",
        "--core-layout",
        "last-column",
        "--out",
        &out,
    ]);
    let told = "Changed rates: matrix_reached 0.48 of 1 (default 0.5).";
    let head: String = text(&output.stdout).lines().take(3).collect();
    assert!(head.contains(told) && head.contains("cores last-column"), "{head}");
    let page = std::fs::read_to_string(folder.path().join(plan::PAGE)).expect("plan.html");
    assert!(page.contains(told) && page.contains("CHANGED from 0.5"), "{page}");
    let json = std::fs::read(folder.path().join(plan::REPORT)).expect("plan.json");
    let report: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(report["core_layout"], "last-column");
    assert_eq!(report["changed_rates"][0]["name"], "matrix_reached");
}
