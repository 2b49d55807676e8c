//! What the robot was commanded to do, as a function of time.
//!
//! * A trajectory says where joints are to be: between two of its points they are on the straight way from one to the
//!   other, and it holds until the next one takes over. Row `i` of a chunk is reached at `stamp + (i + 1) * dt`, and is
//!   compared with the trajectory there.
//! * Joint states that are targets are commands given at a time. Row `i` is the command for the control step that begins
//!   at `stamp + i * dt`, and is compared with the target that is nearest to that moment, at most half a control step
//!   away; else with the one that was given before and is still in force.
//! * Recorded chunks are compared group by group, at the times of the rows as for trajectories.

use std::collections::BTreeMap;

use super::chunks::Recorded;
use crate::node::messages::{JointState, JointTrajectory, RecordedChunk};

/// A target is in force for so long when no other follows.
const HOLD_NS: i64 = 500_000_000;

/// Recorded commands of one topic.
#[derive(Clone, Debug, PartialEq)]
pub enum Commands {
    Trajectories(Vec<Timed<JointTrajectory>>),
    Targets(Vec<Timed<BTreeMap<String, f64>>>),
    Chunks(Vec<Recorded>),
}

/// Something with the moment from which on it counts, nanoseconds of the node's clock.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed<T> {
    pub from_ns: i64,
    pub value: T,
}

impl Commands {
    /// No commands yet, of messages of this type.
    pub fn of_type(message_type: &str) -> Option<Self> {
        match message_type {
            JointTrajectory::TYPE => Some(Commands::Trajectories(Vec::new())),
            JointState::TYPE => Some(Commands::Targets(Vec::new())),
            RecordedChunk::TYPE => Some(Commands::Chunks(Vec::new())),
            _ => None,
        }
    }

    /// Takes in a message that was received at `log_ns`, when the node's clock showed `ros_ns`.
    ///
    /// # Errors
    /// The bytes are no such message, or positions and names do not belong together.
    pub fn take(&mut self, data: &[u8], log_ns: i64, ros_ns: i64) -> Result<(), String> {
        match self {
            Commands::Trajectories(known) => {
                let value = JointTrajectory::from_cdr(data).map_err(|error| error.to_string())?;
                known.push(Timed { from_ns: ros_ns, value });
            }
            Commands::Targets(known) => {
                let state = JointState::from_cdr(data).map_err(|error| error.to_string())?;
                let (names, positions) = (state.name.len(), state.position.len());
                if names != positions {
                    return Err(format!("{names} names, but {positions} positions"));
                }
                let value = state.name.into_iter().zip(state.position).collect();
                let from_ns = if state.stamp_ns == 0 { ros_ns } else { state.stamp_ns };
                known.push(Timed { from_ns, value });
            }
            Commands::Chunks(known) => {
                let chunk = RecordedChunk::from_cdr(data).map_err(|error| error.to_string())?;
                known.push(Recorded { log_ns, chunk });
            }
        }
        Ok(())
    }

    /// Puts everything in the order of its moments.
    pub fn sort(&mut self) {
        match self {
            Commands::Trajectories(known) => known.sort_by_key(|timed| timed.from_ns),
            Commands::Targets(known) => known.sort_by_key(|timed| timed.from_ns),
            Commands::Chunks(known) => known.sort_by_key(|recorded| recorded.chunk.completed_ns),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Commands::Trajectories(known) => known.len(),
            Commands::Targets(known) => known.len(),
            Commands::Chunks(known) => known.len(),
        }
    }

    /// The command for a joint in row `row` of a chunk; `None` where none is known.
    pub fn joint(&self, joint: &str, stamp_ns: i64, row: usize, dt_ns: i64) -> Option<f64> {
        match self {
            Commands::Trajectories(known) => {
                let at_ns = reached_ns(stamp_ns, row, dt_ns);
                let last = known.partition_point(|timed| timed.from_ns <= at_ns);
                // The newest trajectory that moves the joint is in force.
                let mut moving = known[..last].iter().rev();
                moving.find_map(|timed| {
                    let column = timed.value.joint_names.iter().position(|name| name == joint)?;
                    Some(on_the_way(timed, column, at_ns))
                })?
            }
            Commands::Targets(known) => {
                let at_ns = begins_ns(stamp_ns, row, dt_ns);
                target(known, joint, at_ns, dt_ns)
            }
            Commands::Chunks(_) => None,
        }
    }

