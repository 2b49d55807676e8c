//! Messages from the topics as [`crate::plot`] shows them.

use std::time::Duration;

use r2r::builtin_interfaces::msg::Time;
use r2r::gr00t_blackhole::msg::{ActionChunk, ActionGroup};
use r2r::sensor_msgs::msg::JointState;

use super::representation;
use crate::plot::{ChunkView, Column, GroupView, Observed, RaggedGroup};

/// Why a chunk message cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    #[error(transparent)]
    Ragged(#[from] RaggedGroup),
    #[error("group {group} has {found} rows; the chunk says {horizon}")]
    Rows { group: String, found: usize, horizon: u32 },
    #[error("group {group} has {names} names for {dim} columns")]
    Names { group: String, names: usize, dim: u32 },
}

/// The chunk, received at `now_ns` (nanoseconds, the clock of the stamps).
///
/// # Errors
/// A message whose sizes contradict each other.
pub fn chunk_view(message: &ActionChunk, now_ns: i64) -> Result<ChunkView, ViewError> {
    let stamp_ns = nanoseconds(&message.header.stamp);
    let age_ns = u64::try_from(now_ns.saturating_sub(stamp_ns));
    let stage = |timing: &r2r::gr00t_blackhole::msg::StageTiming| {
        let time = Duration::try_from_secs_f64(timing.seconds).unwrap_or_default();
        (timing.stage.clone(), time)
    };
    Ok(ChunkView {
        version: message.version.clone(),
        embodiment: message.embodiment.clone(),
        instruction: message.instruction.clone(),
        seed: (!message.noise_given).then_some(message.seed),
        stamp_ns,
        dt_s: message.dt,
        stages: message.timings.iter().map(stage).collect(),
        age: age_ns.ok().map(Duration::from_nanos),
        groups: message
            .groups
            .iter()
            .map(|group| group_view(group, message.horizon))
            .collect::<Result<_, _>>()?,
    })
}

fn group_view(group: &ActionGroup, horizon: u32) -> Result<GroupView, ViewError> {
    let dim = group.dim as usize;
    let names = [&group.joint_names, &group.columns].map(|names| names.len());
    if let Some(wrong) = names.into_iter().find(|count| *count != 0 && *count != dim) {
        return Err(ViewError::Names { group: group.name.clone(), names: wrong, dim: group.dim });
    }
    let (meaning, unit) = meaning(group.representation);
    let columns =
        (0..dim).map(|index| Column { label: label(group, index), unit: unit(index).into() });
    // A claimed dimension without values must not make room for itself.
    let columns = if group.values.len() < dim { vec![] } else { columns.collect() };
    let view = GroupView::new(&group.name, meaning, columns, group.values.clone())?;
    if view.rows() != horizon as usize {
        return Err(ViewError::Rows { group: group.name.clone(), found: view.rows(), horizon });
    }
    Ok(view)
}

fn label(group: &ActionGroup, index: usize) -> String {
    let joint = group.joint_names.get(index).cloned();
    let column = || group.columns.get(index).map(|column| format!("{} {column}", group.name));
    joint.or_else(column).unwrap_or_else(|| format!("{}[{index}]", group.name))
}

/// What the values are, and the unit of each column where the message's definition fixes it.
fn meaning(number: u8) -> (&'static str, fn(usize) -> &'static str) {
    /// Columns of the position in a pose.
    const POSITION: usize = 3;
    fn none(_: usize) -> &'static str {
        ""
    }
    fn radians(_: usize) -> &'static str {
        "rad"
    }
    fn metres(_: usize) -> &'static str {
        "m"
    }
    fn metres_then_nothing(column: usize) -> &'static str {
        if column < POSITION { "m" } else { "" }
    }
    fn metres_then_radians(column: usize) -> &'static str {
        if column < POSITION { "m" } else { "rad" }
    }
    match number {
        representation::JOINT_POSITION => ("joint positions", radians),
        representation::VALUE => ("absolute values", none),
        representation::POSE_ROT6D => ("pose", metres_then_nothing),
        representation::POSE_ROTVEC => ("pose", metres_then_radians),
        representation::POSE_MATRIX => ("pose", none),
        representation::VELOCITY => ("velocities", none),
        representation::DELTA => ("change per step", none),
        representation::POSITION => ("position", metres),
        representation::ROTATION_ROTVEC | representation::ROTATION_EULER => ("rotation", radians),
        representation::ROTATION_QUATERNION
        | representation::ROTATION_ROT6D
        | representation::ROTATION_MATRIX => ("rotation", none),
        _ => ("values of unknown meaning", none),
    }
}

/// A joint state, unless its arrays contradict each other.
pub fn observed(state: &JointState) -> Option<Observed> {
    let values = state.name.iter().cloned().zip(state.position.iter().copied());
    (state.name.len() == state.position.len())
        .then(|| Observed { stamp_ns: nanoseconds(&state.header.stamp), values: values.collect() })
}

fn nanoseconds(time: &Time) -> i64 {
    i64::from(time.sec) * 1_000_000_000 + i64::from(time.nanosec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::table;

    fn message() -> ActionChunk {
        let group = ActionGroup {
            name: "waist".into(),
            representation: representation::JOINT_POSITION,
            dim: 3,
            joint_names: ["yaw", "pitch", "roll"].map(|axis| format!("waist_{axis}_joint")).into(),
            values: (0..6).map(|value| value as f32).collect(),
            ..Default::default()
        };
        let mut chunk = ActionChunk {
            version: "n16".into(),
            horizon: 2,
            dt: 0.05,
            groups: vec![group],
            ..Default::default()
        };
        chunk.header.stamp = Time { sec: 5, nanosec: 250_000_000 };
        chunk
    }

    #[test]
    fn a_chunk_keeps_names_values_and_age() {
        let view = chunk_view(&message(), 5_500_000_000).unwrap();
        assert_eq!((view.stamp_ns, view.age), (5_250_000_000, Some(Duration::from_millis(250))));
        let text = table(&view, 1, view.stamp_ns);
        assert!(text.contains("2 x 3") && text.contains("last  +3.000 +4.000 +5.000"), "{text}");
        assert!(text.contains("joint positions [rad]"), "{text}");
        // A stamp from the future has no age.
        assert_eq!(chunk_view(&message(), 0).unwrap().age, None);
    }

    #[test]
    fn contradicting_sizes_are_refused() {
        let mut rows = message();
        rows.horizon = 3;
        assert!(matches!(chunk_view(&rows, 0), Err(ViewError::Rows { found: 2, horizon: 3, .. })));
        let mut names = message();
        names.groups[0].joint_names.pop();
        assert!(matches!(chunk_view(&names, 0), Err(ViewError::Names { names: 2, dim: 3, .. })));
        let mut huge = message();
        huge.groups[0].joint_names.clear();
        huge.groups[0].dim = u32::MAX;
        assert!(matches!(chunk_view(&huge, 0), Err(ViewError::Ragged(_))));
    }

    #[test]
    fn joint_states_with_short_arrays_are_left_out() {
        let mut state = JointState { name: vec!["a".into(), "b".into()], ..Default::default() };
        state.position = vec![1.0];
        assert_eq!(observed(&state), None);
        state.position.push(2.0);
        assert_eq!(observed(&state).unwrap().values["b"], 2.0);
    }
}
