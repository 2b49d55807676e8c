//! Chunks for people: a text table per chunk and a picture of many, over time.
//!
//! Nothing here knows ROS. Whoever has chunks turns them into [`ChunkView`]s.

mod figure;
mod panels;
mod scale;
mod table;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::contract::{ActionChunk, ActionGroup, Representation};

pub(crate) use figure::{FONT, encode_png, register_font};
pub use figure::{PlotError, save_png};
pub use table::table;

/// A chunk as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkView {
    pub version: String,
    pub embodiment: String,
    pub instruction: String,
    /// `None` when the noise was given explicitly.
    pub seed: Option<u64>,
    /// Stamp of the observation, nanoseconds.
    pub stamp_ns: i64,
    /// Time between two rows, seconds.
    pub dt_s: f64,
    /// Name and time of each stage of the prediction, in order.
    pub stages: Vec<(String, Duration)>,
    /// Time from the observation to the arrival of the chunk; `None` where nothing travelled.
    pub age: Option<Duration>,
    pub groups: Vec<GroupView>,
}

/// One group of a chunk as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupView {
    name: String,
    meaning: String,
    columns: Vec<Column>,
    values: Vec<f32>,
}

/// One dimension of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The joint's name, or what else the column holds.
    pub label: String,
    /// Such as `rad`; empty where the data set alone knows it.
    pub unit: String,
}

/// Values of a group that are not rows of its columns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("group {group} has {values} values, which is no whole number of rows of {columns} columns")]
pub struct RaggedGroup {
    pub group: String,
    pub values: usize,
    pub columns: usize,
}

impl GroupView {
    /// `meaning` says in two or three words what the values are, such as `joint positions`; `values` is
    /// `[rows, columns.len()]`, row-major.
    ///
    /// # Errors
    /// [`RaggedGroup`] when the values are not whole rows, or when there are no columns.
    pub fn new(
        name: &str,
        meaning: &str,
        columns: Vec<Column>,
        values: Vec<f32>,
    ) -> Result<Self, RaggedGroup> {
        if columns.is_empty() || !values.len().is_multiple_of(columns.len()) {
            return Err(RaggedGroup {
                group: name.into(),
                values: values.len(),
                columns: columns.len(),
            });
        }
        Ok(Self { name: name.into(), meaning: meaning.into(), columns, values })
    }

    /// The group of a chunk that came straight from a policy. `joints` are the names of its columns' joints; empty
    /// where they are not known.
    ///
    /// # Errors
    /// As [`GroupView::new`].
    pub fn from_contract(group: &ActionGroup, joints: &[String]) -> Result<Self, RaggedGroup> {
        let meaning = match group.representation {
            Representation::Absolute if joints.is_empty() => "absolute values",
            Representation::Absolute => "joint positions",
            Representation::PoseRot6d | Representation::PoseRotvec | Representation::PoseMatrix => {
                "pose"
            }
            Representation::Delta => "change per step",
        };
        let columns = (0..group.dim).map(|index| column(group, joints, index)).collect();
        Self::new(&group.name, meaning, columns, group.values.clone())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn rows(&self) -> usize {
        self.values.len() / self.columns.len()
    }

    /// Row `index` of the values.
    fn row(&self, index: usize) -> &[f32] {
        &self.values[index * self.columns.len()..][..self.columns.len()]
    }

    /// The unit that all columns share, or nothing.
    fn common_unit(&self) -> &str {
        let unit = &self.columns[0].unit;
        if self.columns.iter().all(|column| column.unit == *unit) { unit } else { "" }
    }
}

fn column(group: &ActionGroup, joints: &[String], index: usize) -> Column {
    const POSITION: [&str; 3] = ["x", "y", "z"];
    let numbered = || format!("{}[{index}]", group.name);
    let (label, unit) = match (group.representation, joints.get(index)) {
        (Representation::Absolute, Some(joint)) => (joint.clone(), "rad"),
        (Representation::PoseRot6d | Representation::PoseRotvec, _) if index < POSITION.len() => {
            (format!("{} {}", group.name, POSITION[index]), "m")
        }
        (Representation::PoseRotvec, _) => (numbered(), "rad"),
        _ => (numbered(), ""),
    };
    Column { label, unit: unit.into() }
}

impl ChunkView {
    /// A chunk that came straight from a policy. `joints_of` gives the joint names of a group's columns, or nothing
    /// where they are not known; `dt_s` is the time between two rows in seconds.
    ///
    /// # Errors
    /// As [`GroupView::new`].
    pub fn from_contract<'a>(
        chunk: &ActionChunk,
        dt_s: f64,
        joints_of: impl Fn(&str) -> &'a [String],
    ) -> Result<Self, RaggedGroup> {
        let view = |group: &ActionGroup| GroupView::from_contract(group, joints_of(&group.name));
        Ok(Self {
            version: chunk.version.name().into(),
            embodiment: chunk.embodiment.clone(),
            instruction: chunk.instruction.clone(),
            seed: chunk.seed,
            stamp_ns: chunk.stamp_ns,
            dt_s,
            stages: chunk.timings.stages().map(|(stage, time)| (stage.into(), time)).into(),
            age: None,
            groups: chunk.groups.iter().map(view).collect::<Result<_, _>>()?,
        })
    }
}

