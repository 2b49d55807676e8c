//! The data configs of N1.5 (spec section 11): which cameras, state and action groups a policy has, in which order, and how
//! they are processed. In the reference they are code, so a checkpoint does not contain them.
//!
//! All of them take one frame and one state, give [`HORIZON`] actions, and crop and resize pictures in the same way.

use ActionMode as A;
use StateMode as S;

/// Rows of a chunk.
pub(super) const HORIZON: usize = 16;
/// Columns of the encoded state, zeros included.
pub(super) const STATE_WIDTH: usize = 64;
/// Columns of the model's prediction.
pub(super) const ACTION_WIDTH: usize = 32;

/// How one policy processes its inputs and outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataConfig {
    pub name: &'static str,
    /// The embodiment tag that the reference uses it with. A checkpoint may use it with another.
    pub tag: &'static str,
    /// In the order in which the model sees them.
    pub cameras: &'static [&'static str],
    /// In the order in which their values are concatenated.
    pub state: &'static [(&'static str, StateMode)],
    /// In the order of the columns of the model's output.
    pub action: &'static [(&'static str, ActionMode)],
    /// The data set's key of the instruction.
    pub language_key: &'static str,
}

/// How a state group is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateMode {
    /// Sines, then cosines.
    SinCos,
    /// Scaled to [-1, 1] by the data set's bounds.
    MinMax,
    /// A rotation as the first two rows of its matrix.
    RawAs6d,
    /// As `RawAs6d`, scaled by the bounds that those have, -1 and 1.
    MinMaxAs6d,
}

/// How an action group is decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionMode {
    /// From [-1, 1] to the data set's bounds.
    MinMax,
    /// From standard scores.
    MeanStd,
    /// 1 above one half, else 0.
    Binary,
    /// As the model gives it.
    Raw,
    /// A rotation that the model gives as axis times angle.
    RawAsAxisAngle,
}

/// What belongs to an embodiment tag in the reference.
pub(super) struct Tag {
    pub name: &'static str,
    /// Row of the per-embodiment tensors.
    pub slot: usize,
    /// Data config that is meant where none is named. Robots of one's own have none.
    pub default: Option<&'static str>,
}

/// The tags of the reference.
pub(super) const TAGS: [Tag; 4] = [
    Tag { name: "gr1", slot: 24, default: Some("fourier_gr1_arms_only") },
    Tag { name: "oxe_droid", slot: 17, default: Some("oxe_droid") },
    Tag { name: "agibot_genie1", slot: 26, default: Some("agibot_genie1") },
    Tag { name: "new_embodiment", slot: 31, default: None },
];

