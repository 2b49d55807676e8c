//! Messages to state groups: by name, with what the parameters say about frames and ranges.

pub mod affine;
pub mod columns;
pub mod joints;
pub mod pose;

use std::collections::BTreeMap;

use affine::{AffineMap, OutOfRange};
use columns::{ColumnError, ColumnMap};
use joints::{JointError, JointMap};
use pose::PoseLayout;

use super::messages::{Float64, Float64MultiArray, JointState, MessageError, PoseStamped};
use super::rigid::{RigidError, rigid};
use super::tf::bare;
use crate::history::StateSample;

/// How the messages of one topic become state groups.
#[derive(Clone, Debug)]
pub enum StateReader {
    /// `sensor_msgs/msg/JointState`; it may feed several groups. `maps` has a map for each, in the same order.
    Joints { joints: JointMap, maps: Vec<Option<AffineMap>> },
    /// `geometry_msgs/msg/PoseStamped`
    Pose { group: String, layout: PoseLayout, base_frame: Option<String> },
    /// `std_msgs/msg/Float64`
    Float64 { group: String, map: Option<AffineMap> },
    /// `std_msgs/msg/Float64MultiArray`
    Columns { group: String, columns: ColumnMap, map: Option<AffineMap> },
}

/// What one message holds.
#[derive(Clone, Debug, PartialEq)]
pub struct StateMessage {
    /// `None` for a message without header.
    pub stamp_ns: Option<i64>,
    pub sample: StateSample,
}

/// Why a message is not a sample of its groups.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error(transparent)]
    Joints(#[from] JointError),
    #[error("group '{group}': {error}")]
    Columns { group: String, error: ColumnError },
    #[error("group '{group}': {error}")]
    Pose { group: String, error: RigidError },
    #[error(
        "group '{group}': the pose is given in frame '{found}', not in '{base_frame}' as the parameter `base_frame` says"
    )]
    Frame { group: String, found: String, base_frame: String },
    #[error("group '{group}': {error}")]
    Range { group: String, error: OutOfRange },
    #[error("group '{group}': {value} is not a finite number")]
    NotFinite { group: String, value: f64 },
}

impl StateReader {
    /// Type of the messages.
    pub fn message_type(&self) -> &'static str {
        match self {
            StateReader::Joints { .. } => JointState::TYPE,
            StateReader::Pose { .. } => PoseStamped::TYPE,
            StateReader::Float64 { .. } => Float64::TYPE,
            StateReader::Columns { .. } => Float64MultiArray::TYPE,
        }
    }

    /// Whether the messages have a header stamp.
    pub fn stamped(&self) -> bool {
        match self {
            StateReader::Joints { .. } | StateReader::Pose { .. } => true,
            StateReader::Float64 { .. } | StateReader::Columns { .. } => false,
        }
    }

    /// Names of the groups that every message feeds.
    pub fn groups(&self) -> Vec<&str> {
        match self {
            StateReader::Joints { joints, .. } => joints.groups().collect(),
            StateReader::Pose { group, .. }
            | StateReader::Float64 { group, .. }
            | StateReader::Columns { group, .. } => vec![group],
        }
    }

    /// Joint names of the groups whose values are the joints' positions as they are in the message, by group.
    pub fn positions(&self) -> BTreeMap<String, Vec<String>> {
        let StateReader::Joints { joints, maps } = self else { return BTreeMap::new() };
        let groups = joints.groups().zip(maps).filter(|(_, map)| map.is_none());
        groups.map(|(group, _)| (group.to_owned(), joints.joints(group).to_vec())).collect()
    }

    /// The map of a group from the source's values to the checkpoint's, if it has one.
    pub fn map(&self, group: &str) -> Option<&AffineMap> {
        match self {
            StateReader::Joints { joints, maps } => {
                let mut maps = joints.groups().zip(maps);
                maps.find(|(name, _)| *name == group).and_then(|(_, map)| map.as_ref())
            }
            StateReader::Pose { .. } => None,
            StateReader::Float64 { map, .. } | StateReader::Columns { map, .. } => map.as_ref(),
        }
    }

    /// Reads a serialised message.
    ///
    /// # Errors
    /// See [`ReadError`]. A message that lacks anything is refused as a whole.
    pub fn read(&self, bytes: &[u8]) -> Result<StateMessage, ReadError> {
        match self {
            StateReader::Joints { joints, maps } => {
                let m = JointState::from_cdr(bytes)?;
                let mut sample =
                    joints.read(&m.name, &m.position, m.velocity.len(), m.effort.len())?;
                for (group, map) in joints.groups().zip(maps) {
                    if let Some(values) = sample.get_mut(group) {
                        apply(group, map.as_ref(), values)?;
                    }
                }
                Ok(StateMessage { stamp_ns: Some(m.stamp_ns), sample })
            }
            StateReader::Pose { group, layout, base_frame } => {
                let m = PoseStamped::from_cdr(bytes)?;
                check_frame(group, base_frame.as_deref(), &m.frame_id)?;
                let pose = rigid(m.position, m.orientation_xyzw)
                    .map_err(|error| ReadError::Pose { group: group.clone(), error })?;
                let sample = StateSample::from([(group.clone(), layout.values(&pose))]);
                Ok(StateMessage { stamp_ns: Some(m.stamp_ns), sample })
            }
            StateReader::Float64 { group, map } => {
                let Float64(value) = Float64::from_cdr(bytes)?;
                if !value.is_finite() {
                    return Err(ReadError::NotFinite { group: group.clone(), value });
                }
                unstamped(group, vec![value], map.as_ref())
            }
            StateReader::Columns { group, columns, map } => {
                let message = Float64MultiArray::from_cdr(bytes)?;
                let values = columns
                    .read(&message)
                    .map_err(|error| ReadError::Columns { group: group.clone(), error })?;
                unstamped(group, values, map.as_ref())
            }
        }
    }
}

fn unstamped(
    group: &str,
    mut values: Vec<f64>,
    map: Option<&AffineMap>,
) -> Result<StateMessage, ReadError> {
    apply(group, map, &mut values)?;
    Ok(StateMessage { stamp_ns: None, sample: StateSample::from([(group.to_owned(), values)]) })
}

fn apply(group: &str, map: Option<&AffineMap>, values: &mut [f64]) -> Result<(), ReadError> {
    let Some(map) = map else { return Ok(()) };
    for value in values {
        let mapped = map.measured(*value);
        *value = mapped.map_err(|error| ReadError::Range { group: group.to_owned(), error })?;
    }
    Ok(())
}

fn check_frame(group: &str, base_frame: Option<&str>, found: &str) -> Result<(), ReadError> {
    match base_frame {
        Some(base_frame) if bare(base_frame) != bare(found) => Err(ReadError::Frame {
            group: group.to_owned(),
            found: found.to_owned(),
            base_frame: base_frame.to_owned(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
