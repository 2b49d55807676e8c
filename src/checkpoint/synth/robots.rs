//! The robots of synthetic checkpoints: modalities, and statistics that look like a robot's.

use serde_json::{Map, Value, json};

use super::generator::{fnv1a64, splitmix64};

pub mod n17;

/// What a group's values are, which decides their ranges.
#[derive(Clone, Copy)]
enum Quantity {
    /// Joint angles in radians.
    Angle,
    /// Positions in metres.
    Position,
    /// Opening of a gripper.
    Gripper,
    /// x, y, z and two rows of a rotation matrix.
    PoseRot6d,
    /// x, y, z and axis times angle.
    PoseRotvec,
}

/// A group of state.
struct StateGroup {
    name: &'static str,
    dim: usize,
    quantity: Quantity,
    encoding: Encoding,
}

#[derive(Clone, Copy, PartialEq)]
enum Encoding {
    SinCos,
    MeanStd,
    Bounds,
}

/// A group of actions.
struct ActionGroup {
    name: &'static str,
    dim: usize,
    quantity: Quantity,
    /// Set for groups that are relative to a state group.
    relative: bool,
    /// Type and format as declared.
    declared: [&'static str; 2],
    /// The state group, where it has another name.
    state_key: Option<&'static str>,
    mean_std: bool,
}

pub struct Robot {
    tag: &'static str,
    cameras: &'static [&'static str],
    frame_deltas: &'static [i32],
    state: Vec<StateGroup>,
    action: Vec<ActionGroup>,
    horizon: usize,
    language_key: &'static str,
}

const JOINTS: [&str; 2] = ["NON_EEF", "DEFAULT"];

/// The robots of every synthetic N1.6 checkpoint: one that composes joints, one that is absolute throughout, and one that
/// composes poses.
pub fn robots() -> [Robot; 3] {
    [gr1(), libero("libero_panda"), new_embodiment()]
}

fn gr1() -> Robot {
    let groups =
        [("left_arm", 7), ("right_arm", 7), ("left_hand", 6), ("right_hand", 6), ("waist", 3)];
    let quantity = Quantity::Angle;
    let encoding = Encoding::SinCos;
    Robot {
        tag: "gr1",
        cameras: &["ego_view_bg_crop_pad_res256_freq20"],
        frame_deltas: &[0],
        state: groups.map(|(name, dim)| StateGroup { name, dim, quantity, encoding }).into(),
        action: groups
            .map(|(name, dim)| ActionGroup {
                name,
                dim,
                quantity,
                relative: name != "waist",
                declared: JOINTS,
                state_key: None,
                mean_std: false,
            })
            .into(),
        horizon: 16,
        language_key: "task",
    }
}

/// The arm of LIBERO, which the versions know under different tags.
fn libero(tag: &'static str) -> Robot {
    let pose = [
        ("x", Quantity::Position),
        ("y", Quantity::Position),
        ("z", Quantity::Position),
        ("roll", Quantity::Angle),
        ("pitch", Quantity::Angle),
        ("yaw", Quantity::Angle),
    ];
    let encoding = Encoding::Bounds;
    let mut state: Vec<StateGroup> =
        pose.map(|(name, quantity)| StateGroup { name, dim: 1, quantity, encoding }).into();
    let gripper = Quantity::Gripper;
    state.push(StateGroup { name: "gripper", dim: 2, quantity: gripper, encoding });
    let action = pose.into_iter().chain([("gripper", gripper)]);
    Robot {
        tag,
        cameras: &["image", "wrist_image"],
        frame_deltas: &[0],
        state,
        action: action
            .map(|(name, quantity)| ActionGroup {
                name,
                dim: 1,
                quantity,
                relative: false,
                declared: JOINTS,
                state_key: None,
                mean_std: false,
            })
            .collect(),
        horizon: 16,
        language_key: "annotation.human.action.task_description",
    }
}

