//! Refusals that follow from a reset of the history: a jump of the clock forgets everything, and another instruction the
//! frames of a policy that looks back.

use std::collections::BTreeMap;

use super::events::{Events, Refused};
use crate::history::Cause;

/// An input that has not come again after this time is a fault of its own.
const WINDOW_NS: i64 = 1_000_000_000;

/// How many refusals follow from each reset, by its time of reception; and all others.
pub fn split(events: &Events, refused: &[Refused]) -> (BTreeMap<i64, u64>, Vec<Refused>) {
    let jumps = events.jumps.iter().map(|jump| jump.log_ns);
    let instructed = events.instructions.iter().skip(1).map(|instructed| instructed.log_ns);
    let mut resets: Vec<i64> = jumps.chain(instructed).collect();
    resets.sort_unstable();
    let mut counts = BTreeMap::new();
    let mut others = Vec::new();
    for refusal in refused {
        let at_ns = refusal.moment.log_ns;
        let reset = resets.iter().rfind(|reset| **reset <= at_ns).copied();
        let reset = reset.filter(|reset| {
            let is_missing = |cause: Cause| matches!(cause, Cause::Missing | Cause::NoPose);
            let predicted = |log_ns: i64| *reset <= log_ns && log_ns < at_ns;
            at_ns - reset <= WINDOW_NS
                && refusal.lacks.iter().all(|lack| is_missing(lack.cause))
                && !events.predicted.iter().any(|prediction| predicted(prediction.moment.log_ns))
        });
        match reset {
            Some(reset) => *counts.entry(reset).or_default() += 1,
            None => others.push(refusal.clone()),
        }
    }
    (counts, others)
}
