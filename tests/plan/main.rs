//! `gr00t_blackhole plan`: what it says of the released networks, and how it ends.

use std::path::Path;
use std::process::{Command, Output};

use gr00t_blackhole::backend::blackhole::cost::{Assumptions, Rates};
use gr00t_blackhole::backend::blackhole::numerics::DtypePolicy;
use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::plan::{self, Documents, NOMINAL_DRAM, Planned, Report, Request, Wanted};
use serde_json::Value;

/// As on the command line, whose default is `mixed`.
fn request() -> Request {
    let assumptions = Assumptions { policy: DtypePolicy::Mixed, ..Assumptions::default() };
    Request { assumptions, ..Request::default() }
}

fn report(version: Version, request: &Request) -> Report {
    let planned = Planned::released(version).expect("a released network");
    plan::report(&planned, request).expect("a plan")
}

/// The sum at the rates alone is what the goals speak of: DRAM as the documents stream it, half of HiFi2.
#[test]
fn released_networks_reach_the_goals_at_the_rates_alone() {
    for version in Version::ALL {
        let report = report(version, &request());
        let goal = report.goal.as_ref().expect("the documents' layout has a goal");
        let [alone, total] = [report.total.rates_alone_s, report.total.total_s].map(|s| s * 1e3);
        println!(
            "{version}: {alone:.2} ms alone, {total:.2} in all, goal {:.2}",
            goal.goal_s * 1e3
        );
        assert!(goal.met_at_the_rates, "{version}: {alone} ms");
        assert!(alone <= Documents::of(version).goal_ms);
        assert_eq!(goal.met, total <= Documents::of(version).goal_ms, "{version}: {total} ms");
    }
    let history = report(Version::N17, &Request { history_cache: true, ..request() });
    let goal = history.goal.expect("it has a goal");
    assert_eq!(goal.goal_s, 20.6e-3);
    assert!(goal.met_at_the_rates, "{} s", history.total.rates_alone_s);
}

/// The documents' floor: every weight once per use, AdaLN and the cross blocks' keys and values in every step, at the
/// nominal rate. Ours has the encoders and decoders of the embodiment besides, and tiles that are not full.
#[test]
fn weights_agree_with_the_documents_floors() {
    const MORE_MS: f64 = 0.4;
    let milliseconds = |version: Version| {
        let assumptions = Assumptions { policy: DtypePolicy::Bf16, ..Assumptions::default() };
        let report = report(version, &Request { assumptions, ..Request::default() });
        let bytes = report.total.weight_bytes + report.total.hoisted_bytes;
        bytes as f64 / NOMINAL_DRAM * 1e3
    };
    // The floor of N1.6 holds the four self-attention blocks of an adapter, which N1.6 does not have.
    let adapter_ms = 4.0 * 12.0 * 2048.0 * 2048.0 * 2.0 / NOMINAL_DRAM * 1e3;
    for (version, missing_ms) in
        [(Version::N15, 0.0), (Version::N16, adapter_ms), (Version::N17, 0.0)]
    {
        let floor = Documents::of(version).floors_ms[0];
        let more = milliseconds(version) + missing_ms - floor;
        assert!((0.0..MORE_MS).contains(&more), "{version}: {more} ms above {floor} ms");
    }
}

#[test]
fn stages_are_as_the_documents_have_them() {
    for (version, names) in [
        (Version::N15, &["vision", "llm", "adapter", "denoise"][..]),
        (Version::N16, &["vision", "llm", "llm", "adapter", "denoise"]),
        (Version::N17, &["vision", "llm", "adapter", "denoise"]),
    ] {
        let report = report(version, &request());
        let found: Vec<&str> = report.stages.iter().map(|stage| stage.stage).collect();
        assert_eq!(found, names, "{version}");
        let denoise = report.stages.last().expect("stages");
        assert_eq!((denoise.programs, denoise.kept), (1, false));
        // Nothing is read twice from one bank and not at all from another.
        let [most, least] = [report.bank_bytes.iter().max(), report.bank_bytes.iter().min()];
        let ratio = *most.expect("banks") as f64 / *least.expect("banks") as f64;
        assert!(ratio < 1.001, "{version}: {ratio}");
        assert_eq!(report.largest.len(), 5);
        assert_eq!((report.cores.traced.len(), report.cores.persistent.len()), (110, 110));
        assert_eq!(
            report.total.documents_s.map(|s| (s * 1e4).round() / 10.0),
            match version {
                Version::N15 | Version::N16 => Some(37.9),
                Version::N17 => Some(52.6),
            }
        );
    }
}