/// Every data config of the reference's repository, examples included.
pub const DATA_CONFIGS: [DataConfig; 16] = [
    DataConfig {
        name: "fourier_gr1_arms_waist",
        tag: "gr1",
        cameras: &["ego_view"],
        state: &[
            ("left_arm", S::SinCos),
            ("right_arm", S::SinCos),
            ("left_hand", S::SinCos),
            ("right_hand", S::SinCos),
            ("waist", S::SinCos),
        ],
        action: &[
            ("left_arm", A::MinMax),
            ("right_arm", A::MinMax),
            ("left_hand", A::MinMax),
            ("right_hand", A::MinMax),
            ("waist", A::MinMax),
        ],
        language_key: "annotation.human.coarse_action",
    },
    DataConfig {
        name: "fourier_gr1_arms_only",
        tag: "gr1",
        cameras: &["ego_view"],
        state: &[
            ("left_arm", S::SinCos),
            ("right_arm", S::SinCos),
            ("left_hand", S::SinCos),
            ("right_hand", S::SinCos),
        ],
        action: &[
            ("left_arm", A::MinMax),
            ("right_arm", A::MinMax),
            ("left_hand", A::MinMax),
            ("right_hand", A::MinMax),
        ],
        language_key: "annotation.human.action.task_description",
    },
    DataConfig {
        name: "fourier_gr1_full_upper_body",
        tag: "gr1",
        cameras: &["front_view"],
        state: &[
            ("left_arm", S::MinMax),
            ("right_arm", S::MinMax),
            ("left_hand", S::MinMax),
            ("right_hand", S::MinMax),
            ("waist", S::MinMax),
            ("neck", S::MinMax),
        ],
        action: &[
            ("left_arm", A::MinMax),
            ("right_arm", A::MinMax),
            ("left_hand", A::MinMax),
            ("right_hand", A::MinMax),
            ("waist", A::MinMax),
            ("neck", A::MinMax),
        ],
        language_key: "annotation.human.action.task_description",
    },
    DataConfig {
        name: "bimanual_panda_gripper",
        tag: "new_embodiment",
        cameras: &["right_wrist_view", "left_wrist_view", "front_view"],
        state: &[
            ("right_arm_eef_pos", S::MinMax),
            ("right_arm_eef_quat", S::RawAs6d),
            ("right_gripper_qpos", S::MinMax),
            ("left_arm_eef_pos", S::MinMax),
            ("left_arm_eef_quat", S::RawAs6d),
            ("left_gripper_qpos", S::MinMax),
        ],
        action: &[
            ("right_arm_eef_pos", A::Raw),
            ("right_arm_eef_rot", A::Raw),
            ("right_gripper_close", A::Binary),
            ("left_arm_eef_pos", A::Raw),
            ("left_arm_eef_rot", A::Raw),
            ("left_gripper_close", A::Binary),
        ],
        language_key: "annotation.human.action.task_description",
    },
    DataConfig {
        name: "bimanual_panda_hand",
        tag: "new_embodiment",
        cameras: &["right_wrist_view", "left_wrist_view", "ego_view"],
        state: &[
            ("right_arm_eef_pos", S::MinMax),
            ("right_arm_eef_quat", S::RawAs6d),
            ("right_hand", S::MinMax),
            ("left_arm_eef_pos", S::MinMax),
            ("left_arm_eef_quat", S::RawAs6d),
            ("left_hand", S::MinMax),
        ],
        action: &[
            ("right_arm_eef_pos", A::Raw),
            ("right_arm_eef_rot", A::Raw),
            ("right_hand", A::MinMax),
            ("left_arm_eef_pos", A::Raw),
            ("left_arm_eef_rot", A::Raw),
            ("left_hand", A::MinMax),
        ],
        language_key: "annotation.human.action.task_description",
    },
    DataConfig {
        name: "single_panda_gripper",
        tag: "new_embodiment",
        cameras: &["left_view", "right_view", "wrist_view"],
        state: &[
            ("end_effector_position_relative", S::MinMax),
            ("end_effector_rotation_relative", S::MinMaxAs6d),
            ("gripper_qpos", S::MinMax),
            ("base_position", S::MinMax),
            ("base_rotation", S::MinMaxAs6d),
        ],
        action: &[
            ("end_effector_position", A::MinMax),
            ("end_effector_rotation", A::MinMax),
            ("gripper_close", A::Binary),
            ("base_motion", A::MinMax),
            ("control_mode", A::Binary),
        ],
        language_key: "annotation.human.action.task_description",
    },
    DataConfig {
        name: "so100",
        tag: "new_embodiment",
        cameras: &["webcam"],
        state: &[("single_arm", S::MinMax), ("gripper", S::MinMax)],
        action: &[("single_arm", A::MinMax), ("gripper", A::MinMax)],
        language_key: "annotation.human.task_description",
    },
    DataConfig {
        name: "so100_dualcam",
        tag: "new_embodiment",
        cameras: &["front", "wrist"],
        state: &[("single_arm", S::MinMax), ("gripper", S::MinMax)],
        action: &[("single_arm", A::MinMax), ("gripper", A::MinMax)],
        language_key: "annotation.human.task_description",
    },
    DataConfig {
        name: "unitree_g1",
        tag: "new_embodiment",
        cameras: &["rs_view"],
        state: &[
            ("left_arm", S::MinMax),
            ("right_arm", S::MinMax),
            ("left_hand", S::MinMax),
            ("right_hand", S::MinMax),
        ],
        action: &[
            ("left_arm", A::MinMax),
            ("right_arm", A::MinMax),
            ("left_hand", A::MinMax),
            ("right_hand", A::MinMax),
        ],
        language_key: "annotation.human.task_description",
    },
    DataConfig {
        name: "unitree_g1_full_body",
        tag: "new_embodiment",
        cameras: &["rs_view"],
        state: &[
            ("left_leg", S::MinMax),
            ("right_leg", S::MinMax),
            ("waist", S::MinMax),
            ("left_arm", S::MinMax),
            ("right_arm", S::MinMax),
            ("left_hand", S::MinMax),
            ("right_hand", S::MinMax),
        ],
        action: &[
            ("left_arm", A::MinMax),
            ("right_arm", A::MinMax),
            ("left_hand", A::MinMax),
            ("right_hand", A::MinMax),
        ],
        language_key: "annotation.human.task_description",
    },
    DataConfig {
        name: "oxe_droid",
        tag: "oxe_droid",
        cameras: &["exterior_image_1", "exterior_image_2", "wrist_image"],
        state: &[
            ("eef_position", S::MinMax),
            ("eef_rotation", S::RawAs6d),
            ("gripper_position", S::MinMax),
        ],
        action: &[
            ("eef_position_delta", A::Raw),
            ("eef_rotation_delta", A::RawAsAxisAngle),
            ("gripper_position", A::Binary),
        ],
        language_key: "annotation.language.language_instruction",
    },
    DataConfig {
        name: "agibot_genie1",
        tag: "agibot_genie1",
        cameras: &["top_head", "hand_left", "hand_right"],
        state: &[
            ("left_arm_joint_position", S::MinMax),
            ("right_arm_joint_position", S::MinMax),
            ("left_effector_position", S::MinMax),
            ("right_effector_position", S::MinMax),
            ("head_position", S::MinMax),
            ("waist_position", S::MinMax),
        ],
        action: &[
            ("left_arm_joint_position", A::MinMax),
            ("right_arm_joint_position", A::MinMax),
            ("left_effector_position", A::MinMax),
            ("right_effector_position", A::MinMax),
            ("head_position", A::MinMax),
            ("waist_position", A::MinMax),
            ("robot_velocity", A::MinMax),
        ],
        language_key: "annotation.language.action_text",
    },
    DataConfig {
        name: "libero",
        tag: "new_embodiment",
        cameras: &["image", "wrist_image"],
        state: &[
            ("x", S::MinMax),
            ("y", S::MinMax),
            ("z", S::MinMax),
            ("roll", S::MinMax),
            ("pitch", S::MinMax),
            ("yaw", S::MinMax),
            ("gripper", S::MinMax),
        ],
        action: &[
            ("x", A::MinMax),
            ("y", A::MinMax),
            ("z", A::MinMax),
            ("roll", A::MinMax),
            ("pitch", A::MinMax),
            ("yaw", A::MinMax),
            ("gripper", A::MinMax),
        ],
        language_key: "annotation.human.action.task_description",
    },
    DataConfig {
        name: "libero_meanstd",
        tag: "new_embodiment",
        cameras: &["image", "wrist_image"],
        state: &[
            ("x", S::MinMax),
            ("y", S::MinMax),
            ("z", S::MinMax),
            ("roll", S::MinMax),
            ("pitch", S::MinMax),
            ("yaw", S::MinMax),
            ("gripper", S::MinMax),
        ],
        action: &[
            ("x", A::MeanStd),
            ("y", A::MeanStd),
            ("z", A::MeanStd),
            ("roll", A::MeanStd),
            ("pitch", A::MeanStd),
            ("yaw", A::MeanStd),
            ("gripper", A::MinMax),
        ],
        language_key: "annotation.human.action.task_description",
    },
    DataConfig {
        name: "simpler_fractal",
        tag: "new_embodiment",
        cameras: &["image"],
        state: &[
            ("x", S::MinMax),
            ("y", S::MinMax),
            ("z", S::MinMax),
            ("rx", S::MinMax),
            ("ry", S::MinMax),
            ("rz", S::MinMax),
            ("rw", S::MinMax),
            ("gripper", S::MinMax),
        ],
        action: &[
            ("x", A::MeanStd),
            ("y", A::MeanStd),
            ("z", A::MeanStd),
            ("roll", A::MeanStd),
            ("pitch", A::MeanStd),
            ("yaw", A::MeanStd),
            ("gripper", A::MinMax),
        ],
        language_key: "annotation.human.action.task_description",
    },
    DataConfig {
        name: "simpler_bridge",
        tag: "new_embodiment",
        cameras: &["image_0"],
        state: &[
            ("x", S::MinMax),
            ("y", S::MinMax),
            ("z", S::MinMax),
            ("roll", S::MinMax),
            ("pitch", S::MinMax),
            ("yaw", S::MinMax),
            ("pad", S::MinMax),
            ("gripper", S::MinMax),
        ],
        action: &[
            ("x", A::MinMax),
            ("y", A::MinMax),
            ("z", A::MinMax),
            ("roll", A::MinMax),
            ("pitch", A::MinMax),
            ("yaw", A::MinMax),
            ("gripper", A::MinMax),
        ],
        language_key: "annotation.human.action.task_description",
    },
];
