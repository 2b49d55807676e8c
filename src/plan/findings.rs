//! What a plan says, in sentences.

use super::documents::NOMINAL_DRAM;
use super::report::Report;
use crate::backend::blackhole::cost::{Group, Plan, StageCost};

/// Operations that are blamed, at most.
const BLAMED: usize = 3;
/// Below so many seconds an operation is not worth a word.
const WORTH_A_WORD: f64 = 50e-6;

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

fn goal(report: &Report) -> Option<String> {
    let goal = report.goal.as_ref()?;
    let total = &report.total;
    let verdict = |met: bool| if met { "kept" } else { "BROKEN" };
    Some(format!(
        "Goal of {} ms at the rates of DRAM and matrix engine alone: {}, with {} ms. With all else that is counted: {}, with {} ms.",
        ms(goal.goal_s),
        verdict(goal.met_at_the_rates),
        ms(total.rates_alone_s),
        verdict(goal.met),
        ms(total.total_s),
    ))
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
    let bytes = report.total.weight_bytes;
    format!(
        "Weights of {:.2} GB are read, which takes {} ms at the nominal {:.0} GB/s.",
        bytes as f64 / 1e9,
        ms(bytes as f64 / NOMINAL_DRAM),
        NOMINAL_DRAM / 1e9
    )
}

fn host(report: &Report) -> String {
    let host = &report.host;
    format!(
        "Beside the stages: {} MB to the card in {} ms, {} MB back in {} ms.",
        megabytes(host.to_card_bytes as u64),
        ms(host.to_card_s),
        megabytes(host.to_host_bytes as u64),
        ms(host.to_host_s)
    )
}
