//! A plan as one HTML page.

use std::fmt::Write;

use super::findings::{ABOVE, BROKEN, KEPT};
use super::persistent::{self, ARENA_HEADS, ROLE_HEADS, arena_rows, role_rows};
use super::report::Report;
use super::stage_table::{STAGE_NOTE, stage_heads, stage_name, stage_rows};
use super::table::{GROUP_HEADS, NO_MEASUREMENT, about, group_rows, policy_heads, policy_rows};
use super::{bars, core_maps};
use crate::backend::blackhole::cost::RATES;
use crate::page::{END, begin, escaped, table};

const STYLE: &str = include_str!("plan.css");

/// The page.
pub fn page(report: &Report) -> String {
    let mut page = begin(&format!("Plan of GR00T {} on a Blackhole card", report.version), STYLE);
    // Writing to a string cannot fail.
    let _ = writeln!(
        page,
        "<p class=\"about\">{}</p>\n<p class=\"about\">{NO_MEASUREMENT} {}</p>",
        escaped(&about(report)),
        escaped(&report.program)
    );
    for notice in &report.notices {
        let _ = writeln!(page, "<p class=\"bad\">{}</p>", escaped(notice));
    }
    page.push_str("<h2>Stages</h2>\n");
    table(&mut page, &stage_heads(report), stage_rows(report).into_iter());
    let _ = writeln!(page, "<p class=\"about\">{STAGE_NOTE}</p>");
    page.push_str(&bars::parts(&report.total, report.goal.as_ref().map(|goal| goal.goal_s)));
    findings(&mut page, report);
    page.push_str("<h2>Most expensive operations</h2>\n");
    table(&mut page, &GROUP_HEADS, group_rows(report).into_iter());
    page.push_str("<h2>Cores</h2>\n<p class=\"about\">Milliseconds of arithmetic in a request; for readers, of reading.</p>\n<div class=\"maps\">\n");
    let traced = "Vision, language model, adapter: all cores";
    page.push_str(&core_maps::map(traced, &report.cores.traced));
    if !report.cores.persistent.is_empty() {
        page.push_str(&core_maps::map("Euler steps: one program", &report.cores.persistent));
    }
    page.push_str("</div>\n<h2>Banks of DRAM</h2>\n<p class=\"about\">What each delivers and takes in a request.</p>\n");
    page.push_str(&core_maps::banks(report.bank_bytes));
    if let Some(summary) = &report.persistent {
        page.push_str("<h2>Euler steps as one program</h2>\n");
        table(&mut page, &ROLE_HEADS, role_rows(summary).into_iter());
        let about = persistent::about(summary);
        let _ = writeln!(page, "<p class=\"about\">{}</p>", escaped(&about));
        table(&mut page, &ARENA_HEADS, arena_rows(summary).into_iter());
        let _ = writeln!(page, "<p class=\"about\">{}</p>", escaped(&persistent::besides(summary)));
    }
    operations(&mut page, report);
    page.push_str("<h2>Weights</h2>\n");
    table(&mut page, &policy_heads(report), policy_rows(report).into_iter());
    rates(&mut page, report);
    page.push_str(END);
    page
}

fn findings(page: &mut String, report: &Report) {
    page.push_str("<ul>\n");
    for finding in &report.findings {
        let class = match finding.split(':').next() {
            Some(BROKEN | ABOVE) => " class=\"bad\"",
            Some(KEPT) => " class=\"good\"",
            _ => "",
        };
        let _ = writeln!(page, "<li{class}>{}</li>", escaped(finding));
    }
    page.push_str("</ul>\n");
}

fn operations(page: &mut String, report: &Report) {
    page.push_str("<h2>Operations</h2>\n<p class=\"about\">Of each stage in their order, over milliseconds without the starts of programs; then those \
         of equal blocks together, and how often they run.</p>\n");
    page.push_str(&bars::legend());
    let groups = report.stages.iter().flat_map(|stage| &stage.groups);
    let longest_s = groups.map(|group| group.total_s).fold(0.0, f64::max);
    for stage in &report.stages {
        let _ = writeln!(page, "<h3>{}</h3>", escaped(&stage_name(stage)));
        page.push_str(&bars::strip(stage));
        page.push_str(&bars::groups(stage, longest_s));
    }
}

fn rates(page: &mut String, report: &Report) {
    page.push_str("<h2>Rates</h2>\n");
    let values = serde_json::to_value(&report.rates).unwrap_or_default();
    let rows = RATES.iter().map(|rate| {
        let value = values.get(rate.name).and_then(serde_json::Value::as_f64);
        let is_changed = report.changed_rates.iter().any(|changed| changed.name == rate.name);
        vec![
            rate.name.to_owned(),
            value.map_or(String::new(), |value| value.to_string()),
            if is_changed {
                format!("CHANGED from {}", rate.default)
            } else {
                "default".to_owned()
            },
            rate.unit.to_owned(),
            rate.text.trim().to_owned(),
        ]
    });
    let heads = ["rate", "value", "", "unit", "what it is, and the source of the default"];
    table(page, &heads, rows);
}
