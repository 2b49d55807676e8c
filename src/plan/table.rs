//! A plan as text for a terminal.

use super::findings::{megabytes, ms};
use super::persistent::{self, ARENA_HEADS, ROLE_HEADS, arena_rows, role_rows};
use super::report::{LayoutFacts, Report};
use super::stage_table::{STAGE_NOTE, stage_heads, stage_rows};

/// Columns of the table of policies.
const POLICY_HEADS: [&str; 5] =
    ["weights", "read in a request [MB]", "on the card [MB]", "rates alone [ms]", "total [ms]"];
/// Its last column, where there is a goal.
const GOAL_HEAD: &str = "goal at the rates";

/// Columns of the table of the most expensive operations.
pub const GROUP_HEADS: [&str; 5] = ["stage", "operation", "count", "total [ms]", "bound"];

/// Network and layout, in a line.
pub fn about(report: &Report) -> String {
    let LayoutFacts { images, grid, tokens, text_tokens, .. } = report.layout;
    let pictures = if images == 1 { "picture" } else { "pictures" };
    format!(
        "{}: {images} {pictures} of {} x {} patches, {tokens} tokens, {text_tokens} of them the instruction; weights {}, products {}, \
         cores {}",
        report.network,
        grid[0],
        grid[1],
        report.dtype_policy,
        report.math_fidelity,
        report.core_layout
    )
}

/// Said of every plan.
pub const NO_MEASUREMENT: &str =
    "A plan from shapes and documented rates: nothing of it has run on a card.";

/// The whole text.
pub fn text(report: &Report) -> String {
    let mut text = format!("GR00T {}, {}\n{NO_MEASUREMENT}\n", report.version, about(report));
    for notice in &report.notices {
        text += notice;
        text.push('\n');
    }
    text.push('\n');
    text += &aligned(&stage_heads(report), &stage_rows(report));
    text += STAGE_NOTE;
    text.push('\n');
    text += "\nMost expensive operations\n";
    text += &aligned(&GROUP_HEADS, &group_rows(report));
    text += "\nAll weights as each policy has them\n";
    text += &aligned(&policy_heads(report), &policy_rows(report));
    if let Some(summary) = &report.persistent {
        text += "\nEuler steps as one program\n";
        text += &aligned(&ROLE_HEADS, &role_rows(summary));
        text.push('\n');
        text += &aligned(&ARENA_HEADS, &arena_rows(summary));
        text += &format!("{}\n{}\n", persistent::besides(summary), persistent::about(summary));
    }
    text.push('\n');
    for finding in &report.findings {
        text += finding;
        text.push('\n');
    }
    text
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

/// Columns of the table of policies.
pub fn policy_heads(report: &Report) -> Vec<&'static str> {
    let goal: &[&str] = if report.goal.is_some() { &[GOAL_HEAD] } else { &[] };
    [&POLICY_HEADS, goal].concat()
}

/// Totals by policy; a star stands at the one that the plan has.
pub fn policy_rows(report: &Report) -> Vec<Vec<String>> {
    let rows = report.policies.iter().map(|policy| {
        let planned = policy.dtype_policy == report.dtype_policy;
        let mut row = vec![
            format!("{}{}", policy.dtype_policy, if planned { " *" } else { "" }),
            megabytes(policy.weight_bytes),
            megabytes(policy.card_bytes),
            ms(policy.rates_alone_s),
            ms(policy.total_s),
        ];
        let verdict = |met: bool| if met { "kept" } else { "broken" };
        row.extend(policy.met_at_the_rates.map(|met| verdict(met).to_owned()));
        row
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
