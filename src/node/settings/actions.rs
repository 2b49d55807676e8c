//! The parameters `action.<key>.*`.

use super::super::params::{ParamError, Params};
use super::super::state::affine::AffineMap;
use super::super::trajectory::ActionJoints;
use super::states::range;
use super::unusable;
use crate::contract::{ActionGroupSpec, ActionReference, Embodiment};

pub(super) fn action_joints(
    params: &Params,
    embodiment: &Embodiment,
    errors: &mut Vec<ParamError>,
) -> Vec<ActionJoints> {
    let mut all: Vec<ActionJoints> = Vec::new();
    for group in &embodiment.action {
        let name = format!("action.{}.joints", group.name);
        let (joints, from_state) = joints(params, group, &name);
        if !joints.is_empty() && joints.len() != group.dim {
            let reason = format!(
                "has {} names; group '{}' has {} columns",
                joints.len(),
                group.name,
                group.dim
            );
            errors.push(unusable(name.clone(), reason));
        }
        for (i, joint) in joints.iter().enumerate() {
            let owner =
                all.iter().find(|other| other.joints.contains(joint)).map(|other| &other.group);
            if let Some(owner) = owner.or(joints[..i].contains(joint).then_some(&group.name)) {
                errors.push(unusable(
                    name.clone(),
                    format!("names '{joint}', which group '{owner}' has already"),
                ));
                break;
            }
        }
        let map = map(params, group, from_state, errors);
        all.push(ActionJoints { group: group.name.clone(), joints, map });
    }
    all
}

/// The state group whose joints an action group moves unless other joints are named.
fn state_group(group: &ActionGroupSpec) -> &str {
    match &group.reference {
        ActionReference::RelativeJoint { state_group } => state_group,
        _ => &group.name,
    }
}

/// The joints of an action group, and whether they are those of its state group.
fn joints(params: &Params, group: &ActionGroupSpec, name: &str) -> (Vec<String>, bool) {
    let given = params.texts(name);
    if !given.is_empty() {
        let none = given.iter().all(String::is_empty);
        return (if none { Vec::new() } else { given.to_vec() }, false);
    }
    let of_state = params.texts(&format!("state.{}.joints", state_group(group)));
    if of_state.len() == group.dim && group.pose.is_none() {
        (of_state.to_vec(), true)
    } else {
        (Vec::new(), false)
    }
}

/// From the group's values to positions of its joints: as the parameters say, or the state group's map read backwards.
fn map(
    params: &Params,
    group: &ActionGroupSpec,
    from_state: bool,
    errors: &mut Vec<ParamError>,
) -> Option<AffineMap> {
    let own = |what: &str| format!("action.{}.{what}", group.name);
    let given = range(params, [own("model_range"), own("joint_range")], errors);
    let of_state = || {
        let state = |what: &str| format!("state.{}.{what}", state_group(group));
        // What is wrong with these is reported where the state group is.
        range(params, [state("model_range"), state("source_range")], &mut Vec::new())
    };
    given.or_else(|| if from_state { of_state() } else { None })
}
