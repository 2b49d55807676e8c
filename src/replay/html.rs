//! The report as one HTML page that needs nothing else: no script, no other file, no network.

use std::fmt::Write;

use super::Replay;
use super::chart::{Chart, Line};
use super::errors::Errors;
use super::pictures::Section;
use super::report::Report;
use super::svg::{class, svg};
use crate::page::{END, begin, escaped, table};

/// The page.
pub fn page(replay: &Replay, sections: &[Section]) -> String {
    let report = &replay.report;
    let mut page = begin(&format!("Replay of {}", report.recording.path), "");
    let policy = &report.policy;
    let about = format!(
        "GR00T {} as {}, {} {}, seed {}, {} rows every {} ms; snapshot {}; {}",
        policy.version,
        policy.embodiment,
        policy.backend,
        policy.numerics,
        policy.seed,
        policy.horizon,
        policy.dt_ms,
        policy.snapshot,
        report.program
    );
    // Writing to a string cannot fail.
    let _ = writeln!(page, "<p class=\"about\">{}</p>", escaped(&about));
    findings(&mut page, report);
    inputs(&mut page, report);
    outages(&mut page, report);
    errors(&mut page, report);
    for section in sections {
        let _ = writeln!(page, "<h2>{}</h2>", escaped(&section.title));
        legend(&mut page, &section.charts);
        for chart in &section.charts {
            let unit =
                if chart.unit.is_empty() { String::new() } else { format!(" [{}]", chart.unit) };
            let _ = writeln!(page, "<h3>{}</h3>", escaped(&format!("{}{unit}", chart.title)));
            let _ = writeln!(page, "{}", svg(chart, &section.time));
        }
    }
    latency(&mut page, replay);
    refusals(&mut page, report);
    page.push_str(END);
    page
}

fn findings(page: &mut String, report: &Report) {
    page.push_str("<h2>Findings</h2>\n<ul>\n");
    for finding in &report.findings {
        let class = match finding.split(':').next() {
            Some("BROKEN") => " class=\"bad\"",
            Some("Kept") => " class=\"good\"",
            _ => "",
        };
        let _ = writeln!(page, "<li{class}>{}</li>", escaped(finding));
    }
    page.push_str("</ul>\n");
}

fn inputs(page: &mut String, report: &Report) {
    page.push_str("<h2>Inputs</h2>\n");
    let heads = [
        "input",
        "topic",
        "messages",
        "taken in",
        "refused",
        "lost",
        "Hz",
        "age p50 [ms]",
        "age max [ms]",
        "longest gap",
    ];
    let rows = report.inputs.iter().map(|input| {
        let number =
            |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.1}"));
        let gap = input.longest_gap.as_ref().map_or(String::new(), |gap| {
            format!("{:.3} s, from {:.3} s", gap.to_s - gap.from_s, gap.from_s)
        });
        let ages = input.age_ms.as_ref();
        vec![
            input.name.clone(),
            input.topic.clone(),
            input.received.to_string(),
            input.taken.to_string(),
            input.refused.to_string(),
            input.lost.to_string(),
            number(input.mean_hz),
            number(ages.map(|ages| ages.p50)),
            number(ages.map(|ages| ages.max)),
            gap,
        ]
    });
    table(page, &heads, rows);
}

fn outages(page: &mut String, report: &Report) {
    if report.outages.is_empty() {
        return;
    }
    page.push_str("<h2>Times without a prediction</h2>\n");
    let heads = [
        "input",
        "cause",
        "from [s]",
        "to [s]",
        "predictions refused",
        "what the node would have said",
    ];
    let rows = report.outages.iter().map(|outage| {
        let to = if outage.lasts { "the end".to_owned() } else { format!("{:.3}", outage.to_s) };
        vec![
            outage.input.clone(),
            outage.causes.keys().cloned().collect::<Vec<_>>().join(", "),
            format!("{:.3}", outage.from_s),
            to,
            outage.refused.to_string(),
            outage.text.clone(),
        ]
    });
    table(page, &heads, rows);
}

fn errors(page: &mut String, report: &Report) {
    let Some(commands) = &report.commands else { return };
    let title = format!("Errors against {} ({})", commands.topic, commands.message_type);
    let _ = writeln!(page, "<h2>{}</h2>", escaped(&title));
    let heads = [
        "group",
        "dimension",
        "values",
        "MAE",
        "MSE",
        "max |d|",
        "all rows: values",
        "MAE",
        "MSE",
        "max |d|",
    ];
    let cells = |errors: &Errors| {
        let number =
            |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.6}"));
        [errors.values.to_string(), number(errors.mae), number(errors.mse), number(errors.max_abs)]
    };
    let rows = commands.groups.iter().flat_map(|group| {
        let row = |name: &str, executed: &Errors, horizon: &Errors| {
            let names = [group.group.clone(), name.to_owned()];
            names.into_iter().chain(cells(executed)).chain(cells(horizon)).collect::<Vec<String>>()
        };
        let whole = row("all", &group.executed, &group.horizon);
        let dimensions =
            group.dimensions.iter().map(move |of| row(&of.label, &of.executed, &of.horizon));
        std::iter::once(whole).chain(dimensions).collect::<Vec<_>>()
    });
    table(page, &heads, rows);
}

fn latency(page: &mut String, replay: &Replay) {
    page.push_str("<h2>Stages of a prediction on this machine</h2>\n");
    let _ = writeln!(page, "<p class=\"about\">{}</p>", escaped(&replay.latency.backend));
    let rows = replay.latency.stages.iter().map(|stage| {
        let ms = |value: f64| format!("{value:.2}");
        vec![stage.stage.clone(), ms(stage.p50_ms), ms(stage.p99_ms), ms(stage.max_ms)]
    });
    table(page, &["stage", "p50 [ms]", "p99 [ms]", "max [ms]"], rows);
}

fn refusals(page: &mut String, report: &Report) {
    if report.refusals.list.is_empty() {
        return;
    }
    let count = report.refusals.list.len();
    let _ = writeln!(page, "<h2>Refused predictions</h2>\n<details><summary>All {count}</summary>");
    let rows = report.refusals.list.iter().map(|refusal| {
        vec![format!("{:.3}", refusal.at_s), refusal.causes.join(", "), refusal.text.clone()]
    });
    table(page, &["at [s]", "causes", "why"], rows);
    page.push_str("</details>\n");
}

fn legend(page: &mut String, charts: &[Chart]) {
    let mut known: Vec<&Line> = Vec::new();
    for line in charts.iter().flat_map(|chart| &chart.lines) {
        if !known.iter().any(|known| known.name == line.name) {
            known.push(line);
        }
    }
    page.push_str("<p class=\"legend\">");
    for line in known {
        let _ = write!(
            page,
            "<svg viewBox=\"0 0 28 10\"><path class=\"{}\" d=\"M2 5H26\"/></svg>{}",
            class(line.style),
            escaped(&line.name)
        );
    }
    if charts.iter().any(|chart| !chart.outages.is_empty()) {
        page.push_str("<svg viewBox=\"0 0 28 10\"><rect class=\"outage\" width=\"28\" height=\"10\"/></svg>an input is out");
    }
    if charts.iter().any(|chart| !chart.marks.is_empty()) {
        page.push_str("<svg viewBox=\"0 0 28 10\"><path class=\"mark\" d=\"M14 0V10\"/></svg>new instruction, or jump of the clock");
    }
    page.push_str("</p>\n");
}
