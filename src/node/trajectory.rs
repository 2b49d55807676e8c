//! The joint positions of a chunk as a trajectory that a controller accepts unchanged.

use super::state::affine::AffineMap;
use crate::contract::{ActionChunk, Representation};

/// Joint positions over time; never empty, times strictly increasing, every point as long as `joint_names`.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    /// Start of all times; 0 for the moment of publication.
    pub stamp_ns: i64,
    pub joint_names: Vec<String>,
    pub points: Vec<Point>,
}

/// Where the joints are to be at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub positions: Vec<f64>,
    /// After [`Trajectory::stamp_ns`].
    pub time_from_start_ns: i64,
}

/// What the times of a trajectory count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The stamp of the observation.
    Observation,
    /// The moment of publication; the stamp is 0, which a controller takes for now.
    Publication,
}

/// A trajectory, and what was left out of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cut {
    /// `None` if nothing is left: no group with joints, or every point in the past.
    pub trajectory: Option<Trajectory>,
    /// Points that were due too early.
    pub dropped: usize,
}

/// What an action group moves.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionJoints {
    pub group: String,
    /// One name per column; empty for a group that is not made of joints.
    pub joints: Vec<String>,
    /// From the group's values to joint positions, where they are not the same.
    pub map: Option<AffineMap>,
}

