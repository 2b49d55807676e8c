//! The topics that the node would read, and what it asks of them.

use crate::history::Timeline;
use crate::node::messages::TfMessage;
use crate::node::params::Params;
use crate::node::qos::Profile;
use crate::node::settings::Settings;
use crate::node::state::StateReader;
use crate::node::topics::{Topic, Topics};

/// What a topic is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Camera number.
    Camera(usize),
    /// State source number.
    State(usize),
    /// `/tf`, or `/tf_static`.
    Transforms { fixed: bool },
}

/// A topic that the node would read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub role: Role,
    /// "camera 'ego_view'", for people.
    pub subject: String,
    /// Full name, after remaps.
    pub topic: String,
    /// Before them, as rcl is given it.
    pub given: String,
    /// Parameters that name the topic.
    pub parameter: String,
    pub message_type: &'static str,
    /// What it asks of its publishers.
    pub qos: Profile,
    /// Parameter of the age beyond which a message is stale.
    pub max_age_parameter: &'static str,
    /// That age, ns.
    pub max_age_ns: i64,
    /// What dates the messages, `Receive` for those without a header.
    pub timeline: Timeline,
}

impl Input {
    fn new(role: Role, subject: String, topic: &Topic, message_type: &'static str) -> Self {
        Self {
            role,
            subject,
            topic: topic.name.clone(),
            given: topic.given.clone(),
            parameter: String::new(),
            message_type,
            qos: topic.qos.clone(),
            max_age_parameter: "state_max_age_ms",
            max_age_ns: 0,
            timeline: Timeline::Receive,
        }
    }

    /// Whether one message makes the input: a second publisher would be a contradiction.
    pub fn has_one_publisher(&self) -> bool {
        !matches!(self.role, Role::Transforms { .. })
    }
}

/// Every topic that the node of these settings reads.
pub fn inputs(settings: &Settings, topics: &Topics, params: &Params) -> Vec<Input> {
    let mut inputs = Vec::new();
    for (number, (camera, topic)) in settings.cameras.iter().zip(&topics.cameras).enumerate() {
        let subject = format!("camera '{}'", camera.key);
        let message_type = camera.transport.message_type();
        inputs.push(Input {
            parameter: format!("camera.{}.topic", camera.key),
            max_age_parameter: "camera_max_age_ms",
            timeline: settings.timeline,
            ..Input::new(Role::Camera(number), subject, topic, message_type)
        });
    }
    for (number, (state, topic)) in settings.states.iter().zip(&topics.states).enumerate() {
        let groups = state.reader.groups();
        let subject = format!("state {}", groups.join(", "));
        let own = format!("state.{}.topic", groups.first().copied().unwrap_or_default());
        let message_type = state.reader.message_type();
        inputs.push(Input {
            parameter: match &state.reader {
                StateReader::Joints { .. } => format!("joint_states_topic or {own}"),
                _ => own,
            },
            timeline: if state.reader.stamped() { settings.timeline } else { Timeline::Receive },
            ..Input::new(Role::State(number), subject, topic, message_type)
        });
    }
    for (topic, fixed) in topics.transforms.iter().flatten().zip([false, true]) {
        let role = Role::Transforms { fixed };
        let input = Input::new(role, "transforms".to_owned(), topic, TfMessage::TYPE);
        inputs.push(Input { parameter: "state.<group>.source".to_owned(), ..input });
    }
    for input in &mut inputs {
        input.max_age_ns = params.integer(input.max_age_parameter) * 1_000_000;
    }
    inputs
}

#[cfg(test)]
mod tests {
    use super::super::given;
    use super::*;
    use crate::checkpoint::Snapshot;
    use crate::checkpoint::synth::{self, Size};
    use crate::contract::Version;
    use crate::node::params::Value;
    use crate::node::qos::Reliability;
    use crate::node::remap::Remaps;

    const ROBOT: &str = "oxe_droid_relative_eef_relative_joint";

    fn text(name: &str, value: &str) -> (String, Value) {
        (name.to_owned(), Value::Text(value.to_owned()))
    }

    /// A robot with two cameras, joints, a gripper without header, and a pose from transforms.
    fn droid() -> Vec<Input> {
        let folder = tempfile::tempdir().expect("temporary folder");
        let dir = folder.path().join("tiny");
        synth::write(Version::N17, Size::Tiny, &dir, &|_, _| {}).expect("checkpoint");
        let snapshot = Snapshot::open(&dir).expect("snapshot");
        let joints = (1..=7).map(|number| format!("joint{number}")).collect();
        let overrides = vec![
            text("camera.wrist_image_left.transport", "compressed"),
            text("state.eef_9d.source", "tf"),
            text("state.eef_9d.base_frame", "base"),
            text("state.eef_9d.tip_frame", "tip"),
            text("state.gripper_position.source", "float64"),
            text("state.gripper_position.topic", "gripper"),
            ("state.joint_position.joints".to_owned(), Value::Texts(joints)),
            ("camera_max_age_ms".to_owned(), Value::Integer(700)),
            text("qos_overrides./opening.subscription.reliability", "reliable"),
        ];
        let mut params = given::parameters(overrides).expect("parameters");
        let embodiment = snapshot.embodiment(ROBOT).expect("embodiment");
        let mut settings = given::settings(&mut params, embodiment).expect("settings");
        let arguments = ["--ros-args", "-r", "gripper:=/opening"].map(str::to_owned);
        let remaps = Remaps::new(&arguments, "/left", "/left/policy");
        settings.resolve_topics(&remaps);
        let topics = Topics::overridden(&settings, &remaps, &mut params).expect("topics");
        inputs(&settings, &topics, &params)
    }

    #[test]
    fn every_topic_of_the_settings_with_what_is_asked_of_it() {
        let inputs = droid();
        let seen: Vec<(&str, &str, &str)> = inputs
            .iter()
            .map(|input| (input.topic.as_str(), input.message_type, input.parameter.as_str()))
            .collect();
        let camera = |key: &str| format!("/left/camera/{key}/image_raw");
        let [exterior, wrist] = ["exterior_image_1_left", "wrist_image_left"].map(camera);
        let joints = "joint_states_topic or state.joint_position.topic";
        assert_eq!(
            seen,
            [
                (exterior.as_str(), "sensor_msgs/msg/Image", "camera.exterior_image_1_left.topic"),
                (
                    wrist.as_str(),
                    "sensor_msgs/msg/CompressedImage",
                    "camera.wrist_image_left.topic"
                ),
                ("/left/joint_states", "sensor_msgs/msg/JointState", joints),
                ("/opening", "std_msgs/msg/Float64", "state.gripper_position.topic"),
                ("/tf", "tf2_msgs/msg/TFMessage", "state.<group>.source"),
                ("/tf_static", "tf2_msgs/msg/TFMessage", "state.<group>.source"),
            ]
        );
        let ages: Vec<i64> = inputs.iter().map(|input| input.max_age_ns / 1_000_000).collect();
        assert_eq!(ages, [700, 700, 500, 500, 500, 500]);
        let timelines: Vec<Timeline> = inputs.iter().map(|input| input.timeline).collect();
        let (stamp, receive) = (Timeline::Stamp, Timeline::Receive);
        assert_eq!(timelines, [stamp, stamp, stamp, receive, receive, receive]);
        assert_eq!(inputs[3].qos.reliability, Reliability::Reliable);
        assert_eq!(inputs[4].qos, Profile::reliable(100));
        assert_eq!(inputs[5].qos, Profile::latched(100));
        assert!(inputs[..3].iter().all(|input| input.qos == Profile::SENSOR_DATA));
    }
}