fn new_embodiment() -> Robot {
    let state = [
        ("eef_9d", 9, Quantity::PoseRot6d, Encoding::Bounds),
        ("tool_rv", 6, Quantity::PoseRotvec, Encoding::Bounds),
        ("joints", 4, Quantity::Angle, Encoding::MeanStd),
        ("gripper", 1, Quantity::Gripper, Encoding::Bounds),
    ];
    let relative = |name, dim, quantity, declared, state_key| ActionGroup {
        name,
        dim,
        quantity,
        relative: true,
        declared,
        state_key,
        mean_std: false,
    };
    Robot {
        tag: "new_embodiment",
        cameras: &["front", "wrist"],
        frame_deltas: &[-3, 0],
        state: state
            .map(|(name, dim, quantity, encoding)| StateGroup { name, dim, quantity, encoding })
            .into(),
        action: vec![
            relative("eef_9d", 9, Quantity::PoseRot6d, ["EEF", "XYZ_ROT6D"], None),
            relative("tool_rv", 6, Quantity::PoseRotvec, ["EEF", "XYZ_ROTVEC"], None),
            relative("arm", 4, Quantity::Angle, JOINTS, Some("joints")),
            ActionGroup {
                name: "gripper",
                dim: 1,
                quantity: Quantity::Gripper,
                relative: false,
                declared: JOINTS,
                state_key: None,
                mean_std: true,
            },
        ],
        horizon: 8,
        language_key: "annotation.human.task_description",
    }
}

/// `modality_configs` of `processor_config.json`.
pub fn modality_configs(robots: &[Robot]) -> Value {
    let configs: Map<String, Value> =
        robots.iter().map(|robot| (robot.tag.to_owned(), robot.modalities())).collect();
    configs.into()
}

/// `statistics.json`.
pub fn statistics(robots: &[Robot]) -> Value {
    let statistics: Map<String, Value> =
        robots.iter().map(|robot| (robot.tag.to_owned(), robot.statistics())).collect();
    statistics.into()
}

/// A list of names, or null if there are none, as the reference writes it.
fn names_or_null(names: Vec<&str>) -> Value {
    if names.is_empty() { Value::Null } else { json!(names) }
}

impl Robot {
    fn modalities(&self) -> Value {
        let encoded = |encoding| {
            let groups = self.state.iter().filter(|group| group.encoding == encoding);
            names_or_null(groups.map(|group| group.name).collect())
        };
        let state_keys: Vec<&str> = self.state.iter().map(|group| group.name).collect();
        let action_keys: Vec<&str> = self.action.iter().map(|group| group.name).collect();
        let action_configs: Vec<Value> = self.action.iter().map(ActionGroup::declaration).collect();
        let mean_std = self.action.iter().filter(|group| group.mean_std);
        let plain = |deltas: &[i32], keys: &[&str]| {
            json!({
                "delta_indices": deltas,
                "modality_keys": keys,
                "sin_cos_embedding_keys": null,
                "mean_std_embedding_keys": null,
                "action_configs": null,
            })
        };
        let mut modalities = json!({
            "video": plain(self.frame_deltas, self.cameras),
            "state": plain(&[0], &state_keys),
            "action": plain(&Vec::from_iter(0..self.horizon as i32), &action_keys),
            "language": plain(&[0], &[self.language_key]),
        });
        modalities["state"]["sin_cos_embedding_keys"] = encoded(Encoding::SinCos);
        modalities["state"]["mean_std_embedding_keys"] = encoded(Encoding::MeanStd);
        modalities["action"]["action_configs"] = json!(action_configs);
        modalities["action"]["mean_std_embedding_keys"] =
            names_or_null(mean_std.map(|group| group.name).collect());
        modalities
    }

    fn statistics(&self) -> Value {
        let ranges_of = |table: &str, name: &str, quantity: Quantity, dim: usize| {
            ranges(&format!("{}.{table}.{name}", self.tag), quantity, dim)
        };
        let mut state = Map::new();
        for group in &self.state {
            let ranges = ranges_of("state", group.name, group.quantity, group.dim);
            state.insert(group.name.to_owned(), constant_statistics(&ranges));
        }
        let mut action = Map::new();
        let mut relative = Map::new();
        for group in &self.action {
            let ranges = ranges_of("action", group.name, group.quantity, group.dim);
            action.insert(group.name.to_owned(), constant_statistics(&ranges));
            if group.relative {
                let reach = ranges_of("relative_action", group.name, group.quantity, group.dim);
                let statistics = relative_statistics(&reach, group.quantity, self.horizon);
                relative.insert(group.name.to_owned(), statistics);
            }
        }
        let mut tables = json!({ "state": state, "action": action });
        if !relative.is_empty() {
            tables["relative_action"] = relative.into();
        }
        tables
    }
}

