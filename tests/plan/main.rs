//! `gr00t_blackhole plan`: what it says of the released networks, and how it ends.

mod command;

use gr00t_blackhole::backend::blackhole::cost::{Assumptions, Rates};
use gr00t_blackhole::backend::blackhole::numerics::DtypePolicy;
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::plan::{self, Documents, NOMINAL_DRAM, Planned, Report, Request, Wanted};

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
    // N1.5 and N1.7 compute every token anew, and say so to who asks for it.
    let all = report(Version::N17, &Request { new_instruction: true, ..request() });
    assert!(all.stages.iter().all(|stage| !stage.of_instruction));
    assert!(all.findings.iter().any(|line| line.starts_with("--new-instruction changes nothing")));
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
    // The documents measured all pictures; what they measured of the other stages is comparable.
    let measured: Vec<bool> = kept.stages.iter().map(|stage| stage.documents_s.is_some()).collect();
    assert_eq!(measured, [false, true, true, true]);
    assert!(kept.total.documents_s.is_none() && whole.total.documents_s.is_some());
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
    let reason = other.findings.iter().find(|finding| finding.starts_with("No measurement"));
    assert!(reason.is_some_and(|reason| reason.contains("4 pictures of 16 x 28 patches")));
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

/// bf16 takes what the checkpoint's values take, and what fills the last tiles.
#[test]
fn what_a_network_takes_of_the_card_is_what_its_values_take() {
    for version in Version::ALL {
        let planned = Planned::released(version).expect("a released network");
        let (_, layout) = planned.layout(Wanted::default()).expect("the documents' layout");
        let program = planned.request(layout).expect("a program");
        let values: usize = program.weights.iter().map(|spec| spec.rows * spec.cols).sum();
        let report = plan::report(&planned, &request()).expect("a plan");
        let bytes = |name: &str| {
            let policy = report.policies.iter().find(|policy| policy.dtype_policy == name);
            policy.expect("every policy").card_bytes
        };
        let above = bytes("bf16") as f64 / (2.0 * values as f64);
        assert!((1.0..1.01).contains(&above), "{version}: {above}");
        assert!(bytes("mixed") < bytes("mixed_dit") && bytes("mixed_dit") < bytes("bf16"));
        assert_eq!(report.total.card_bytes, bytes("mixed"));
    }
}

/// Keys and values of a long sequence do not fit beside the rest.
#[test]
fn a_program_that_no_card_could_run_is_not_drawn() {
    let wanted = Wanted { text_tokens: Some(3700), ..Wanted::default() };
    let report = report(Version::N16, &Request { wanted, ..request() });
    assert!(report.persistent.is_none() && report.cores.persistent.is_empty());
    let [notice] = &report.notices[..] else { panic!("{:?}", report.notices) };
    assert!(notice.starts_with("NOT POSSIBLE"), "{notice}");
    assert!(notice.contains("its largest region is '"), "{notice}");
}
