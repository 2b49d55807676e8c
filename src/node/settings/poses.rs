//! Which action groups are poses, and in which frame.

use super::super::params::{ParamError, Params};
use super::states::{StateSettings, TransformSettings};
use super::unusable;
use crate::contract::{ActionGroupSpec, ActionReference, Embodiment, PoseFormat};
use crate::node::state::StateReader;

/// An action group that is a pose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoseSettings {
    pub group: String,
    pub format: PoseFormat,
    /// Frame that the poses are given in; empty where nobody has said it.
    pub frame: String,
    /// Topic of its own, below the node's name.
    pub topic: String,
}

pub(super) fn poses(
    params: &Params,
    embodiment: &Embodiment,
    states: &[StateSettings],
    transforms: &[TransformSettings],
    errors: &mut Vec<ParamError>,
) -> Vec<PoseSettings> {
    let wanted = params.text("pose_frame");
    let mut poses: Vec<PoseSettings> = Vec::new();
    for action in &embodiment.action {
        let Some(format) = format(action) else { continue };
        let observed = match &action.reference {
            ActionReference::RelativePose { state_group, .. } => {
                base_frame(state_group, states, transforms).map(|frame| (state_group, frame))
            }
            _ => None,
        };
        let frame = match observed {
            Some((state_group, frame)) if !wanted.is_empty() && wanted != frame => {
                let reason = format!(
                    "is '{wanted}', but state group '{state_group}', onto which the poses of '{}' are composed, is \
                     given in '{frame}', and so are the poses; leave it empty",
                    action.name
                );
                errors.push(unusable("pose_frame".to_owned(), reason));
                continue;
            }
            Some((_, frame)) => frame,
            None => wanted,
        };
        let topic = topic(&action.name, poses.iter().map(|other| other.topic.as_str()));
        poses.push(PoseSettings {
            group: action.name.clone(),
            format,
            frame: frame.to_owned(),
            topic,
        });
    }
    poses
}

/// The layout of a group whose decoded values are poses.
pub(super) fn format(action: &ActionGroupSpec) -> Option<PoseFormat> {
    match &action.reference {
        ActionReference::RelativePose { format, .. } => Some(*format),
        ActionReference::Delta => None,
        ActionReference::Absolute | ActionReference::RelativeJoint { .. } => action.pose,
    }
}

/// The frame that a state group is given in, as far as its parameters say.
fn base_frame<'a>(
    group: &str,
    states: &'a [StateSettings],
    transforms: &'a [TransformSettings],
) -> Option<&'a str> {
    let of_transform = transforms
        .iter()
        .find(|transform| transform.group == group)
        .map(|transform| transform.base_frame.as_str());
    let of_pose = states.iter().find_map(|state| match &state.reader {
        StateReader::Pose { group: name, base_frame, .. } if name == group => base_frame.as_deref(),
        _ => None,
    });
    of_transform.or(of_pose)
}

/// `~/<group>/poses`, with an underscore for what a topic's name cannot hold; another one if it is taken.
fn topic<'a>(group: &str, taken: impl Iterator<Item = &'a str> + Clone) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut name: String = group.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert(0, 'g');
    }
    // Two underscores in a row are not allowed either.
    while let Some(place) = name.find("__") {
        name.remove(place);
    }
    while taken.clone().any(|topic| topic == format!("~/{name}/poses")) {
        name.push('2');
    }
    format!("~/{name}/poses")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_valid_names() {
        let made = |group: &str| topic(group, [].into_iter());
        assert_eq!(made("eef_9d"), "~/eef_9d/poses");
        assert_eq!(made("left.eef-pose"), "~/left_eef_pose/poses");
        assert_eq!(made("9d"), "~/g9d/poses");
        assert_eq!(made("a..b"), "~/a_b/poses");
        assert_eq!(topic("a.b", ["~/a_b/poses"].into_iter()), "~/a_b2/poses");
    }
}
