//! Bars: what a plan consists of, what each operation of a stage takes.

use std::fmt::Write;

use super::findings::ms;
use super::report::{StageReport, Total};
use crate::backend::blackhole::cost::{Group, OpCost};
use crate::page::escaped;

const WIDTH: f64 = 960.0;
/// Room for the names of operations, and for what stands behind their bars.
const NAMES: f64 = 250.0;
const BEHIND: f64 = 130.0;
const ROW: f64 = 20.0;

/// The parts of a total, side by side.
pub fn parts(total: &Total, goal_s: Option<f64>) -> String {
    const HEIGHT: f64 = 66.0;
    let parts = [
        ("rates", "at the rates alone", total.rates_alone_s),
        ("whole", "whole tiles and cores", total.whole_tiles_s - total.rates_alone_s),
        ("vector", "vector unit and network", total.operations_s - total.whole_tiles_s),
        ("start", "start of programs", total.total_s - total.operations_s),
    ];
    let longest = total.total_s.max(goal_s.unwrap_or_default()).max(f64::MIN_POSITIVE);
    let scale = WIDTH / (longest * 1.02);
    let mut svg =
        format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"parts\">");
    let mut x = 0.0;
    // Writing to a string cannot fail.
    for (class, name, seconds) in parts {
        let width = seconds * scale;
        let _ = write!(
            svg,
            "<g><title>{name}: {} ms</title><rect class=\"{class}\" x=\"{x:.1}\" y=\"16\" width=\"{width:.1}\" height=\"26\"/>",
            ms(seconds)
        );
        if width > 40.0 {
            let _ = write!(
                svg,
                "<text class=\"middle on-dark\" x=\"{:.1}\" y=\"33\">{}</text>",
                x + width / 2.0,
                ms(seconds)
            );
        }
        svg.push_str("</g>");
        x += width;
    }
    if let Some(goal_s) = goal_s {
        let at = goal_s * scale;
        // The words stay inside of the picture.
        let words = at.min(WIDTH - 40.0);
        let _ = write!(
            svg,
            "<path class=\"mark\" d=\"M{at:.1} 6V48\"/><text class=\"middle\" x=\"{words:.1}\" y=\"62\">goal {} ms</text>",
            ms(goal_s)
        );
    }
    svg.push_str("</svg>\n<p class=\"legend\">");
    for (class, name, seconds) in parts {
        let _ = write!(
            svg,
            "<svg viewBox=\"0 0 28 10\"><rect class=\"{class}\" width=\"28\" height=\"10\" rx=\"2\"/></svg>{name}, {} ms",
            ms(seconds)
        );
    }
    svg.push_str("</p>\n");
    svg
}

/// What a mark of colour means in the bars of operations.
pub fn legend() -> String {
    let mark = |class: &str, name: &str| {
        format!(
            "<svg viewBox=\"0 0 28 10\"><rect class=\"{class}\" width=\"28\" height=\"10\" rx=\"2\"/></svg>{name}"
        )
    };
    format!(
        "<p class=\"legend\">bound by {} {} {}</p>\n",
        mark("memory", "memory"),
        mark("noc", "network on chip"),
        mark("arithmetic", "arithmetic")
    )
}

/// All operations of a stage, one behind the other, over the time without the starts of programs.
pub fn strip(stage: &StageReport) -> String {
    const HEIGHT: f64 = 42.0;
    let total: f64 = stage.operations.iter().map(OpCost::total_s).sum();
    let scale = WIDTH / total.max(f64::MIN_POSITIVE);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"operations in order\">"
    );
    let mut x = 0.0;
    for op in &stage.operations {
        let width = op.total_s() * scale;
        let _ = write!(
            svg,
            "<rect class=\"{}\" x=\"{x:.2}\" y=\"2\" width=\"{width:.2}\" height=\"22\"><title>{}: {:.1} us</title></rect>",
            op.bound().name(),
            escaped(&op.label),
            op.total_s() * 1e6
        );
        x += width;
    }
    time_axis(&mut svg, total);
    svg.push_str("</svg>\n");
    svg
}

/// Milliseconds below a strip of so many seconds, at its ends and its quarters.
fn time_axis(svg: &mut String, total_s: f64) {
    const PARTS: u32 = 4;
    for part in 0..=PARTS {
        let share = f64::from(part) / f64::from(PARTS);
        let x = share * WIDTH;
        // The words stay inside of the picture.
        let (class, unit) = match part {
            0 => ("", ""),
            PARTS => (" class=\"end\"", " ms"),
            _ => (" class=\"middle\"", ""),
        };
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{x:.1} 24v5\"/><text{class} x=\"{x:.1}\" y=\"39\">{}{unit}</text>",
            ms(share * total_s)
        );
    }
}

/// Such as `128 times`.
fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// A bar for each operation, those of equal blocks together; `longest_s` is as long as there is room.
pub fn groups(stage: &StageReport, longest_s: f64) -> String {
    let height = ROW * stage.groups.len() as f64 + 4.0;
    let scale = (WIDTH - NAMES - BEHIND) / longest_s.max(f64::MIN_POSITIVE);
    let mut svg =
        format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"operations\">");
    for (row, group) in stage.groups.iter().enumerate() {
        let y = 2.0 + ROW * row as f64;
        let width = (group.total_s * scale).max(1.0);
        let _ = write!(
            svg,
            "<g><title>{}</title><text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text><rect class=\"{}\" x=\"{NAMES}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{}\" rx=\"2\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{} ms ({})</text></g>",
            escaped(&title(stage, group)),
            NAMES - 8.0,
            y + 13.0,
            escaped(&group.label),
            group.bound.name(),
            y + 2.0,
            ROW - 5.0,
            NAMES + width + 6.0,
            y + 13.0,
            ms(group.total_s),
            times(group.count)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The numbers of a group.
fn title(stage: &StageReport, group: &Group) -> String {
    let ops = || stage.operations.iter().filter(|op| op.label == group.label);
    let sum = |of: fn(&OpCost) -> f64| ms(ops().map(of).sum());
    let count = |of: fn(&OpCost) -> u64| ops().map(of).sum::<u64>();
    let cores = ops().map(|op| op.cores).max().unwrap_or_default();
    format!(
        "{}: {}, together {} ms\nmemory {} ms, network {} ms, arithmetic {} ms\n{:.1} MB of weights, {:.1} MB of DRAM, {} products of tiles, {:.0} passes of the vector unit, on up to {cores} cores",
        group.label,
        times(group.count),
        ms(group.total_s),
        sum(|op| op.memory_s),
        sum(|op| op.noc_s),
        sum(|op| op.arithmetic_s),
        count(|op| op.weight_bytes) as f64 / 1e6,
        count(|op| op.bank_bytes.iter().sum()) as f64 / 1e6,
        count(|op| op.tile_matmuls),
        ops().map(|op| op.sfpu_passes).sum::<f64>()
    )
}
