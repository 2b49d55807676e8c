//! The constants of `ActionGroup.representation` as the field's type; the generated ones each have a type of their own.

use r2r::gr00t_blackhole::msg::ActionGroup;

pub const JOINT_POSITION: u8 = ActionGroup::JOINT_POSITION as u8;
pub const VALUE: u8 = ActionGroup::VALUE as u8;
pub const POSE_ROT6D: u8 = ActionGroup::POSE_ROT6D as u8;
pub const POSE_ROTVEC: u8 = ActionGroup::POSE_ROTVEC as u8;
pub const POSE_MATRIX: u8 = ActionGroup::POSE_MATRIX as u8;
pub const VELOCITY: u8 = ActionGroup::VELOCITY as u8;
pub const DELTA: u8 = ActionGroup::DELTA as u8;
pub const POSITION: u8 = ActionGroup::POSITION as u8;
pub const ROTATION_ROTVEC: u8 = ActionGroup::ROTATION_ROTVEC as u8;
pub const ROTATION_QUATERNION: u8 = ActionGroup::ROTATION_QUATERNION as u8;
pub const ROTATION_ROT6D: u8 = ActionGroup::ROTATION_ROT6D as u8;
pub const ROTATION_MATRIX: u8 = ActionGroup::ROTATION_MATRIX as u8;
pub const ROTATION_EULER: u8 = ActionGroup::ROTATION_EULER as u8;
