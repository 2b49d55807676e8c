//! The robots of synthetic N1.7 checkpoints: one with two cameras that composes a pose and joints and whose gripper is
//! absolute, one that is absolute throughout, and one with every representation there is.

use super::{ActionGroup, Encoding, JOINTS, Quantity, Robot, StateGroup, libero};

pub fn robots() -> [Robot; 3] {
    [droid(), libero("libero_sim"), new_embodiment()]
}

fn droid() -> Robot {
    let groups = [
        ("eef_9d", 9, Quantity::PoseRot6d, ["EEF", "XYZ_ROT6D"]),
        ("gripper_position", 1, Quantity::Gripper, JOINTS),
        ("joint_position", 7, Quantity::Angle, JOINTS),
    ];
    let state =
        |(name, dim, quantity, _)| StateGroup { name, dim, quantity, encoding: Encoding::Bounds };
    let action = |(name, dim, quantity, declared)| ActionGroup {
        name,
        dim,
        quantity,
        relative: name != "gripper_position",
        declared,
        state_key: Some(name),
        mean_std: false,
    };
    Robot {
        tag: "oxe_droid_relative_eef_relative_joint",
        cameras: &["exterior_image_1_left", "wrist_image_left"],
        frame_deltas: &[-15, 0],
        state: groups.map(state).into(),
        action: groups.map(action).into(),
        horizon: 40,
        language_key: "annotation.language.language_instruction",
    }
}

fn new_embodiment() -> Robot {
    let state = [
        ("left_eef", 9, Quantity::PoseRot6d, Encoding::Bounds),
        ("tool_rv", 6, Quantity::PoseRotvec, Encoding::Bounds),
        ("joints", 7, Quantity::Angle, Encoding::MeanStd),
        ("hand", 2, Quantity::Gripper, Encoding::Bounds),
    ];
    let action = [
        ("left_eef", 9, Quantity::PoseRot6d, ["EEF", "XYZ_ROT6D"], None),
        ("tool_rv", 6, Quantity::PoseRotvec, ["EEF", "XYZ_ROTVEC"], None),
        ("arm", 7, Quantity::Angle, JOINTS, Some("joints")),
        ("hand", 2, Quantity::Gripper, JOINTS, None),
    ];
    Robot {
        tag: "new_embodiment",
        cameras: &["front"],
        frame_deltas: &[0],
        state: state
            .map(|(name, dim, quantity, encoding)| StateGroup { name, dim, quantity, encoding })
            .into(),
        action: action
            .map(|(name, dim, quantity, declared, state_key)| ActionGroup {
                name,
                dim,
                quantity,
                relative: name != "hand",
                declared,
                state_key,
                mean_std: name == "hand",
            })
            .into(),
        horizon: 24,
        language_key: "annotation.human.task_description",
    }
}
