//! What a plan says, in sentences.

use super::documents::{MEASURED_POLICY, NOMINAL_DRAM};
use super::held::CARD_BYTES;
use super::report::{Report, StageReport};
use super::stage_table::stage_name;
use crate::backend::blackhole::cost::{BANKS, ChangedRate, Group, Plan};
use crate::backend::blackhole::lower::LowerError;
use crate::backend::blackhole::numerics::MathFidelity;

/// Operations that are blamed, at most.
const BLAMED: usize = 3;
/// Below so many seconds an operation is not worth a word.
const WORTH_A_WORD: f64 = 50e-6;

/// How the finding about a goal begins.
pub const KEPT: &str = "Kept";
pub const BROKEN: &str = "BROKEN";
/// How the finding begins that all that is counted takes longer than the goal, which does not speak of it.
pub const ABOVE: &str = "Above the goal";

/// Milliseconds with two digits.
pub fn ms(seconds: f64) -> String {
    format!("{:.2}", seconds * 1e3)
}

/// Bytes in the unit that suits them.
fn size(bytes: u64) -> String {
    let bytes = bytes as f64;
    if bytes >= 1e9 {
        format!("{:.2} GB", bytes / 1e9)
    } else if bytes >= 1e6 {
        format!("{:.2} MB", bytes / 1e6)
    } else {
        format!("{:.1} kB", bytes / 1e3)
    }
}

/// Megabytes.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

/// What has to be known before the numbers are read.
pub fn notices(report: &Report, no_program: Option<&LowerError>) -> Vec<String> {
    let rate = |rate: &ChangedRate| {
        format!("{} {} {} (default {})", rate.name, rate.value, rate.unit, rate.default)
    };
    let changed: Vec<String> = report.changed_rates.iter().map(rate).collect();
    let mut notices = Vec::new();
    if !changed.is_empty() {
        notices.push(format!("Changed rates: {}.", changed.join(", ")));
    }
    if let Some(error) = no_program {
        notices.push(format!(
            "NOT POSSIBLE: the Euler steps as one program: {error}. Their time and the sum are those of a program that cannot run."
        ));
    }
    notices
}

/// All of them; `served` says what the documents served.
pub fn findings(report: &Report, plan: &Plan, served: &str) -> Vec<String> {
    let mut findings = goal(report);
    findings.extend(unmeasured(report, served));
    findings.extend(other_policy(report));
    findings.push(composition(report, plan));
    findings.extend(blame(plan));
    findings.push(bounds(report));
    findings.extend(of_instruction(report));
    findings.extend(history(report));
    findings.push(banks(report));
    findings.push(floor(report));
    findings.push(room(report));
    findings.push(host(report));
    findings
}

/// The goal by what it speaks of, and what everything that is counted takes beside it.
fn goal(report: &Report) -> Vec<String> {
    let Some(goal) = &report.goal else { return Vec::new() };
    let total = &report.total;
    let verdict = if goal.met_at_the_rates { KEPT } else { BROKEN };
    let beside = if goal.met { "Below the goal" } else { ABOVE };
    let mut lines = vec![
        format!(
            "{verdict}: the goal is {} ms at the rates of DRAM and matrix engine alone; these take {} ms.",
            ms(goal.goal_s),
            ms(total.rates_alone_s)
        ),
        format!(
            "{beside}: {} ms with all that is counted, of which the goal does not speak.",
            ms(total.total_s)
        ),
    ];
    if !report.changed_rates.is_empty() || report.math_fidelity != MathFidelity::HiFi2.name() {
        lines.push(
            "The goal was set for the default rates and HiFi2; this plan has others.".to_owned(),
        );
    }
    lines
}

/// Why nothing, or not everything, stands beside what was measured.
fn unmeasured(report: &Report, served: &str) -> Option<String> {
    if report.stages.iter().all(|stage| stage.documents_s.is_none()) {
        return Some(format!(
            "No measurement of this request and no goal for it: the documents served {served}."
        ));
    }
    report.layout.history_cache.then(|| {
        format!(
            "No measurement of vision and of the sum: the documents saw all {} pictures in every request.",
            report.layout.images
        )
    })
}

/// That what was measured had other weights than the plan.
fn other_policy(report: &Report) -> Option<String> {
    report.total.documents_s?;
    let theirs = report.policies.iter().find(|of| of.dtype_policy == MEASURED_POLICY.name())?;
    (theirs.dtype_policy != report.dtype_policy).then(|| {
        format!(
            "The documents measured with {} weights, with which this plan would take {} ms.",
            theirs.dtype_policy,
            ms(theirs.total_s)
        )
    })
}

