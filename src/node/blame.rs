//! Which of the node's inputs is to blame for an observation that the policy refuses.

use super::instruction::INSTRUCTION;
use super::sensors::transform_name;
use super::settings::Settings;
use crate::encode::Culprit;
use crate::history::Input;

/// An input that is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blamed {
    /// As goals and diagnostics name it: a camera's key, the topic of a state or what stands in its place, a parameter.
    pub name: String,
    /// The subscription that it comes from, if it is one.
    pub input: Option<Input>,
}

impl Blamed {
    /// The input that gives the `culprit`.
    pub fn new(culprit: Culprit<'_>, settings: &Settings) -> Self {
        match culprit {
            Culprit::Camera(key) => {
                let number = settings.cameras.iter().position(|camera| camera.key == key);
                Self { name: key.to_owned(), input: number.map(Input::Camera) }
            }
            Culprit::StateGroup(group) => Self::state(group, settings),
            Culprit::Instruction => Self { name: INSTRUCTION.to_owned(), input: None },
        }
    }

    fn state(group: &str, settings: &Settings) -> Self {
        if let Some(wanted) = settings.transforms.iter().find(|wanted| wanted.group == group) {
            return Self { name: transform_name(wanted), input: None };
        }
        let mut sources = settings.states.iter().enumerate();
        match sources.find(|(_, source)| source.reader.groups().contains(&group)) {
            Some((number, source)) => {
                Self { name: source.topic.clone(), input: Some(Input::State(number)) }
            }
            None => Self { name: group.to_owned(), input: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::Snapshot;
    use crate::checkpoint::synth::{self, Size};
    use crate::contract::Version;
    use crate::node::params::{Params, Value};
    use crate::node::settings;

    fn droid() -> Settings {
        let folder = tempfile::tempdir().expect("temporary folder");
        let dir = folder.path().join("tiny");
        synth::write(Version::N17, Size::Tiny, &dir, &|_, _| {}).expect("checkpoint");
        let snapshot = Snapshot::open(&dir).expect("snapshot");
        let robot = snapshot.embodiment("oxe_droid_relative_eef_relative_joint").expect("robot");
        let text = |name: &str, value: &str| (name.to_owned(), Value::Text(value.to_owned()));
        let joints = (1..=7).map(|number| format!("joint{number}")).collect();
        let overrides = vec![
            text("state.eef_9d.source", "tf"),
            text("state.eef_9d.base_frame", "base"),
            text("state.eef_9d.tip_frame", "tip"),
            text("state.gripper_position.source", "float64"),
            text("state.gripper_position.topic", "/opening"),
            ("state.joint_position.joints".to_owned(), Value::Texts(joints)),
        ];
        let mut params = Params::new(overrides).expect("parameters");
        params.declare_robot(&settings::names(robot)).expect("parameters of the robot");
        Settings::new(&params, robot).expect("settings")
    }

    #[test]
    fn every_part_of_an_observation_has_an_input() {
        let settings = droid();
        let wrist = settings.cameras.iter().position(|camera| camera.key == "wrist_image_left");
        let opening = settings.states.iter().position(|state| state.topic == "/opening");
        for (culprit, name, input) in [
            (Culprit::Camera("wrist_image_left"), "wrist_image_left", wrist.map(Input::Camera)),
            (Culprit::StateGroup("gripper_position"), "/opening", opening.map(Input::State)),
            (Culprit::StateGroup("eef_9d"), "tf base tip", None),
            (Culprit::StateGroup("tail"), "tail", None),
            (Culprit::Instruction, "instruction", None),
        ] {
            let expected = Blamed { name: name.to_owned(), input };
            assert_eq!(Blamed::new(culprit, &settings), expected);
        }
        assert!(wrist.is_some() && opening.is_some());
    }
}
