//! The report in sentences, as a person would write it.

use super::compared;
use super::outages::{Outage, OutageKind};
use super::report::{InputFacts, MessageKind, Report};
use crate::words::counted;

/// More sentences of one kind than this are summed up.
const MAX_OF_A_KIND: usize = 12;

/// What there is to say, most important first.
pub fn findings(report: &Report) -> Vec<String> {
    let mut said = Vec::new();
    said.push(overview(report));
    said.extend(report.recording.notes.iter().map(|note| format!("The recording: {note}.")));
    said.extend(report.recording.unread.iter().map(|kind| format!("Not read: {}.", of_kind(kind))));
    start(report, &mut said);
    said.extend(report.instructions.iter().enumerate().map(|(number, instruction)| {
        let chunks = counted(instruction.chunks, "chunk");
        let again = if number == 0 { "Instruction" } else { "New instruction" };
        let refused = match instruction.refused {
            0 => String::new(),
            refused => format!(
                "; {} refused until the cameras had sent new frames",
                counted(refused, "prediction")
            ),
        };
        let from = time(instruction.from_s);
        format!("{again} from {from}: \"{}\", {chunks}{refused}.", instruction.text)
    }));
    said.extend(report.inputs.iter().map(input));
    for input in &report.inputs {
        details(input, &mut said);
    }
    for jump in &report.clock_jumps {
        let way = if jump.by_s < 0.0 { "back" } else { "ahead" };
        let by = time(jump.by_s.abs());
        let refused = match jump.refused {
            0 => String::new(),
            refused => format!(", and {} refused", counted(refused, "prediction")),
        };
        said.push(format!(
            "The clock jumped {way} by {by} at {}; all readings until then were forgotten{refused}.",
            time(jump.at_s)
        ));
    }
    some(&mut said, report.outages.iter().map(outage), "outages");
    some(
        &mut said,
        report.failures.iter().map(|failure| {
            format!("No chunk at {} ({}): {}.", time(failure.at_s), failure.kind, failure.text)
        }),
        "failures",
    );
    compared::borders(report, &mut said);
    compared::commands(report, &mut said);
    if let Some(equality) = &report.recorded_chunks {
        said.push(compared::equal("the recorded chunks", equality));
    }
    if let Some(equality) = &report.previous {
        said.push(compared::equal("the previous run", equality));
    }
    compared::against(report, &mut said);
    for bound in &report.bounds {
        let verdict = if bound.kept { "Kept" } else { "BROKEN" };
        said.push(format!("{verdict}: {}; measured {}.", bound.bound, bound.measured));
    }
    said.extend(report.unmeasured.iter().map(|complaint| format!("BROKEN: {complaint}.")));
    said
}

fn overview(report: &Report) -> String {
    let moments = &report.moments;
    let others = [
        (moments.refused, "predictions refused"),
        (moments.unchanged, "skipped since nothing new had come"),
        (moments.failed, "gave no chunk"),
    ];
    let others: Vec<String> = others
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let others = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
    format!(
        "{} of recording, {}: {} {}{others}.",
        time(report.recording.duration_s),
        moments.when,
        counted(moments.chunks, "chunk"),
        if moments.chunks == 1 { "was predicted" } else { "were predicted" },
    )
}

fn start(report: &Report, said: &mut Vec<String>) {
    let start = &report.start;
    match start.complete_s {
        Some(complete_s) if start.waited > 0 => said.push(format!(
            "The first moment with a complete observation was at {}; before it, {} waited for {}.",
            time(complete_s),
            counted(start.waited, "prediction"),
            start.waited_for.join(", ")
        )),
        Some(_) => {}
        None => {
            let last = report.refusals.list.last();
            let why = last.map_or("no moment to predict came", |refusal| refusal.text.as_str());
            said.push(format!("No observation was ever complete: {why}."));
        }
    }
}

