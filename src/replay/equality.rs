//! Whether two runs, or a run and the chunks that were recorded, are the same to the last bit.

use std::collections::BTreeMap;

use serde::Serialize;

use super::chunk_file::{Stored, StoredGroup};
use super::events::Predicted;
use super::labels::Labels;

/// The comparison with chunks of before.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Equality {
    /// What these chunks are compared with.
    pub with: String,
    /// Chunks of the same moment.
    pub compared: usize,
    /// Of these, those whose bytes are all the same.
    pub equal: usize,
    /// Of these, those that were made from another observation.
    pub other_observation: usize,
    pub only_here: usize,
    pub only_there: usize,
    /// By group, over all chunks that were compared.
    pub max_abs: BTreeMap<String, f64>,
    pub first_difference: Option<Difference>,
}

/// The first value that is another one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Number of the chunk here, from 0.
    pub chunk: usize,
    /// Seconds since the recording's start.
    pub at_s: f64,
    pub same_observation: bool,
    /// What differs: a value, or what comes before the values.
    pub text: String,
}

impl Equality {
    pub fn new(with: impl Into<String>) -> Self {
        Self { with: with.into(), ..Self::default() }
    }

    /// Whether nothing at all differs.
    pub fn is_exact(&self) -> bool {
        self.equal == self.compared && self.only_here == 0 && self.only_there == 0
    }

    /// Compares a chunk with one of before. `same_observation` where that is known.
    pub fn add(
        &mut self,
        chunk: usize,
        at_s: f64,
        prediction: &Predicted,
        before: &[StoredGroup],
        same_observation: bool,
        labels: &Labels,
    ) {
        self.compared += 1;
        self.other_observation += usize::from(!same_observation);
        let mut text = None;
        for group in &prediction.chunk.groups {
            let found = before.iter().find(|other| other.name == group.name);
            let alike = |other: &&StoredGroup| {
                other.dim == group.dim && other.values.len() == group.values.len()
            };
            let Some(other) = found.filter(alike) else {
                let shape = format!("group {}: another shape, or not there before", group.name);
                text.get_or_insert(shape);
                continue;
            };
            for (at, (here, there)) in group.values.iter().zip(&other.values).enumerate() {
                let apart = (f64::from(*here) - f64::from(*there)).abs();
                let largest = self.max_abs.entry(group.name.clone()).or_default();
                *largest = largest.max(apart);
                if here.to_bits() != there.to_bits() {
                    let (row, column) = (at / group.dim, at % group.dim);
                    let label = labels.column(&group.name, column);
                    text.get_or_insert_with(|| {
                        format!(
                            "group {}, row {row}, {label} (column {column}): {here:?} here, {there:?} before",
                            group.name
                        )
                    });
                }
            }
        }
        match text {
            None => self.equal += 1,
            Some(text) if self.first_difference.is_none() => {
                self.first_difference = Some(Difference { chunk, at_s, same_observation, text });
            }
            Some(_) => {}
        }
    }
}

/// Compares with the chunks of an earlier run, moment by moment.
pub fn with_run(
    name: &str,
    predicted: &[Predicted],
    before: Vec<Stored>,
    labels: &Labels,
    start_ns: i64,
) -> Equality {
    let mut equality = Equality::new(name);
    let mut by_moment: BTreeMap<(i64, i64), Vec<Stored>> = BTreeMap::new();
    for stored in before.into_iter().rev() {
        by_moment.entry((stored.log_ns, stored.moment_ns)).or_default().push(stored);
    }
    for (number, prediction) in predicted.iter().enumerate() {
        let moment = (prediction.moment.log_ns, prediction.moment.ros_ns);
        let Some(stored) = by_moment.get_mut(&moment).and_then(Vec::pop) else {
            equality.only_here += 1;
            continue;
        };
        let same = stored.observation == prediction.observation;
        let at_s = super::seconds_since(start_ns, prediction.moment.log_ns);
        equality.add(number, at_s, prediction, &stored.groups, same, labels);
    }
    equality.only_there = by_moment.values().map(Vec::len).sum();
    equality
}

/// Compares every chunk that was predicted where a recorded one was with that one; `None` if there is no such.
pub fn with_recorded(
    topic: &str,
    predicted: &[Predicted],
    labels: &Labels,
    start_ns: i64,
) -> Option<Equality> {
    let mut equality = Equality::new(topic);
    for (number, prediction) in predicted.iter().enumerate() {
        let Some((recorded, same)) = &prediction.goal else { continue };
        let groups = recorded.chunk.groups.iter().map(|group| StoredGroup {
            name: group.name.clone(),
            dim: group.dim,
            values: group.values.clone(),
        });
        let groups: Vec<StoredGroup> = groups.collect();
        let at_s = super::seconds_since(start_ns, prediction.moment.log_ns);
        equality.add(number, at_s, prediction, &groups, *same, labels);
    }
    (equality.compared > 0).then_some(equality)
}
