//! Raw parameters and the checkpoint's embodiment, made into what the node is wired to.

use super::image::ColourOrder;
use super::state::joints::{JointMap, JointMapError};
use super::params::{Names, ParamError, ParamErrors, Params};
use super::trajectory::ActionJoints;
use crate::contract::{ActionReference, Embodiment, Version};
use crate::history::{CameraInput, Freshness, Inputs, StateInput, Timeline};

const NANOSECONDS_PER_MS: i64 = 1_000_000;

/// Message type of a camera topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Raw,
    Compressed,
}

/// How one camera is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CameraSettings {
    pub key: String,
    pub topic: String,
    pub transport: Transport,
    pub order: Option<ColourOrder>,
}

/// How one topic of joint states is read.
#[derive(Clone, Debug)]
pub struct StateSettings {
    pub topic: String,
    pub joints: JointMap,
}

/// Everything that is fixed while the node runs.
#[derive(Clone, Debug)]
pub struct Settings {
    pub cameras: Vec<CameraSettings>,
    pub states: Vec<StateSettings>,
    pub action_joints: Vec<ActionJoints>,
    pub frame_deltas: Vec<i32>,
    /// Length of a control step, nanoseconds.
    pub dt_ns: i64,
    /// Predictions per second; `None` for no timer.
    pub rate_hz: Option<f64>,
    pub timeline: Timeline,
}

/// Names of what the robot has, for the parameters that it brings.
pub fn names(embodiment: &Embodiment) -> Names {
    Names {
        cameras: embodiment.cameras.clone(),
        state: embodiment.state.iter().map(|group| group.name.clone()).collect(),
        action: embodiment.action.iter().map(|group| group.name.clone()).collect(),
    }
}

/// The parameter `version`.
pub fn version(params: &Params) -> Option<Version> {
    params.text("version").parse().ok()
}

/// The seed of the next chunk: the parameter `seed`, or the version's own.
pub fn seed(params: &Params, version: Version) -> u64 {
    u64::try_from(params.integer("seed")).unwrap_or_else(|_| version.default_seed())
}

/// The limits that can be changed while the node runs.
pub fn freshness(params: &Params, timeline: Timeline) -> Freshness {
    Freshness {
        camera_max_age_ns: params.integer("camera_max_age_ms") * NANOSECONDS_PER_MS,
        state_max_age_ns: params.integer("state_max_age_ms") * NANOSECONDS_PER_MS,
        timeline,
    }
}

/// The parameter `trajectory_lead_ms`, nanoseconds.
pub fn trajectory_lead_ns(params: &Params) -> i64 {
    params.integer("trajectory_lead_ms") * NANOSECONDS_PER_MS
}

impl Settings {
    /// Checks the parameters against each other and against the robot; `params` has its parameters declared.
    ///
    /// # Errors
    /// Every parameter that does not fit the robot.
    pub fn new(params: &Params, embodiment: &Embodiment) -> Result<Self, ParamErrors> {
        let mut errors = Vec::new();
        let cameras = cameras(params, embodiment, &mut errors);
        let states = states(params, embodiment, &mut errors);
        let action_joints = action_joints(params, embodiment, &mut errors);
        if !errors.is_empty() {
            return Err(ParamErrors(errors));
        }
        let rate_hz = params.double("rate_hz");
        Ok(Self {
            cameras,
            states,
            action_joints,
            frame_deltas: embodiment.frame_deltas.clone(),
            dt_ns: (1e9 / params.double("action_rate_hz")).round() as i64,
            rate_hz: (rate_hz > 0.0).then_some(rate_hz),
            timeline: if params.text("timeline") == "receive" {
                Timeline::Receive
            } else {
                Timeline::Stamp
            },
        })
    }

    /// Writes every topic in full, as seen from a node of this namespace and full name. Remappings are rcl's.
    pub fn resolve_topics(&mut self, namespace: &str, node: &str) {
        let topics = self.cameras.iter_mut().map(|camera| &mut camera.topic);
        for topic in topics.chain(self.states.iter_mut().map(|state| &mut state.topic)) {
            *topic = resolved(topic, namespace, node);
        }
    }

