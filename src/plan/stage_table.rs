//! The table of stages.

use super::findings::{megabytes, ms};
use super::report::{Report, StageReport};

/// Columns of every table.
const STAGE_HEADS: [&str; 10] = [
    "stage",
    "operations",
    "programs",
    "weights read [MB]",
    "memory [ms]",
    "noc [ms]",
    "arithmetic [ms]",
    "rates alone [ms]",
    "total [ms]",
    "bound",
];

/// More columns, where something was measured.
const MEASURED_HEADS: [&str; 2] = ["documents [ms]", "times as fast"];

/// How its columns belong together.
pub const STAGE_NOTE: &str = "memory is DRAM, noc the network on chip; both work beside arithmetic, so that total is the largest of the three, \
     operation by operation, and the start of each program.\nrates alone: the larger of DRAM and matrix engine, with products spread evenly over all \
     cores.";

fn is_measured(report: &Report) -> bool {
    report.stages.iter().any(|stage| stage.documents_s.is_some())
}

/// Columns of the table.
pub fn stage_heads(report: &Report) -> Vec<&'static str> {
    let measured: &[&str] = if is_measured(report) { &MEASURED_HEADS } else { &[] };
    [&STAGE_HEADS, measured].concat()
}

/// One row for each stage, one for both parts of a stage that counts in two, and the sum.
pub fn stage_rows(report: &Report) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (at, stage) in report.stages.iter().enumerate() {
        let is_part = |of: &&StageReport| of.stage == stage.stage && !of.kept;
        let parts: Vec<&StageReport> = report.stages.iter().filter(is_part).collect();
        let is_last = report.stages[at + 1..].iter().all(|later| later.stage != stage.stage);
        // What was measured is the whole stage.
        let documents_s = stage.documents_s.filter(|_| parts.len() == 1);
        rows.push(row(stage_name(stage), &[stage], stage.bound.name(), documents_s));
        if is_last && parts.len() > 1 {
            rows.push(row(format!("{}, both parts", stage.stage), &parts, "", stage.documents_s));
        }
    }
    let counted: Vec<&StageReport> = report.stages.iter().filter(|stage| !stage.kept).collect();
    rows.push(row("sum".to_owned(), &counted, "", report.total.documents_s));
    if !is_measured(report) {
        rows.iter_mut().for_each(|row| row.truncate(STAGE_HEADS.len()));
    }
    rows
}

/// Sums over stages, beside what they were measured to take together; times that do not count stand in parentheses.
fn row(
    name: String,
    stages: &[&StageReport],
    bound: &str,
    documents_s: Option<f64>,
) -> Vec<String> {
    let seconds = |of: fn(&StageReport) -> f64| stages.iter().map(|stage| of(stage)).sum::<f64>();
    let is_kept = stages.iter().all(|stage| stage.kept);
    let time = |seconds: f64| if is_kept { format!("({})", ms(seconds)) } else { ms(seconds) };
    let total_s = seconds(|stage| stage.total_s);
    vec![
        name,
        stages.iter().map(|stage| stage.operations.len()).sum::<usize>().to_string(),
        stages.iter().map(|stage| stage.programs).sum::<usize>().to_string(),
        megabytes(stages.iter().map(|stage| stage.weight_bytes).sum()),
        ms(seconds(|stage| stage.memory_s)),
        ms(seconds(|stage| stage.noc_s)),
        ms(seconds(|stage| stage.arithmetic_s)),
        time(seconds(|stage| stage.rates_alone_s)),
        time(total_s),
        bound.to_owned(),
        documents_s.map_or(String::new(), ms),
        ratio(documents_s, total_s),
    ]
}

/// Such as `llm, instruction (kept)`.
pub fn stage_name(stage: &StageReport) -> String {
    let part = match (stage.of_instruction, stage.kept) {
        (false, _) => "",
        (true, false) => ", instruction",
        (true, true) => ", instruction (kept)",
    };
    format!("{}{part}", stage.stage)
}

fn ratio(documents_s: Option<f64>, total_s: f64) -> String {
    match documents_s {
        Some(documents_s) if total_s > 0.0 => format!("{:.2}", documents_s / total_s),
        _ => String::new(),
    }
}