/// Writes the trajectory of all groups of absolute values that have joint names.
///
/// The command of row `i` is reached at the end of its control step: `(i + 1) * dt_ns` after the observation. Points
/// that are due before `now_ns + lead_ns` are left out.
pub fn trajectory(
    chunk: &ActionChunk,
    joints: &[ActionJoints],
    dt_ns: i64,
    now_ns: i64,
    lead_ns: i64,
    start: Start,
) -> Cut {
    let mut joint_names = Vec::new();
    let mut columns = Vec::new();
    for group in &chunk.groups {
        let moved = joints.iter().find(|moved| moved.group == group.name);
        let names = moved.map_or(&[][..], |moved| &moved.joints);
        let whole = group.dim > 0
            && names.len() == group.dim
            && group.values.len() == chunk.horizon * group.dim;
        if group.representation == Representation::Absolute && whole {
            joint_names.extend(names.iter().cloned());
            columns.push((group.dim, &group.values, moved.and_then(|moved| moved.map)));
        }
    }
    if joint_names.is_empty() {
        return Cut { trajectory: None, dropped: 0 };
    }
    let earliest = now_ns.saturating_add(lead_ns.max(0));
    let (stamp_ns, start_ns) = match start {
        Start::Observation => (chunk.stamp_ns, chunk.stamp_ns),
        Start::Publication => (0, now_ns),
    };
    let mut points = Vec::with_capacity(chunk.horizon);
    for row in 0..chunk.horizon {
        let due = chunk.stamp_ns.saturating_add(dt_ns.saturating_mul(row as i64 + 1));
        if due < earliest || due <= now_ns {
            continue;
        }
        let of_row = |(dim, values, map): &(usize, &Vec<f32>, Option<AffineMap>)| {
            let row = values[row * dim..(row + 1) * dim].iter().map(|&value| f64::from(value));
            row.map(|value| map.map_or(value, |map| map.apply(value))).collect::<Vec<f64>>()
        };
        let positions = columns.iter().flat_map(of_row).collect();
        let time_from_start_ns = due.saturating_sub(start_ns);
        points.push(Point { positions, time_from_start_ns });
    }
    let dropped = chunk.horizon - points.len();
    let trajectory = (!points.is_empty()).then_some(Trajectory { stamp_ns, joint_names, points });
    Cut { trajectory, dropped }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{ActionGroup, StageTimings, Version};
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;
    const DT: i64 = 50 * MS;
    const STAMPED: Start = Start::Observation;

    fn group(
        name: &str,
        representation: Representation,
        dim: usize,
        horizon: usize,
    ) -> ActionGroup {
        let values = (0..horizon * dim).map(|i| i as f32 / 8.0).collect();
        ActionGroup { name: name.to_owned(), representation, dim, values }
    }

    fn chunk(horizon: usize) -> ActionChunk {
        ActionChunk {
            version: Version::N16,
            embodiment: "gr1".to_owned(),
            instruction: "wave".to_owned(),
            seed: Some(42),
            stamp_ns: 10_000 * MS,
            horizon,
            groups: vec![
                group("arm", Representation::Absolute, 2, horizon),
                group("eef", Representation::PoseRot6d, 9, horizon),
                group("step", Representation::Delta, 1, horizon),
                group("waist", Representation::Absolute, 1, horizon),
                group("mode", Representation::Absolute, 1, horizon),
            ],
            normalized: vec![],
            timings: StageTimings::default(),
        }
    }

    fn joints() -> Vec<ActionJoints> {
        let named = |group: &str, joints: &[&str]| ActionJoints {
            group: group.to_owned(),
            joints: joints.iter().map(|&joint| joint.to_owned()).collect(),
            map: None,
        };
        vec![
            named("arm", &["shoulder", "elbow"]),
            named("waist", &["yaw"]),
            named("step", &["wheel"]),
        ]
    }

    #[test]
    fn joint_groups_side_by_side_row_by_row() {
        let cut = trajectory(&chunk(3), &joints(), DT, 10_000 * MS, 0, STAMPED);
        let made = cut.trajectory.expect("not empty");
        assert_eq!(made.joint_names, ["shoulder", "elbow", "yaw"]);
        assert_eq!(made.stamp_ns, 10_000 * MS);
        let rows: Vec<_> =
            made.points.iter().map(|p| (p.time_from_start_ns / MS, p.positions.clone())).collect();
        let expected = [
            (50, vec![0.0, 0.125, 0.0]),
            (100, vec![0.25, 0.375, 0.125]),
            (150, vec![0.5, 0.625, 0.25]),
        ];
        assert_eq!(rows, expected);
        assert_eq!(cut.dropped, 0);
    }

    #[test]
    fn case_27_points_in_the_past_are_dropped_and_counted() {
        let times = |now_ms: i64, lead_ms: i64| {
            let cut = trajectory(&chunk(4), &joints(), DT, now_ms * MS, lead_ms * MS, STAMPED);
            let points = cut.trajectory.map_or_else(Vec::new, |made| made.points);
            (points.iter().map(|p| p.time_from_start_ns / MS).collect::<Vec<_>>(), cut.dropped)
        };
        assert_eq!(times(10_120, 0), (vec![150, 200], 2));
        assert_eq!(times(10_100, 0), (vec![150, 200], 2));
        assert_eq!(times(10_100, 60), (vec![200], 3));
        assert_eq!(times(10_200, 0), (vec![], 4));
        assert_eq!(times(99_000, 0), (vec![], 4));
    }

    #[test]
    fn case_27_a_stamp_of_zero_counts_from_the_moment_of_publication() {
        let made = |now_ms: i64, lead_ms: i64| {
            let (now, lead) = (now_ms * MS, lead_ms * MS);
            trajectory(&chunk(4), &joints(), DT, now, lead, Start::Publication)
        };
        let cut = made(10_120, 0);
        let trajectory = cut.trajectory.expect("two points are left");
        assert_eq!((trajectory.stamp_ns, cut.dropped), (0, 2));
        let times: Vec<_> =
            trajectory.points.iter().map(|p| (p.time_from_start_ns / MS, p.positions[0])).collect();
        assert_eq!(times, [(30, 0.5), (80, 0.75)]);
        let late = made(10_120, 40).trajectory.expect("one point is left");
        assert_eq!(late.points[0].time_from_start_ns, 80 * MS);
        assert_eq!(made(10_200, 0), Cut { trajectory: None, dropped: 4 });
    }

    #[test]
    fn a_gripper_moves_in_the_units_of_its_joint() {
        let mut joints = joints();
        joints[1].map = Some(AffineMap::new([0.0, 1.0], [0.0, 0.8]));
        let made =
            trajectory(&chunk(3), &joints, DT, 10_000 * MS, 0, STAMPED).trajectory.expect("made");
        let last = &made.points[2].positions;
        assert_eq!(last[..2], [0.5, 0.625]);
        assert!((last[2] - 0.2).abs() < 1e-15, "{last:?}");
    }

    #[test]
    fn without_joints_there_is_no_trajectory() {
        assert_eq!(
            trajectory(&chunk(4), &[], DT, 0, 0, STAMPED),
            Cut { trajectory: None, dropped: 0 }
        );
        assert_eq!(trajectory(&chunk(0), &joints(), DT, 0, 0, STAMPED).trajectory, None);
        let mut short = joints();
        short[0].joints.pop();
        let made = trajectory(&chunk(4), &short, DT, 0, 0, STAMPED).trajectory.expect("the waist");
        assert_eq!(made.joint_names, ["yaw"]);
    }

    proptest! {
        #[test]
        fn case_28_never_empty_times_increasing_sizes_equal(
            horizon in 0usize..60,
            dt in 1i64..2_000_000_000,
            now in any::<i64>(),
            lead in any::<i64>(),
        ) {
            for (now, start) in [now, 10_000 * MS + now % (60 * dt)]
                .into_iter()
                .flat_map(|now| [(now, STAMPED), (now, Start::Publication)])
            {
                if let Some(made) = trajectory(&chunk(horizon), &joints(), dt, now, lead, start).trajectory {
                    prop_assert!(!made.points.is_empty());
                    prop_assert!(made.points.iter().all(|p| p.positions.len() == made.joint_names.len()));
                    let start_ns = if start == STAMPED { made.stamp_ns } else { now };
                    prop_assert!(made.points.iter().all(|p| p.time_from_start_ns > now.saturating_sub(start_ns)));
                    prop_assert!(made.points.windows(2).all(|w| w[0].time_from_start_ns < w[1].time_from_start_ns));
                }
            }
        }
    }
}
