//! Makes recorded chunks again and compares them bit for bit.

use serde::Serialize;

use super::error::RecordError;
use super::reader::{Recorded, Recording};
use crate::contract::ActionGroup;
use crate::node::worker::Predict;

/// What came of predicting again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Reproduction {
    /// The same chunk to the last bit, or the same refusal.
    Same,
    Differs(Difference),
    /// There was no chunk, for a reason that does not lie in the observation: it was cancelled, or overtaken.
    NotComparable {
        reason: String,
    },
}

/// The first thing in which a chunk is not as it was recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Difference {
    /// There was a chunk, and now there is none.
    NoChunk { reason: String },
    /// Names, representations or numbers of values.
    Shape { recorded: Vec<String>, now: Vec<String> },
    /// So many values of all groups together; the first of them.
    Values { group: String, row: usize, column: usize, recorded: f32, now: f32, different: usize },
}

/// What came of a whole recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    pub same: u64,
    pub not_comparable: u64,
    /// Number and difference of every prediction that is not as it was.
    pub different: Vec<(u64, Difference)>,
    /// Predictions that cannot be made again, and why.
    pub unreadable: Vec<String>,
}

/// Predicts from a recorded observation, with the noise that was used, and compares.
pub fn reproduce(recorded: &Recorded, policy: &mut impl Predict) -> Reproduction {
    let now = policy.predict(&recorded.observation, &recorded.options);
    match (&recorded.outcome, now) {
        (Ok(groups), Ok(chunk)) => match difference(groups, &chunk.groups) {
            Some(difference) => Reproduction::Differs(difference),
            None => Reproduction::Same,
        },
        (Ok(_), Err(error)) => {
            Reproduction::Differs(Difference::NoChunk { reason: error.to_string() })
        }
        (Err(reason), Err(error)) if error.to_string() == *reason => Reproduction::Same,
        (Err(reason), _) => Reproduction::NotComparable { reason: reason.clone() },
    }
}

/// Reproduces every prediction of a recording; `progress` hears of each.
///
/// # Errors
/// A recording that cannot be read to its end.
pub fn reproduce_all(
    recording: &Recording,
    policy: &mut impl Predict,
    mut progress: impl FnMut(&Recorded, &Reproduction),
) -> Result<Summary, RecordError> {
    let mut summary = Summary::default();
    for recorded in recording.predictions()? {
        let recorded = match recorded {
            Ok(recorded) => recorded,
            Err(error) if error.is_of_one_prediction() => {
                summary.unreadable.push(error.to_string());
                continue;
            }
            Err(error) => return Err(error),
        };
        let reproduction = reproduce(&recorded, policy);
        match &reproduction {
            Reproduction::Same => summary.same += 1,
            Reproduction::NotComparable { .. } => summary.not_comparable += 1,
            Reproduction::Differs(difference) => {
                summary.different.push((recorded.number, difference.clone()));
            }
        }
        progress(&recorded, &reproduction);
    }
    Ok(summary)
}

fn difference(recorded: &[ActionGroup], now: &[ActionGroup]) -> Option<Difference> {
    let shape = |groups: &[ActionGroup]| -> Vec<String> {
        let text = |group: &ActionGroup| {
            let ActionGroup { name, representation, dim, values } = group;
            format!("{name} {representation:?} {dim} of {}", values.len())
        };
        groups.iter().map(text).collect()
    };
    let (recorded_shape, now_shape) = (shape(recorded), shape(now));
    if recorded_shape != now_shape {
        return Some(Difference::Shape { recorded: recorded_shape, now: now_shape });
    }
    let mut differing = recorded.iter().zip(now).flat_map(|(recorded, now)| {
        let values = recorded.values.iter().zip(&now.values).enumerate();
        let different = values.filter(|(_, (recorded, now))| recorded.to_bits() != now.to_bits());
        different.map(move |(index, (before, after))| (recorded, index, *before, *after))
    });
    let (group, index, before, after) = differing.next()?;
    let columns = group.dim.max(1);
    Some(Difference::Values {
        group: group.name.clone(),
        row: index / columns,
        column: index % columns,
        recorded: before,
        now: after,
        different: 1 + differing.count(),
    })
}