fn input(input: &InputFacts) -> String {
    let rate = match (input.mean_hz, input.sent_hz) {
        (Some(mean), Some(sent)) if (sent - mean).abs() > 0.05 * sent => {
            format!(" at {mean:.1} Hz on average ({sent:.1} Hz by the stamps)")
        }
        (Some(mean), _) => format!(" at {mean:.1} Hz"),
        _ => String::new(),
    };
    let on = if input.name == input.topic { String::new() } else { format!(" on {}", input.topic) };
    let mut text = format!("{}{on}: {}{rate}", input.name, counted(input.received, "message"));
    if input.lost > 0 {
        text += &format!(", {} lost by the stamps", input.lost);
    }
    if input.refused > 0 {
        text += &format!(", {} refused", input.refused);
    }
    if let Some(ages) = &input.age_ms {
        text += &format!(
            "; when predicted from, {:.0} ms old (median), {:.0} ms at most",
            ages.p50, ages.max
        );
    }
    text + "."
}

/// Formats, orders and refusals of an input.
fn details(input: &InputFacts, said: &mut Vec<String>) {
    let name = &input.name;
    if !input.formats.is_empty() && input.order_changes_s.is_empty() {
        let formats: Vec<String> = match &input.formats[..] {
            [only] => vec![only.text.clone()],
            several => several.iter().map(of_kind).collect(),
        };
        said.push(format!("{name}: {}.", formats.join("; then ")));
    }
    if !input.order_changes_s.is_empty() {
        let times: Vec<String> =
            input.order_changes_s.iter().take(MAX_OF_A_KIND).map(|at_s| time(*at_s)).collect();
        let more = input.order_changes_s.len() - times.len();
        let more = if more > 0 { format!(" and {more} times more") } else { String::new() };
        said.push(format!(
            "{name}: the joints came in another order at {}{more}; they are read by name, so that no value moved.",
            times.join(", ")
        ));
    }
    said.extend(input.notes.iter().map(|note| format!("{name}: {note}.")));
    let refusals = input.refusals.iter().map(|kind| format!("{name}: refused {}.", of_kind(kind)));
    some(said, refusals, "kinds of refused messages");
}

fn outage(outage: &Outage) -> String {
    let Outage { input, causes, from_s, to_s, refused, .. } = outage;
    let causes: Vec<String> =
        causes.iter().map(|(cause, count)| format!("{cause} {count}")).collect();
    let refused = format!(
        "{} refused ({} to {}: {})",
        counted(*refused, "prediction"),
        time(outage.first_refused_s),
        time(outage.last_refused_s),
        causes.join(", ")
    );
    let until = if outage.lasts { "the end" } else { &time(*to_s) };
    let from = time(*from_s);
    match outage.kind {
        OutageKind::Silent => format!("{input}: nothing from {from} to {until}; {refused}."),
        OutageKind::Unusable => {
            format!("{input}: nothing usable from {from} to {until}; {refused}: {}.", outage.text)
        }
        OutageKind::Gate => {
            format!("{input}: not to be used from {from} to {until}; {refused}: {}.", outage.text)
        }
    }
}

fn of_kind(kind: &MessageKind) -> String {
    let when = if kind.count == 1 {
        format!("at {}", time(kind.first_s))
    } else {
        format!("{} to {}", time(kind.first_s), time(kind.last_s))
    };
    format!("{} ({when}): {}", counted(kind.count, "message"), kind.text)
}

/// Sentences up to a number that a person reads, and how many more there are.
fn some(said: &mut Vec<String>, sentences: impl Iterator<Item = String>, what: &str) {
    let all: Vec<String> = sentences.collect();
    let more = all.len().saturating_sub(MAX_OF_A_KIND);
    said.extend(all.into_iter().take(MAX_OF_A_KIND));
    if more > 0 {
        said.push(format!("And {more} more {what}; report.json has all of them."));
    }
}

/// As sentences have it.
pub fn time(seconds: f64) -> String {
    format!("{seconds:.3} s")
}