impl ActionGroup {
    fn declaration(&self) -> Value {
        json!({
            "rep": if self.relative { "RELATIVE" } else { "ABSOLUTE" },
            "type": self.declared[0],
            "format": self.declared[1],
            "state_key": self.state_key,
        })
    }
}

impl Quantity {
    /// The value of a dimension that stands for "no motion".
    fn neutral(self, dimension: usize) -> f64 {
        // Columns 3 and 7 are the diagonal of the rotation matrix.
        if matches!(self, Quantity::PoseRot6d) && [3, 7].contains(&dimension) { 1.0 } else { 0.0 }
    }
}

/// Range of one dimension.
#[derive(Clone, Copy)]
struct Range {
    low: f64,
    high: f64,
}

/// A statistic as a function of a dimension's range.
type Statistic = fn(&Range) -> f64;

/// The statistics of a group by name.
const STATISTICS: [(&str, Statistic); 6] = [
    ("min", |range| range.low),
    ("max", |range| range.high),
    ("mean", |range| range.at(0.48)),
    ("std", |range| (range.high - range.low) / 4.0),
    ("q01", |range| range.at(0.02)),
    ("q99", |range| range.at(0.98)),
];

impl Range {
    /// The point that lies this part of the way from low to high.
    fn at(&self, part: f64) -> f64 {
        self.low + part * (self.high - self.low)
    }
}

/// Ranges of a group's dimensions; the same for the same path.
fn ranges(path: &str, quantity: Quantity, dim: usize) -> Vec<Range> {
    let hash = fnv1a64(path.as_bytes());
    let mut drawn = 0;
    let mut draw = |low: f64, high: f64| {
        drawn += 1;
        let part = (splitmix64(hash.wrapping_add(drawn)) >> 40) as f64 / f64::from(1 << 24);
        low + part * (high - low)
    };
    (0..dim)
        .map(|dimension| match quantity {
            Quantity::Angle => Range { low: draw(-2.6, -0.4), high: draw(0.4, 2.6) },
            Quantity::Gripper => Range { low: 0.0, high: draw(0.04, 0.09) },
            Quantity::PoseRot6d if dimension >= 3 => {
                Range { low: draw(-1.0, -0.6), high: draw(0.6, 1.0) }
            }
            Quantity::PoseRotvec if dimension >= 3 => {
                Range { low: draw(-3.0, -0.5), high: draw(0.5, 3.0) }
            }
            Quantity::Position | Quantity::PoseRot6d | Quantity::PoseRotvec => {
                Range { low: draw(-0.7, -0.1), high: draw(0.1, 0.7) }
            }
        })
        .collect()
}

/// Statistics that are the same at every step, each `[dim]`.
fn constant_statistics(ranges: &[Range]) -> Value {
    let column = |statistic: Statistic| ranges.iter().map(statistic).collect::<Vec<_>>();
    STATISTICS.iter().map(|(name, statistic)| (*name, json!(column(*statistic)))).collect()
}

/// Statistics of motion relative to now, each `[horizon][dim]`: the further ahead, the further the robot may have moved.
fn relative_statistics(reach: &[Range], quantity: Quantity, horizon: usize) -> Value {
    let rows: Vec<Vec<Range>> = (1..=horizon)
        .map(|step| {
            let part = 0.5 * step as f64 / horizon as f64;
            let around = |(dimension, range): (usize, &Range)| {
                let neutral = quantity.neutral(dimension);
                Range { low: neutral + part * range.low, high: neutral + part * range.high }
            };
            reach.iter().enumerate().map(around).collect()
        })
        .collect();
    let table = |statistic: Statistic| {
        rows.iter().map(|row| row.iter().map(statistic).collect()).collect::<Vec<Vec<f64>>>()
    };
    STATISTICS.iter().map(|(name, statistic)| (*name, json!(table(*statistic)))).collect()
}
