//! A plan as text for a terminal.

use super::findings::{megabytes, ms};
use super::persistent::{self, ARENA_HEADS, ROLE_HEADS, arena_rows, role_rows};
use super::report::{LayoutFacts, Report, StageReport};

/// Columns of the table of stages.
pub const STAGE_HEADS: [&str; 11] = [
    "stage",
    "operations",
    "programs",
    "weights [MB]",
    "memory [ms]",
    "noc [ms]",
    "arithmetic [ms]",
    "total [ms]",
    "bound",
    "documents [ms]",
    "times as fast",
];

/// Columns of the table of policies.
pub const POLICY_HEADS: [&str; 5] =
    ["weights", "weights [MB]", "rates alone [ms]", "total [ms]", "goal at the rates"];

/// Columns of the table of the most expensive operations.
pub const GROUP_HEADS: [&str; 5] = ["stage", "operation", "count", "total [ms]", "bound"];

/// Network and layout, in a line.
pub fn about(report: &Report) -> String {
    let LayoutFacts { images, grid, tokens, text_tokens, .. } = report.layout;
    let pictures = if images == 1 { "picture" } else { "pictures" };
    format!(
        "{}: {images} {pictures} of {} x {} patches, {tokens} tokens, {text_tokens} of them the instruction; weights {}, products {}",
        report.network, grid[0], grid[1], report.dtype_policy, report.math_fidelity
    )
}

/// Said of every plan.
pub const NO_MEASUREMENT: &str =
    "A plan from shapes and documented rates: nothing of it has run on a card.";

/// The whole text.
pub fn text(report: &Report) -> String {
    let mut text = format!("GR00T {}, {}\n{NO_MEASUREMENT}\n\n", report.version, about(report));
    text += &aligned(&STAGE_HEADS, &stage_rows(report));
    text += "\nMost expensive operations\n";
    text += &aligned(&GROUP_HEADS, &group_rows(report));
    text += "\nAll weights as each policy has them\n";
    text += &aligned(&POLICY_HEADS, &policy_rows(report));
    if let Some(summary) = &report.persistent {
        text += "\nEuler steps as one program\n";
        text += &aligned(&ROLE_HEADS, &role_rows(summary));
        text.push('\n');
        text += &aligned(&ARENA_HEADS, &arena_rows(summary));
        text += &persistent::about(summary);
        text.push('\n');
    }
    text.push('\n');
    for finding in &report.findings {
        text += finding;
        text.push('\n');
    }
    text
}

/// One row for each stage, and the sum.
pub fn stage_rows(report: &Report) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> =
        report.stages.iter().map(|stage| stage_row(report, stage)).collect();
    let counted = || report.stages.iter().filter(|stage| !stage.kept);
    let sum = |of: fn(&StageReport) -> f64| ms(counted().map(of).sum());
    let total = &report.total;
    rows.push(vec![
        "sum".to_owned(),
        counted().map(|stage| stage.operations.len()).sum::<usize>().to_string(),
        counted().map(|stage| stage.programs).sum::<usize>().to_string(),
        megabytes(total.weight_bytes),
        sum(|stage| stage.memory_s),
        sum(|stage| stage.noc_s),
        sum(|stage| stage.arithmetic_s),
        ms(total.total_s),
        String::new(),
        total.documents_s.map_or(String::new(), ms),
        ratio(total.documents_s, total.total_s),
    ]);
    rows
}

fn stage_row(report: &Report, stage: &StageReport) -> Vec<String> {
    let of_kind = report.stages.iter().filter(|of| of.stage == stage.stage && !of.kept);
    let total_s: f64 = of_kind.map(|of| of.total_s).sum();
    vec![
        stage_name(stage),
        stage.operations.len().to_string(),
        stage.programs.to_string(),
        megabytes(stage.weight_bytes),
        ms(stage.memory_s),
        ms(stage.noc_s),
        ms(stage.arithmetic_s),
        if stage.kept { format!("({})", ms(stage.total_s)) } else { ms(stage.total_s) },
        stage.bound.name().to_owned(),
        stage.documents_s.map_or(String::new(), ms),
        ratio(stage.documents_s, total_s),
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

/// The most expensive operations.
pub fn group_rows(report: &Report) -> Vec<Vec<String>> {
    let row = |group: &crate::backend::blackhole::cost::Group| {
        vec![
            group.stage.to_owned(),
            group.label.clone(),
            group.count.to_string(),
            ms(group.total_s),
            group.bound.name().to_owned(),
        ]
    };
    report.largest.iter().map(row).collect()
}

/// Totals by policy; a star stands at the one that the plan has.
pub fn policy_rows(report: &Report) -> Vec<Vec<String>> {
    let rows = report.policies.iter().map(|policy| {
        let planned = policy.dtype_policy == report.dtype_policy;
        let verdict = match policy.met_at_the_rates {
            Some(true) => "kept",
            Some(false) => "broken",
            None => "",
        };
        vec![
            format!("{}{}", policy.dtype_policy, if planned { " *" } else { "" }),
            megabytes(policy.weight_bytes),
            ms(policy.rates_alone_s),
            ms(policy.total_s),
            verdict.to_owned(),
        ]
    });
    rows.collect()
}

/// Columns as wide as their widest cell; cells that are numbers stand to the right.
fn aligned(heads: &[&str], rows: &[Vec<String>]) -> String {
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    let is_number = |cell: &str| cell.trim_matches(['(', ')']).parse::<f64>().is_ok();
    let columns = heads.iter().enumerate().map(|(column, head)| {
        let cells = || rows.iter().filter_map(|row| row.get(column));
        let width = cells().map(|cell| cell.chars().count()).max().unwrap_or_default();
        let right = cells().all(|cell| cell.is_empty() || is_number(cell));
        (width.max(head.chars().count()), right)
    });
    let columns: Vec<(usize, bool)> = columns.collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&columns).map(|(cell, (width, right))| {
            if *right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        format!("{}\n", line.trim_end())
    };
    std::iter::once(&heads).chain(rows).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let text =
            aligned(&["a", "of", "n"], &[row(["x", "1.5", ""]), row(["long", "(10.25)", "y"])]);
        assert_eq!(text, "a          of  n\nx         1.5\nlong  (10.25)  y\n");
    }
}