    /// What the history has to keep.
    pub fn inputs(&self) -> Inputs {
        let camera = |camera: &CameraSettings| CameraInput {
            key: camera.key.clone(),
            topic: camera.topic.clone(),
        };
        let state = |state: &StateSettings| StateInput {
            topic: state.topic.clone(),
            groups: state.joints.groups().map(str::to_owned).collect(),
        };
        Inputs {
            cameras: self.cameras.iter().map(camera).collect(),
            states: self.states.iter().map(state).collect(),
            frame_deltas: self.frame_deltas.clone(),
            step_ns: self.dt_ns,
        }
    }
}

/// The full name of a topic, by the rules of ROS 2 names.
fn resolved(topic: &str, namespace: &str, node: &str) -> String {
    match (topic.strip_prefix('~'), topic.starts_with('/')) {
        (Some(rest), _) => format!("{node}{rest}"),
        (None, true) => topic.to_owned(),
        (None, false) => format!("{}/{topic}", namespace.trim_end_matches('/')),
    }
}

fn unusable(name: String, reason: impl Into<String>) -> ParamError {
    ParamError::Unusable { name, reason: reason.into() }
}

fn cameras(
    params: &Params,
    embodiment: &Embodiment,
    errors: &mut Vec<ParamError>,
) -> Vec<CameraSettings> {
    let mut cameras: Vec<CameraSettings> = Vec::new();
    for key in &embodiment.cameras {
        let name = |what: &str| format!("camera.{key}.{what}");
        let topic = params.text(&name("topic")).to_owned();
        if topic.is_empty() {
            errors.push(unusable(name("topic"), "is empty; every camera needs its topic"));
        }
        if let Some(other) = cameras.iter().find(|other| other.topic == topic) {
            let reason = format!("is '{topic}', which camera '{}' has already", other.key);
            errors.push(unusable(name("topic"), reason));
        }
        let transport = match params.text(&name("transport")) {
            "compressed" => Transport::Compressed,
            _ => Transport::Raw,
        };
        let order: Option<ColourOrder> = params.text(&name("order")).parse().ok();
        if transport == Transport::Compressed && order.is_some_and(|order| order.channels() != 3) {
            errors.push(unusable(name("order"), "is rgb or bgr for a compressed topic, or empty"));
        }
        cameras.push(CameraSettings { key: key.clone(), topic, transport, order });
    }
    cameras
}

/// Group names with their joints.
type Groups = Vec<(String, Vec<String>)>;

/// One entry per topic, in the order of the first group that it feeds.
fn states(
    params: &Params,
    embodiment: &Embodiment,
    errors: &mut Vec<ParamError>,
) -> Vec<StateSettings> {
    let mut topics: Vec<(String, Groups)> = Vec::new();
    for group in &embodiment.state {
        let name = format!("state.{}.joints", group.name);
        let joints = params.texts(&name).to_vec();
        if joints.len() != group.dim {
            let has = if joints.is_empty() {
                "is not given".to_owned()
            } else {
                format!("has {} names", joints.len())
            };
            let reason = format!(
                "{has}; group '{}' of '{}' needs {} joint names in the checkpoint's order",
                group.name, embodiment.tag, group.dim
            );
            errors.push(unusable(name, reason));
        }
        let own_topic = params.text(&format!("state.{}.topic", group.name));
        let topic =
            if own_topic.is_empty() { params.text("joint_states_topic") } else { own_topic };
        if topic.is_empty() {
            errors.push(unusable("joint_states_topic".to_owned(), "is empty"));
        }
        match topics.iter_mut().find(|(other, _)| other == topic) {
            Some((_, groups)) => groups.push((group.name.clone(), joints)),
            None => topics.push((topic.to_owned(), vec![(group.name.clone(), joints)])),
        }
    }
    let mut states = Vec::new();
    for (topic, groups) in topics {
        match JointMap::new(groups) {
            Ok(joints) => states.push(StateSettings { topic, joints }),
            Err(error) => {
                let (JointMapError::Duplicate { second: group, .. }
                | JointMapError::Empty { group }) = &error;
                errors.push(unusable(
                    format!("state.{group}.joints"),
                    format!("cannot be used: {error}"),
                ));
            }
        }
    }
    states
}