/// A decoder layer: norm, three projections, queries, keys, attention, output, norm, gate and up, down.
#[test]
fn what_works_on_the_same_values_is_one_program() {
    let report = report(Version::N17, &request());
    let llm = report.stages.iter().find(|stage| stage.stage == "llm").expect("a language model");
    let embed_scatter_and_deepstack = 2 + 3;
    assert_eq!(llm.programs, 16 * 9 + embed_scatter_and_deepstack);
}

#[test]
fn an_instruction_counts_when_it_is_new() {
    let kept = report(Version::N16, &request());
    let new = report(Version::N16, &Request { new_instruction: true, ..request() });
    let of_instruction = &new.stages[1];
    assert!(kept.stages[1].kept && kept.stages[1].of_instruction && !of_instruction.kept);
    let more = new.total.total_s - kept.total.total_s;
    assert!((more - of_instruction.total_s).abs() < 1e-12, "{more}");
    assert!(kept.findings.iter().any(|finding| finding.contains("--new-instruction")));
    // N1.5 and N1.7 compute every token anew.
    assert!(report(Version::N17, &request()).stages.iter().all(|stage| !stage.of_instruction));
}

#[test]
fn kept_frames_leave_out_their_vision_work_only() {
    let whole = report(Version::N17, &request());
    let kept = report(Version::N17, &Request { history_cache: true, ..request() });
    let seconds =
        |report: &Report| report.stages.iter().map(|stage| stage.total_s).collect::<Vec<f64>>();
    let (whole_s, kept_s) = (seconds(&whole), seconds(&kept));
    assert!(kept_s[0] < 0.6 * whole_s[0], "{} of {}", kept_s[0], whole_s[0]);
    assert_eq!(whole_s[1..], kept_s[1..]);
    // Only new frames go to the card.
    let half = whole.host.to_card_bytes / 2;
    assert!(kept.host.to_card_bytes.abs_diff(half) < 20_000);
}

#[test]
fn longer_requests_take_longer() {
    let total =
        |wanted: Wanted| report(Version::N17, &Request { wanted, ..request() }).total.total_s;
    let usual = total(Wanted::default());
    assert!(total(Wanted { text_tokens: Some(200), ..Wanted::default() }) > usual);
    assert!(total(Wanted { images: Some(6), ..Wanted::default() }) > usual);
    assert!(total(Wanted { grid: Some([8, 14]), ..Wanted::default() }) < usual);
    // Another layout has no measured times beside it, and no goal.
    let wanted = Wanted { images: Some(6), ..Wanted::default() };
    let other = report(Version::N17, &Request { wanted, ..request() });
    assert!(other.goal.is_none() && other.total.documents_s.is_none());
}

#[test]
fn faster_rates_never_take_longer() {
    let total = |rate: &str| {
        let mut rates = Rates::default();
        rates.set(rate).expect("a rate");
        let assumptions =
            Assumptions { rates, policy: DtypePolicy::Mixed, ..Assumptions::default() };
        report(Version::N16, &Request { assumptions, ..Request::default() }).total.total_s
    };
    for [slow, usual, fast] in [
        ["dram_bfp8=207", "dram_bfp8=414", "dram_bfp8=512"],
        ["matrix_reached=0.25", "matrix_reached=0.5", "matrix_reached=1"],
        ["clock=1", "clock=1.35", "clock=2"],
        ["dispatch=5.5", "dispatch=1.9", "dispatch=0.1"],
    ] {
        assert!(total(slow) > total(usual) && total(usual) > total(fast), "{usual}");
    }
}

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
    for part in ["llm, instruction (kept)", "ff.net.2", "mixed *", "goal is 15.60 ms"] {
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
    assert_eq!(page.matches(" ms x ").count(), groups);
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
        (&["--version", "n16", "--rate", "clock=0"], "a number above 0"),
        (&["--version", "n16", "--images", "0"], "accepted: 1 to 32"),
        (&["--version", "n16", "--text-tokens", "5000"], "at most 4096"),
        (&["--version", "n16", "--grid", "16x28"], "18 x 18 patches, and no other grid"),
        (&["--version", "n17", "--grid", "16x27"], "multiples of 2"),
        (&["--version", "n17", "--grid", "0x28"], "multiples of 2"),
        (&["--version", "n17", "--grid", "4096x4096"], "a grid of 4096 x 4096"),
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
    assert!(text(&unwritable.stderr).contains("cannot write"), "{}", text(&unwritable.stderr));
}

fn path_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
