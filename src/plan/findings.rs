//! What a plan says, in sentences.

use super::documents::NOMINAL_DRAM;
use super::report::Report;
use crate::backend::blackhole::cost::{Group, Plan, StageCost};

/// Operations that are blamed, at most.
const BLAMED: usize = 3;
/// Below so many seconds an operation is not worth a word.
const WORTH_A_WORD: f64 = 50e-6;

/// How the finding about a goal begins.
pub const KEPT: &str = "Kept";
pub const BROKEN: &str = "BROKEN";

/// Milliseconds with two digits.
pub fn ms(seconds: f64) -> String {
    format!("{:.2}", seconds * 1e3)
}

/// Megabytes.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

pub fn findings(report: &Report, plan: &Plan) -> Vec<String> {
    let mut findings = Vec::new();
    findings.extend(goal(report));
    findings.push(composition(report, plan));
    findings.extend(blame(plan));
    findings.push(bounds(plan));
    findings.extend(plan.stages.iter().filter_map(of_instruction));
    findings.extend(history(report));
    findings.push(banks(report));
    findings.push(floor(report));
    findings.push(host(report));
    findings
}

/// The goal by what it speaks of, and by everything.
fn goal(report: &Report) -> Vec<String> {
    let Some(goal) = &report.goal else { return Vec::new() };
    let total = &report.total;
    let line = |met: bool, seconds: f64, what: &str| {
        let verdict = if met { KEPT } else { BROKEN };
        format!("{verdict}: {} ms {what}; the goal is {} ms.", ms(seconds), ms(goal.goal_s))
    };
    vec![
        line(
            goal.met_at_the_rates,
            total.rates_alone_s,
            "at the rates of DRAM and matrix engine alone",
        ),
        line(goal.met, total.total_s, "with all that is counted"),
    ]
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

fn bounds(plan: &Plan) -> String {
    let bounds: Vec<String> = plan
        .counted()
        .map(|stage| format!("{} by {}", stage.kind.name(), stage.bound().name()))
        .collect();
    format!("Stages are bound: {}.", bounds.join(", "))
}

fn of_instruction(stage: &StageCost) -> Option<String> {
    let time = ms(stage.total_s());
    match (stage.of_instruction, stage.kept) {
        (false, _) => None,
        (true, true) => Some(format!(
            "The part of {} that sees nothing but the instruction ({time} ms) is kept from the request before and counts nothing; \
             --new-instruction counts it.",
            stage.kind.name()
        )),
        (true, false) => Some(format!(
            "The part of {} that sees nothing but the instruction ({time} ms) counts; while the instruction stays the same, it \
             is kept.",
            stage.kind.name()
        )),
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
        "Each of the {} banks moves {:.1} MB; the fullest one {above:.2} % more.",
        banks.len(),
        mean / 1e6
    )
}

fn floor(report: &Report) -> String {
    let total = &report.total;
    let nominal = |bytes: u64| ms(bytes as f64 / NOMINAL_DRAM);
    let every_step = total.weight_bytes + total.hoisted_bytes;
    format!(
        "Weights of {:.2} GB are read, {} ms at the nominal {:.0} GB/s. With AdaLN and the cross blocks' keys and values read in \
         every Euler step they would be {:.2} GB, {} ms.",
        total.weight_bytes as f64 / 1e9,
        nominal(total.weight_bytes),
        NOMINAL_DRAM / 1e9,
        every_step as f64 / 1e9,
        nominal(every_step)
    )
}

fn host(report: &Report) -> String {
    let host = &report.host;
    let kilobytes = |bytes: usize| bytes.div_ceil(1000);
    format!(
        "Beside the stages: {} kB to the card in {} ms, {} kB back in {:.0} us.",
        kilobytes(host.to_card_bytes),
        ms(host.to_card_s),
        kilobytes(host.to_host_bytes),
        host.to_host_s * 1e6
    )
}