fn composition(report: &Report, plan: &Plan) -> String {
    let total = &report.total;
    let programs: usize = plan.counted().map(|stage| stage.programs).sum();
    format!(
        "{} ms = {} at the rates alone + {} since tiles and cores are whole + {} of vector unit and network that nothing hides + {} for the start of {programs} programs.",
        ms(total.total_s),
        ms(total.rates_alone_s),
        ms(total.whole_tiles_s - total.rates_alone_s),
        ms(total.operations_s - total.whole_tiles_s),
        ms(total.total_s - total.operations_s),
    )
}

/// What takes most above the rates alone.
fn blame(plan: &Plan) -> Option<String> {
    let above = |group: &Group| group.total_s - group.rates_alone_s;
    let mut groups = plan.groups();
    groups.retain(|group| above(group) >= WORTH_A_WORD);
    groups.sort_by(|a, b| above(b).total_cmp(&above(a)));
    groups.truncate(BLAMED);
    let blamed: Vec<String> = groups
        .iter()
        .map(|group| format!("{} {} ({} ms)", group.stage, group.label, ms(above(group))))
        .collect();
    let is_any = !blamed.is_empty();
    is_any.then(|| format!("Most above the rates alone: {}.", blamed.join(", ")))
}

fn bounds(report: &Report) -> String {
    let counted = report.stages.iter().filter(|stage| !stage.kept);
    let bounds: Vec<String> =
        counted.map(|stage| format!("{} by {}", stage_name(stage), stage.bound.name())).collect();
    format!("Stages are bound: {}.", bounds.join("; "))
}

/// What a new instruction costs, if anything.
fn of_instruction(report: &Report) -> Vec<String> {
    let of_instruction = report.stages.iter().filter(|stage| stage.of_instruction);
    let mut lines: Vec<String> = of_instruction.map(instruction_part).collect();
    if lines.is_empty() && report.layout.new_instruction {
        lines.push(format!(
            "--new-instruction changes nothing: in {}, no work depends on the instruction alone, and every request does all of it.",
            report.version
        ));
    }
    lines
}

fn instruction_part(stage: &StageReport) -> String {
    let (name, time) = (stage.stage, ms(stage.total_s));
    if stage.kept {
        format!(
            "The part of {name} that sees nothing but the instruction ({time} ms) is kept from the request before and counts nothing; \
             --new-instruction counts it."
        )
    } else {
        format!(
            "The part of {name} that sees nothing but the instruction ({time} ms) counts; while the instruction stays the same, it \
             is kept."
        )
    }
}

fn history(report: &Report) -> Option<String> {
    let layout = &report.layout;
    layout.history_cache.then(|| {
        let new = layout.images / 2;
        format!(
            "Vision sees the {new} new pictures of {}; the tokens of the others are kept.",
            layout.images
        )
    })
}

fn banks(report: &Report) -> String {
    let banks = report.bank_bytes;
    let most = banks.into_iter().max().unwrap_or_default();
    let mean = banks.iter().sum::<u64>() as f64 / banks.len() as f64;
    let above = if mean > 0.0 { (most as f64 / mean - 1.0) * 100.0 } else { 0.0 };
    format!(
        "Each of the {} banks moves {:.1} MB in a request; the fullest one {above:.2} % more.",
        banks.len(),
        mean / 1e6
    )
}

fn floor(report: &Report) -> String {
    let total = &report.total;
    let nominal = |bytes: u64| ms(bytes as f64 / NOMINAL_DRAM);
    let every_step = total.weight_bytes + total.hoisted_bytes;
    format!(
        "Weights of {} are read, {} ms at the nominal {:.0} GB/s. With AdaLN and the cross blocks' keys and values read in \
         every Euler step they would be {}, {} ms.",
        size(total.weight_bytes),
        nominal(total.weight_bytes),
        NOMINAL_DRAM / 1e9,
        size(every_step),
        nominal(every_step)
    )
}

/// Whether the network has room on a card.
fn room(report: &Report) -> String {
    let held = report.total.card_bytes;
    let verdict = if held <= CARD_BYTES { "fit" } else { "do NOT fit" };
    format!(
        "Weights and tables {verdict} on the card: they take {} of the {} of its {BANKS} banks.",
        size(held),
        size(CARD_BYTES)
    )
}

fn host(report: &Report) -> String {
    let host = &report.host;
    let kilobytes = |bytes: usize| bytes.div_ceil(1000);
    format!(
        "In none of these times: {} kB to the card in {} ms, {} kB back in {:.2} us.",
        kilobytes(host.to_card_bytes),
        ms(host.to_card_s),
        kilobytes(host.to_host_bytes),
        host.to_host_s * 1e6
    )
}
