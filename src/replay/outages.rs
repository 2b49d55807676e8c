//! Moments without an observation, told as intervals: which input, why, from when to when.

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
    /// As in the node's counters, such as `stale`.
    pub cause: String,
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
    /// In the words of the node, at the first of them.
    pub text: String,
}

/// Refusals of an input for a cause that follow each other.
struct Open {
    input: String,
    cause: Cause,
    first: usize,
    last: usize,
    count: u64,
    text: String,
}

/// All outages, by their beginning. Refusals in `refused` that follow each other without a prediction between them, of
/// the same input and cause, are one outage.
pub fn outages(events: &Events, refused: &[Refused], start_ns: i64, end_ns: i64) -> Vec<Outage> {
    let mut runs: Vec<Open> = Vec::new();
    for (number, moment) in refused.iter().enumerate() {
        for lack in &moment.lacks {
            let is_same = |open: &&mut Open| open.input == lack.input && open.cause == lack.cause;
            let known = runs.iter_mut().rev().find(is_same);
            match known.filter(|open| follows(events, refused, open.last, number)) {
                Some(open) => {
                    open.last = number;
                    open.count += 1;
                }
                None => runs.push(Open {
                    input: lack.input.clone(),
                    cause: lack.cause,
                    first: number,
                    last: number,
                    count: 1,
                    text: lack.text.clone(),
                }),
            }
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

fn outage(run: Open, events: &Events, refused: &[Refused], start_ns: i64, end_ns: i64) -> Outage {
    let (first_ns, last_ns) = (refused[run.first].moment.log_ns, refused[run.last].moment.log_ns);
    let is_silent = matches!(run.cause, Cause::Stale | Cause::Missing | Cause::Refused);
    let log = events.inputs().find(|log| log.name == run.input || log.topic == run.input);
    let (from_ns, to_ns) = match log.filter(|_| is_silent) {
        Some(log) => around(log, events, first_ns, last_ns),
        None => (Some(first_ns), Some(last_ns)),
    };
    let lasts = to_ns.is_none();
    Outage {
        input: run.input,
        cause: run.cause.name().to_owned(),
        from_s: seconds_since(start_ns, from_ns.unwrap_or(start_ns)),
        to_s: seconds_since(start_ns, to_ns.unwrap_or(end_ns)),
        lasts,
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
