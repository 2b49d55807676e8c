//! What a chunk commands over time.

use super::super::poses::{PoseValues, poses};
use super::super::settings::PoseSettings;
use super::super::trajectory::ActionJoints;
use crate::contract::{ActionChunk, ActionGroup, Representation};

/// The commands of a chunk for joints and poses. The command of row `i` is reached `(i + 1) * dt_ns` after the
/// observation, and those between two rows lie on the straight way between them.
#[derive(Clone, Debug)]
pub struct Commands {
    stamp_ns: i64,
    dt_ns: i64,
    rows: i64,
    pub groups: Vec<Group>,
}

/// The commands of one group, one per row.
#[derive(Clone, Debug)]
pub struct Group {
    pub name: String,
    pub rows: Rows,
}

#[derive(Clone, Debug)]
pub enum Rows {
    /// Positions of joints, in their units.
    Joints(Vec<Vec<f64>>),
    Poses(Vec<PoseValues>),
}

impl Commands {
    /// The groups of the chunk that command positions. `None` for a chunk without rows.
    pub fn new(
        chunk: &ActionChunk,
        joints: &[ActionJoints],
        poses: &[PoseSettings],
        dt_ns: i64,
    ) -> Option<Self> {
        let rows = i64::try_from(chunk.horizon).ok().filter(|rows| *rows > 0 && dt_ns > 0)?;
        let groups = chunk.groups.iter().filter_map(|group| {
            let pose = poses.iter().find(|pose| pose.group == group.name);
            let rows = match pose {
                Some(pose) => pose_rows(group, pose),
                None => joint_rows(group, joints),
            };
            let whole = rows.filter(|rows| rows.len() == chunk.horizon)?;
            Some(Group { name: group.name.clone(), rows: whole })
        });
        Some(Self { stamp_ns: chunk.stamp_ns, dt_ns, rows, groups: groups.collect() })
    }

    pub fn dt_ns(&self) -> i64 {
        self.dt_ns
    }

    /// When row number `row` is due.
    pub fn due_ns(&self, row: i64) -> i64 {
        self.stamp_ns.saturating_add(self.dt_ns.saturating_mul(row.saturating_add(1)))
    }

    pub fn first_ns(&self) -> i64 {
        self.due_ns(0)
    }

    pub fn last_ns(&self) -> i64 {
        self.due_ns(self.rows - 1)
    }

    /// The first row that is due at `at_ns` or later; `None` if all are due before.
    pub fn row_from(&self, at_ns: i64) -> Option<i64> {
        let after_first = at_ns.saturating_sub(self.first_ns()).max(0);
        let row = after_first.saturating_add(self.dt_ns - 1) / self.dt_ns;
        (row < self.rows).then_some(row)
    }

    /// Between which rows `at_ns` lies, and how far from the first to the second. Before the first row, and after the
    /// last, that row holds.
    fn place(&self, at_ns: i64) -> (usize, usize, f64) {
        let last = self.rows - 1;
        let along = at_ns.saturating_sub(self.first_ns()).clamp(0, last * self.dt_ns);
        let (row, rest) = (along / self.dt_ns, along % self.dt_ns);
        let next = (row + 1).min(last);
        (row as usize, next as usize, rest as f64 / self.dt_ns as f64)
    }

    /// The positions that a group commands at a moment.
    pub fn joints_at(&self, rows: &[Vec<f64>], at_ns: i64) -> Vec<f64> {
        let (row, next, part) = self.place(at_ns);
        let pairs = rows[row].iter().zip(&rows[next]);
        pairs.map(|(from, to)| from + (to - from) * part).collect()
    }

    /// The pose that a group commands at a moment.
    pub fn pose_at(&self, rows: &[PoseValues], at_ns: i64) -> PoseValues {
        let (row, next, part) = self.place(at_ns);
        rows[row].towards(&rows[next], part)
    }
}

impl Rows {
    fn len(&self) -> usize {
        match self {
            Rows::Joints(rows) => rows.len(),
            Rows::Poses(rows) => rows.len(),
        }
    }
}

fn joint_rows(group: &ActionGroup, joints: &[ActionJoints]) -> Option<Rows> {
    let moved = joints.iter().find(|moved| moved.group == group.name)?;
    let are_joints = group.representation == Representation::Absolute
        && group.dim > 0
        && moved.joints.len() == group.dim;
    let position = |&value: &f32| {
        let value = f64::from(value);
        moved.map.map_or(value, |map| map.apply(value))
    };
    let rows = group.values.chunks_exact(group.dim.max(1));
    are_joints.then(|| Rows::Joints(rows.map(|row| row.iter().map(position).collect()).collect()))
}

/// Rows that are no poses are not measured; whoever publishes them says so.
fn pose_rows(group: &ActionGroup, pose: &PoseSettings) -> Option<Rows> {
    poses(group, pose.format).ok().map(Rows::Poses)
}