fn action_joints(
    params: &Params,
    embodiment: &Embodiment,
    errors: &mut Vec<ParamError>,
) -> Vec<ActionJoints> {
    let mut all: Vec<ActionJoints> = Vec::new();
    for group in &embodiment.action {
        let name = format!("action.{}.joints", group.name);
        let given = params.texts(&name);
        let joints = if given.iter().all(String::is_empty) && !given.is_empty() {
            Vec::new()
        } else if !given.is_empty() {
            given.to_vec()
        } else {
            let state_group = match &group.reference {
                ActionReference::RelativeJoint { state_group } => state_group,
                _ => &group.name,
            };
            let of_state = params.texts(&format!("state.{state_group}.joints"));
            if of_state.len() == group.dim && group.pose.is_none() {
                of_state.to_vec()
            } else {
                Vec::new()
            }
        };
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
        all.push(ActionJoints { group: group.name.clone(), joints });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::params::Value;
    use super::*;
    use crate::contract::{
        ActionGroupSpec, ActionNormalization, PoseFormat, StateEncoding, StateGroupSpec,
    };

    fn action(
        name: &str,
        dim: usize,
        reference: ActionReference,
        pose: Option<PoseFormat>,
    ) -> ActionGroupSpec {
        let normalization =
            ActionNormalization::MinMax { min: vec![0.0; dim], max: vec![1.0; dim] };
        ActionGroupSpec { name: name.to_owned(), dim, normalization, reference, pose }
    }

    fn embodiment() -> Embodiment {
        let state = |name: &str, dim| StateGroupSpec {
            name: name.to_owned(),
            dim,
            encoding: StateEncoding::SinCos,
        };
        let relative = ActionReference::RelativeJoint { state_group: "arm".to_owned() };
        Embodiment {
            tag: "robot".to_owned(),
            slot: 3,
            cameras: vec!["ego".to_owned(), "wrist".to_owned()],
            frame_deltas: vec![-15, 0],
            state: vec![state("arm", 2), state("hand", 1)],
            action: vec![
                action("arm_command", 2, relative, None),
                action("hand", 1, ActionReference::Absolute, None),
                action("eef", 9, ActionReference::Absolute, Some(PoseFormat::Rot6d)),
            ],
            horizon: 16,
            language_key: "task".to_owned(),
        }
    }

    fn texts(values: &[&str]) -> Value {
        Value::Texts(values.iter().map(|&value| value.to_owned()).collect())
    }

    fn text(value: &str) -> Value {
        Value::Text(value.to_owned())
    }

    fn settings(more: Vec<(&str, Value)>) -> Result<Settings, ParamErrors> {
        let mut overrides = vec![
            ("state.arm.joints".to_owned(), texts(&["shoulder", "elbow"])),
            ("state.hand.joints".to_owned(), texts(&["grip"])),
        ];
        for (name, value) in more {
            overrides.retain(|(other, _)| other != name);
            overrides.push((name.to_owned(), value));
        }
        let mut params = Params::new(overrides)?;
        params.declare_robot(&names(&embodiment()))?;
        Settings::new(&params, &embodiment())
    }

    #[test]
    fn wires_topics_to_the_robot() {
        let settings = settings(vec![
            ("camera.wrist.transport", text("compressed")),
            ("camera.wrist.topic", text("/wrist/compressed")),
            ("camera.ego.order", text("bgr")),
            ("action_rate_hz", Value::Integer(15)),
            ("state.hand.topic", text("/hand/joint_states")),
        ])
        .expect("valid");
        assert_eq!(settings.cameras[0].topic, "camera/ego/image_raw");
        assert_eq!(settings.cameras[0].order, Some(ColourOrder::Bgr));
        assert_eq!(settings.cameras[1].transport, Transport::Compressed);
        assert_eq!(settings.dt_ns, 66_666_667);
        assert_eq!(settings.rate_hz, Some(2.0));
        let inputs = settings.inputs();
        let topics: Vec<_> =
            inputs.states.iter().map(|s| (s.topic.as_str(), s.groups.clone())).collect();
        let expected = [
            ("joint_states", vec!["arm".to_owned()]),
            ("/hand/joint_states", vec!["hand".to_owned()]),
        ];
        assert_eq!(topics, expected);
        assert_eq!(inputs.frame_deltas, [-15, 0]);
    }

    #[test]
    fn action_joints_come_from_the_state_group_they_belong_to() {
        let joints = |more| -> Vec<Vec<String>> {
            settings(more)
                .expect("valid")
                .action_joints
                .into_iter()
                .map(|group| group.joints)
                .collect()
        };
        assert_eq!(joints(vec![]), [vec!["shoulder", "elbow"], vec!["grip"], vec![]]);
        assert_eq!(joints(vec![("action.hand.joints", texts(&[""]))])[1], [] as [&str; 0]);
        assert_eq!(joints(vec![("action.arm_command.joints", texts(&["x", "y"]))])[0], ["x", "y"]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (name, value, expected) in [
            (
                "state.arm.joints",
                texts(&[]),
                "is not given; group 'arm' of 'robot' needs 2 joint names",
            ),
            ("state.arm.joints", texts(&["a"]), "has 1 names; group 'arm' of 'robot' needs 2"),
            (
                "state.hand.joints",
                texts(&["elbow"]),
                "'elbow' is named twice, in group 'arm' and in group 'hand'",
            ),
            (
                "action.arm_command.joints",
                texts(&["a", "b", "c"]),
                "has 3 names; group 'arm_command' has 2 columns",
            ),
            ("action.eef.joints", texts(&["a"; 9]), "names 'a', which group 'eef' has already"),
            ("camera.ego.topic", text(""), "is empty"),
            ("camera.wrist.topic", text("camera/ego/image_raw"), "which camera 'ego' has already"),
            ("joint_states_topic", text(""), "is empty"),
        ] {
            let error = settings(vec![(name, value)]).expect_err(name).to_string();
            assert!(
                error.contains(&format!("parameter '{name}'")) && error.contains(expected),
                "{name}: {error}"
            );
        }
        let grey =
            vec![("camera.ego.transport", text("compressed")), ("camera.ego.order", text("mono"))];
        assert!(settings(grey).expect_err("order").to_string().contains("is rgb or bgr"));
    }

    #[test]
    fn topics_are_written_in_full() {
        let mut settings = settings(vec![
            ("camera.ego.topic", text("~/ego")),
            ("camera.wrist.topic", text("/wrist/image")),
        ])
        .expect("valid");
        settings.resolve_topics("/left", "/left/policy");
        let topics: Vec<_> = settings.cameras.iter().map(|camera| camera.topic.as_str()).collect();
        assert_eq!(topics, ["/left/policy/ego", "/wrist/image"]);
        assert_eq!(settings.states[0].topic, "/left/joint_states");
        settings.states[0].topic = "joint_states".to_owned();
        settings.resolve_topics("/", "/policy");
        assert_eq!(settings.states[0].topic, "/joint_states");
    }

    #[test]
    fn seeds_default_to_the_version() {
        let seed_of = |value, version| {
            seed(
                &Params::new(vec![("seed".to_owned(), Value::Integer(value))]).expect("valid"),
                version,
            )
        };
        assert_eq!(seed_of(-1, Version::N16), 42);
        assert_eq!(seed_of(-1, Version::N15), 0);
        assert_eq!(seed_of(7, Version::N16), 7);
        assert_eq!(seed_of(i64::MAX, Version::N16), i64::MAX as u64);
    }

    #[test]
    fn rate_0_is_no_timer() {
        assert_eq!(settings(vec![("rate_hz", Value::Integer(0))]).expect("valid").rate_hz, None);
    }
}