/// What the robot reported at one moment, under the labels of the columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Header stamp, nanoseconds.
    pub stamp_ns: i64,
    pub values: BTreeMap<String, f64>,
}

/// One line of text that fits `limit` characters and holds no control characters.
fn one_line(text: &str, limit: usize) -> String {
    let clean = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    if text.chars().count() <= limit {
        return clean.collect();
    }
    clean.take(limit.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A chunk of `rows` rows with two groups whose values are all different.
    pub(crate) fn chunk(stamp_ns: i64, rows: usize) -> ChunkView {
        let group = |name: &str, dim: usize, offset: f32| {
            let column = |i| Column { label: format!("{name}_{i}_joint"), unit: "rad".into() };
            let value = |i: usize| offset + 0.01 * i as f32 + 1e-10 * stamp_ns as f32;
            let values = (0..rows * dim).map(value).collect();
            GroupView::new(name, "joint positions", (0..dim).map(column).collect(), values).unwrap()
        };
        ChunkView {
            version: "n16".into(),
            embodiment: "gr1".into(),
            instruction: "pick the pear".into(),
            seed: Some(42),
            stamp_ns,
            dt_s: 0.05,
            stages: vec![
                ("encode".into(), Duration::from_millis(2)),
                ("vision".into(), Duration::from_millis(70)),
            ],
            age: Some(Duration::from_millis(181)),
            groups: vec![group("left_arm", 7, -1.0), group("waist", 3, 0.5)],
        }
    }

    #[test]
    fn ragged_groups_are_refused() {
        let columns = vec![Column { label: "a".into(), unit: String::new() }; 3];
        let error = GroupView::new("arm", "values", columns, vec![0.0; 7]).unwrap_err();
        assert!(error.to_string().contains("group arm has 7 values"), "{error}");
        assert!(GroupView::new("arm", "values", vec![], vec![]).is_err());
    }

    #[test]
    fn columns_of_a_policy_chunk_carry_names_and_units() {
        let group = |representation, dim| ActionGroup {
            name: "eef".into(),
            representation,
            dim,
            values: vec![0.0; dim],
        };
        let labels = |view: GroupView| -> Vec<(String, String)> {
            view.columns.into_iter().map(|c| (c.label, c.unit)).collect()
        };
        let pose = GroupView::from_contract(&group(Representation::PoseRotvec, 6), &[]).unwrap();
        assert_eq!(
            labels(pose)[2..4],
            [("eef z".into(), "m".into()), ("eef[3]".into(), "rad".into())]
        );
        let joints = ["elbow_joint".to_string()];
        let named = GroupView::from_contract(&group(Representation::Absolute, 1), &joints).unwrap();
        assert_eq!(labels(named), [("elbow_joint".into(), "rad".into())]);
        let unnamed = GroupView::from_contract(&group(Representation::Absolute, 1), &[]).unwrap();
        assert_eq!(labels(unnamed), [("eef[0]".into(), String::new())]);
    }

    #[test]
    fn long_and_multiline_text_is_cut_to_one_line() {
        assert_eq!(one_line("a\nb", 10), "a b");
        assert_eq!(one_line("größer", 4), "grö…");
    }
}
