//! Predicted against recorded commands, open loop: the chunks move nothing.

use serde::Serialize;

use super::commands::Commands;
use super::errors::{Errors, Place, Sums};
use super::events::Predicted;
use super::labels::Labels;
use super::wiring::CommandTopic;
use crate::contract::{ActionGroup, Representation};
use crate::node::messages::RecordedChunk;

/// The comparison with recorded commands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpenLoop {
    pub topic: String,
    #[serde(rename = "type")]
    pub message_type: String,
    pub messages: usize,
    /// In the order of the chunk.
    pub groups: Vec<GroupErrors>,
    /// Groups that nothing recorded can be compared with, and why.
    pub not_compared: Vec<NotCompared>,
}

/// Errors of one group. `executed` counts the rows until the next chunk takes over, `horizon` all of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupErrors {
    pub group: String,
    pub executed: Errors,
    pub horizon: Errors,
    pub dimensions: Vec<DimensionErrors>,
}

/// Errors of one column of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DimensionErrors {
    /// The joint's name, or what else the column holds.
    pub label: String,
    pub executed: Errors,
    pub horizon: Errors,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotCompared {
    pub group: String,
    pub why: String,
}

/// Sums over executed rows, and over all.
#[derive(Clone, Default)]
struct Both {
    executed: Sums,
    horizon: Sums,
}

impl Both {
    fn add(&mut self, error: f64, place: Place, is_executed: bool) {
        self.horizon.add(error, place);
        if is_executed {
            self.executed.add(error, place);
        }
    }
}

/// Compares every chunk; `executed` is how many rows of each are executed.
pub fn compare(
    topic: &CommandTopic,
    commands: &Commands,
    predicted: &[Predicted],
    executed: &[usize],
    labels: &Labels,
    dt_ns: i64,
) -> OpenLoop {
    let mut groups = Vec::new();
    let mut not_compared = Vec::new();
    let first = predicted.first().map_or(&[][..], |first| &first.chunk.groups);
    for (number, group) in first.iter().enumerate() {
        if let Some(why) = hindrance(commands, group, labels) {
            not_compared.push(NotCompared { group: group.name.clone(), why });
            continue;
        }
        let mut of_group = Both::default();
        let mut of_dimensions = vec![Both::default(); group.dim];
        for (chunk, (prediction, executed)) in predicted.iter().zip(executed).enumerate() {
            let group = &prediction.chunk.groups[number];
            let stamp_ns = prediction.chunk.stamp_ns;
            for (row, values) in group.values.chunks_exact(group.dim).enumerate() {
                for (column, value) in values.iter().enumerate() {
                    let recorded = recorded(commands, group, column, labels, stamp_ns, row, dt_ns);
                    let Some(recorded) = recorded else { continue };
                    let value = labels.commanded(&group.name, f64::from(*value));
                    let place = Place { chunk, row };
                    let is_executed = row < *executed;
                    of_group.add(value - recorded, place, is_executed);
                    of_dimensions[column].add(value - recorded, place, is_executed);
                }
            }
        }
        let dimensions = of_dimensions.iter().enumerate().map(|(column, sums)| DimensionErrors {
            label: labels.column(&group.name, column),
            executed: sums.executed.errors(),
            horizon: sums.horizon.errors(),
        });
        groups.push(GroupErrors {
            group: group.name.clone(),
            executed: of_group.executed.errors(),
            horizon: of_group.horizon.errors(),
            dimensions: dimensions.collect(),
        });
    }
    OpenLoop {
        topic: topic.name.clone(),
        message_type: topic.message_type.clone(),
        messages: commands.len(),
        groups,
        not_compared,
    }
}

/// The recorded command for one value of a chunk, in the unit of the joint.
pub fn recorded(
    commands: &Commands,
    group: &ActionGroup,
    column: usize,
    labels: &Labels,
    stamp_ns: i64,
    row: usize,
    dt_ns: i64,
) -> Option<f64> {
    match commands {
        Commands::Chunks(_) => commands
            .column(&group.name, column, stamp_ns, row, dt_ns)
            .map(|value| labels.commanded(&group.name, value)),
        _ => commands.joint(labels.joint(&group.name, column)?, stamp_ns, row, dt_ns),
    }
}

/// What keeps a group from being compared, if anything does.
pub fn hindrance(commands: &Commands, group: &ActionGroup, labels: &Labels) -> Option<String> {
    if matches!(commands, Commands::Chunks(_)) {
        return None;
    }
    if group.representation == Representation::Delta {
        return Some("its values are changes per step, not positions".to_owned());
    }
    if group.representation != Representation::Absolute {
        return Some(format!(
            "its values are poses; only a topic of {} has such",
            RecordedChunk::TYPE
        ));
    }
    if labels.joint(&group.name, 0).is_none() {
        return Some(format!("no parameter names its joints (action.{}.joints)", group.name));
    }
    None
}

/// How many rows of every chunk are executed: `execute_steps`, or as many as are due before those of the next chunk.
pub fn executed_rows(predicted: &[Predicted], execute_steps: usize, dt_ns: i64) -> Vec<usize> {
    let mut rows: Vec<usize> = Vec::with_capacity(predicted.len());
    for (number, prediction) in predicted.iter().enumerate() {
        let horizon = prediction.chunk.horizon;
        let next =
            predicted.get(number + 1).filter(|next| next.moment.era == prediction.moment.era);
        let steps = match next {
            _ if execute_steps > 0 => execute_steps,
            Some(next) => {
                let apart_ns = next.chunk.stamp_ns.saturating_sub(prediction.chunk.stamp_ns);
                usize::try_from((apart_ns + dt_ns / 2) / dt_ns).unwrap_or(1)
            }
            // The last one is executed as long as the one before.
            None => rows.last().copied().unwrap_or(horizon),
        };
        rows.push(steps.clamp(1, horizon.max(1)));
    }
    rows
}