    /// The command for a column of a group in row `row` of a chunk, where chunks are what was recorded.
    pub fn column(
        &self,
        group: &str,
        column: usize,
        stamp_ns: i64,
        row: usize,
        dt_ns: i64,
    ) -> Option<f64> {
        let Commands::Chunks(known) = self else { return None };
        let at_ns = reached_ns(stamp_ns, row, dt_ns);
        // The chunk of the same observation says it itself; else the newest that was complete by then.
        let same = known.iter().find(|recorded| recorded.chunk.stamp_ns == stamp_ns);
        let last = known.partition_point(|recorded| recorded.chunk.completed_ns <= at_ns);
        let recorded = same.or_else(|| known[..last].last())?;
        let chunk = &recorded.chunk;
        let of = chunk.groups.iter().find(|of| of.name == group && column < of.dim)?;
        let value = |row: usize| f64::from(of.values[row * of.dim + column]);
        let along_ns = at_ns.saturating_sub(reached_ns(chunk.stamp_ns, 0, chunk.dt_ns));
        if along_ns < 0 || chunk.horizon == 0 {
            return None;
        }
        let (before, rest) = ((along_ns / chunk.dt_ns) as usize, along_ns % chunk.dt_ns);
        match (before < chunk.horizon, before + 1 < chunk.horizon) {
            (true, _) if rest == 0 => Some(value(before)),
            (true, true) => {
                let part = rest as f64 / chunk.dt_ns as f64;
                Some(value(before) + (value(before + 1) - value(before)) * part)
            }
            _ => None,
        }
    }
}

/// When row `row` is reached.
pub fn reached_ns(stamp_ns: i64, row: usize, dt_ns: i64) -> i64 {
    begins_ns(stamp_ns, row.saturating_add(1), dt_ns)
}

/// When the control step of row `row` begins.
fn begins_ns(stamp_ns: i64, row: usize, dt_ns: i64) -> i64 {
    stamp_ns.saturating_add(dt_ns.saturating_mul(row as i64))
}

/// Where a trajectory has a joint at a moment; `None` before its first point and after its last.
fn on_the_way(timed: &Timed<JointTrajectory>, column: usize, at_ns: i64) -> Option<f64> {
    let trajectory = &timed.value;
    let start_ns = if trajectory.stamp_ns == 0 { timed.from_ns } else { trajectory.stamp_ns };
    let along_ns = at_ns.saturating_sub(start_ns);
    let points = &trajectory.points;
    let next = points.iter().position(|point| point.time_from_start_ns >= along_ns)?;
    let to = &points[next];
    if to.time_from_start_ns == along_ns {
        return Some(to.positions[column]);
    }
    let from = &points[next.checked_sub(1)?];
    let span_ns = to.time_from_start_ns - from.time_from_start_ns;
    let part = (along_ns - from.time_from_start_ns) as f64 / span_ns as f64;
    Some(from.positions[column] + (to.positions[column] - from.positions[column]) * part)
}

