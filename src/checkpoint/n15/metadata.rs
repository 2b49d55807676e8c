//! `experiment_cfg/metadata.json`: what the data set of an embodiment holds (spec section 3.2).
//!
//! `modalities` declares cameras and groups; `statistics` has the layout of the other versions' statistics.

use serde_json::{Map, Value};

use super::problem::Misfit;
use crate::checkpoint::EmbodimentProblem;
use crate::checkpoint::json;
use crate::checkpoint::network::fields::WIDTHS;
use crate::contract::{EulerOrder, RotationFormat};

/// One embodiment of the file.
#[derive(Clone, Copy)]
pub(super) struct Metadata<'a> {
    entry: &'a Value,
}

/// What the file declares about a group of state or action.
pub(super) struct Group {
    /// Number of values.
    pub dim: usize,
    /// Whether the values stand for themselves and not for a change.
    pub absolute: bool,
    /// `None` where the values are no rotation.
    pub rotation: Option<Rotation>,
}

/// `rotation_type` of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rotation {
    Format(RotationFormat),
    /// A whole matrix, which the reference declares but cannot convert: it never gives it two dimensions.
    Matrix,
}

impl<'a> Metadata<'a> {
    pub(super) fn new(entry: &'a Value) -> Self {
        Self { entry }
    }

    /// `{"state": {group: statistics}, "action": ...}`; null where there are none.
    pub(super) fn statistics(self) -> &'a Value {
        &self.entry["statistics"]
    }

    pub(super) fn check_camera(self, camera: &str) -> Result<(), Misfit> {
        let cameras = self.table("video")?;
        if cameras.contains_key(camera) {
            return Ok(());
        }
        Err(Misfit::NoCamera {
            camera: camera.to_owned(),
            found: cameras.keys().cloned().collect(),
        })
    }

    /// The declaration of a group in table `state` or `action`.
    pub(super) fn group(self, table: &'static str, group: &str) -> Result<Group, Misfit> {
        let groups = self.table(table)?;
        let declared = groups.get(group).ok_or_else(|| Misfit::NoGroup {
            table,
            group: group.to_owned(),
            found: groups.keys().cloned().collect(),
        })?;
        let refuse = |key: &str, accepted: &str| EmbodimentProblem::Field {
            key: format!("modalities.{table}.{group}.{key}"),
            found: declared.get(key).map_or("missing".to_owned(), json::brief),
            accepted: accepted.to_owned(),
        };
        let shape: Option<[usize; 1]> = serde_json::from_value(declared["shape"].clone()).ok();
        let [dim] = shape
            .filter(|[dim]| WIDTHS.contains(dim))
            .ok_or_else(|| refuse("shape", "[number of values]"))?;
        let absolute =
            declared["absolute"].as_bool().ok_or_else(|| refuse("absolute", "true or false"))?;
        let rotation = match &declared["rotation_type"] {
            Value::Null => None,
            value => Some(value.as_str().and_then(rotation).ok_or_else(|| {
                refuse(
                    "rotation_type",
                    "null, quaternion, axis_angle, rotation_6d, matrix, or euler_angles_ and an order such as rpy",
                )
            })?),
        };
        Ok(Group { dim, absolute, rotation })
    }

    fn table(self, table: &str) -> Result<&'a Map<String, Value>, Misfit> {
        let found = &self.entry["modalities"][table];
        found.as_object().ok_or_else(|| {
            Misfit::from(EmbodimentProblem::Field {
                key: format!("modalities.{table}"),
                found: json::brief(found),
                accepted: "an object".to_owned(),
            })
        })
    }
}

fn rotation(name: &str) -> Option<Rotation> {
    let format = match name {
        "matrix" => return Some(Rotation::Matrix),
        "quaternion" => RotationFormat::Quaternion,
        "axis_angle" => RotationFormat::AxisAngle,
        "rotation_6d" => RotationFormat::Rotation6d,
        _ => {
            let letters = name.strip_prefix("euler_angles_")?;
            RotationFormat::Euler(EulerOrder::from_letters(letters)?)
        }
    };
    Some(Rotation::Format(format))
}
