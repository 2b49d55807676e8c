//! Moments without an observation, told as intervals: which input, why, from when to when.

use std::collections::BTreeMap;

use serde::Serialize;

use super::events::{Events, Refused};
use super::input_log::InputLog;
use super::seconds_since;
use crate::history::Cause;

/// A time during which an input kept the policy from predicting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outage {
    /// Camera key, topic of states, `instruction`, `/clock`.
    pub input: String,
    pub kind: OutageKind,
    /// As in the node's counters, such as `stale`, each with the predictions that were refused for it.
    pub causes: BTreeMap<String, u64>,
    /// Seconds since the recording's start: for an input that is silent or of no use, from the last message that was taken
    /// in to the next; otherwise from the first refused prediction to the last.
    pub from_s: f64,
    pub to_s: f64,
    /// Whether the recording ends before the input is back.
    pub lasts: bool,
    /// Predictions that were refused for it, the first, and the last.
    pub refused: u64,
    pub first_refused_s: f64,
    pub last_refused_s: f64,
    /// In the words of the node, at the last of them.
    pub text: String,
}

/// What kind of outage it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutageKind {
    /// What came was held back by a gate: frozen, skewed, jumped.
    Gate,
    /// What came could not be read or used.
    Unusable,
    /// Nothing came.
    Silent,
}

impl OutageKind {
    fn of(cause: Cause) -> Self {
        match cause {
            Cause::Stale | Cause::Missing => OutageKind::Silent,
            Cause::Refused => OutageKind::Unusable,
            Cause::NoClock
            | Cause::NoInstruction
            | Cause::NoPose
            | Cause::Frozen
            | Cause::Skewed
            | Cause::Jumped
            | Cause::Publishers => OutageKind::Gate,
        }
    }
}

/// Refusals of an input that follow each other.
struct Run {
    input: String,
    kind: OutageKind,
    causes: BTreeMap<String, u64>,
    first: usize,
    last: usize,
    count: u64,
    text: String,
}

/// All outages, by their beginning. Refusals of an input that follow each other without a prediction between them are one
/// outage: a camera that stops is skewed against the others first, and stale then.
pub fn outages(events: &Events, refused: &[Refused], start_ns: i64, end_ns: i64) -> Vec<Outage> {
    let mut runs: Vec<Run> = Vec::new();
    for (number, moment) in refused.iter().enumerate() {
        for lack in &moment.lacks {
            let known = runs.iter_mut().rev().find(|run| run.input == lack.input);
            let known = known.filter(|run| follows(events, refused, run.last, number));
            let run = match known {
                Some(run) => run,
                None => {
                    runs.push(Run {
                        input: lack.input.clone(),
                        kind: OutageKind::of(lack.cause),
                        causes: BTreeMap::new(),
                        first: number,
                        last: number,
                        count: 0,
                        text: String::new(),
                    });
                    let Some(run) = runs.last_mut() else { continue };
                    run
                }
            };
            // An input can lack two things at once.
            if run.count == 0 || run.last != number {
                run.count += 1;
            }
            run.kind = run.kind.max(OutageKind::of(lack.cause));
            *run.causes.entry(lack.cause.name().to_owned()).or_default() += 1;
            run.last = number;
            run.text.clone_from(&lack.text);
        }
    }
    let mut outages: Vec<Outage> =
        runs.into_iter().map(|run| outage(run, events, refused, start_ns, end_ns)).collect();
    outages.sort_by(|a, b| {
        a.from_s.total_cmp(&b.from_s).then_with(|| a.first_refused_s.total_cmp(&b.first_refused_s))
    });
    outages
}

/// Whether nothing was predicted between two refusals, and no jump of the clock lies between them.
fn follows(events: &Events, refused: &[Refused], earlier: usize, later: usize) -> bool {
    let (from, to) = (&refused[earlier].moment, &refused[later].moment);
    let between = |log_ns: i64| from.log_ns < log_ns && log_ns < to.log_ns;
    from.era == to.era
        && !events.predicted.iter().any(|prediction| between(prediction.moment.log_ns))
}

fn outage(run: Run, events: &Events, refused: &[Refused], start_ns: i64, end_ns: i64) -> Outage {
    let (first_ns, last_ns) = (refused[run.first].moment.log_ns, refused[run.last].moment.log_ns);
    let log = events.inputs().find(|log| log.name == run.input || log.topic == run.input);
    let (from_ns, to_ns) = match log.filter(|_| run.kind != OutageKind::Gate) {
        Some(log) => around(log, events, first_ns, last_ns),
        None => (Some(first_ns), Some(last_ns)),
    };
    Outage {
        input: run.input,
        kind: run.kind,
        causes: run.causes,
        from_s: seconds_since(start_ns, from_ns.unwrap_or(start_ns)),
        to_s: seconds_since(start_ns, to_ns.unwrap_or(end_ns)),
        lasts: to_ns.is_none(),
        refused: run.count,
        first_refused_s: seconds_since(start_ns, first_ns),
        last_refused_s: seconds_since(start_ns, last_ns),
        text: run.text,
    }
}

/// The last reading before the refusals, or the jump of the clock that forgot it; and the first reading after.
fn around(
    log: &InputLog,
    events: &Events,
    first_ns: i64,
    last_ns: i64,
) -> (Option<i64>, Option<i64>) {
    let before = log.taken_ns.partition_point(|at_ns| *at_ns <= first_ns);
    let after = log.taken_ns.partition_point(|at_ns| *at_ns <= last_ns);
    let taken = before.checked_sub(1).map(|last| log.taken_ns[last]);
    let jumped = events.jumps.iter().map(|jump| jump.log_ns).rfind(|at_ns| *at_ns <= first_ns);
    (taken.max(jumped), log.taken_ns.get(after).copied())
}