fn target(
    known: &[Timed<BTreeMap<String, f64>>],
    joint: &str,
    at_ns: i64,
    dt_ns: i64,
) -> Option<f64> {
    let after = known.partition_point(|timed| timed.from_ns <= at_ns);
    let named =
        |timed: &Timed<BTreeMap<String, f64>>| Some((timed.from_ns, *timed.value.get(joint)?));
    let within = |distance_ns: i64| distance_ns <= dt_ns / 2;
    let before = known[..after]
        .iter()
        .rev()
        .take_while(|timed| at_ns - timed.from_ns <= HOLD_NS)
        .find_map(named);
    let next =
        known[after..].iter().take_while(|timed| within(timed.from_ns - at_ns)).find_map(named);
    match (before, next) {
        (Some((before_ns, before)), Some((next_ns, next))) => {
            Some(if next_ns - at_ns < at_ns - before_ns { next } else { before })
        }
        (before, next) => before.or(next).map(|(_, value)| value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::messages::TrajectoryPoint;

    const MS: i64 = 1_000_000;

    fn trajectory(from_ms: i64, points: &[(i64, f64)]) -> Timed<JointTrajectory> {
        let point = |&(ms, position): &(i64, f64)| TrajectoryPoint {
            positions: vec![position],
            time_from_start_ns: ms * MS,
        };
        let value = JointTrajectory {
            stamp_ns: from_ms * MS,
            joint_names: vec!["elbow".to_owned()],
            points: points.iter().map(point).collect(),
        };
        Timed { from_ns: from_ms * MS, value }
    }

    #[test]
    fn trajectories_are_straight_between_points_and_the_newest_counts() {
        let commands = Commands::Trajectories(vec![
            trajectory(1000, &[(50, 0.0), (150, 1.0)]),
            trajectory(1100, &[(50, 5.0), (100, 6.0)]),
        ]);
        // Row i of a chunk stamped 1000 is reached at 1000 + 25 * (i + 1).
        let at = |row| commands.joint("elbow", 1000 * MS, row, 25 * MS);
        assert_eq!(at(0), None);
        assert_eq!(at(1), Some(0.0));
        assert_eq!(at(2), Some(0.25));
        // The second one begins at 1100, and has its first point at 1150.
        assert_eq!(
            [at(3), at(4), at(5), at(6), at(7)],
            [None, None, Some(5.0), Some(5.5), Some(6.0)]
        );
        assert_eq!(at(8), None);
        assert_eq!(commands.joint("wrist", 1000 * MS, 1, 25 * MS), None);
    }

    #[test]
    fn the_nearest_target_counts_and_then_the_one_in_force() {
        let target = |ms: i64, value: f64| Timed {
            from_ns: ms * MS,
            value: BTreeMap::from([("elbow".to_owned(), value)]),
        };
        let commands = Commands::Targets(vec![
            target(1000, 0.0),
            target(1052, 1.0),
            target(1100, 2.0),
            target(2000, 3.0),
        ]);
        let at = |row| commands.joint("elbow", 1000 * MS, row, 50 * MS);
        assert_eq!([at(0), at(1), at(2)], [Some(0.0), Some(1.0), Some(2.0)]);
        assert_eq!([at(3), at(12), at(13)], [Some(2.0), Some(2.0), None]);
        assert_eq!(at(20), Some(3.0));
    }

    #[test]
    fn recorded_chunks_are_compared_column_by_column() {
        let chunk = |stamp_ms: i64, values: &[f32]| Recorded {
            log_ns: 0,
            chunk: RecordedChunk {
                stamp_ns: stamp_ms * MS,
                version: String::new(),
                embodiment: String::new(),
                backend: String::new(),
                instruction: String::new(),
                seed: Some(1),
                horizon: values.len(),
                dt_ns: 50 * MS,
                groups: vec![crate::node::messages::RecordedGroup {
                    name: "arm".to_owned(),
                    dim: 1,
                    values: values.to_vec(),
                }],
                ages: vec![],
                completed_ns: (stamp_ms + 60) * MS,
            },
        };
        let commands =
            Commands::Chunks(vec![chunk(1000, &[1.0, 2.0, 3.0, 4.0]), chunk(1100, &[9.0])]);
        let at = |stamp_ms: i64, row| commands.column("arm", 0, stamp_ms * MS, row, 50 * MS);
        assert_eq!([at(1000, 0), at(1000, 3), at(1000, 4)], [Some(1.0), Some(4.0), None]);
        // Another observation: the chunk that was complete, between its rows.
        assert_eq!(at(1025, 0), Some(1.5));
        assert_eq!(at(1100, 0), Some(9.0));
        assert_eq!(commands.column("leg", 0, 1000 * MS, 0, 50 * MS), None);
    }
}
