use super::super::image::ColourOrder;
use super::super::params::Value;
use super::super::state::pose::PoseLayout;
use super::*;
use crate::contract::{
    ActionGroupSpec, ActionNormalization, ActionReference, EulerOrder, PoseFormat, RotationFormat,
    StateEncoding, StateGroupSpec, StateScaling,
};
use crate::node::state::StateReader;

fn action(
    name: &str,
    dim: usize,
    reference: ActionReference,
    pose: Option<PoseFormat>,
) -> ActionGroupSpec {
    let normalization = ActionNormalization::MinMax { min: vec![0.0; dim], max: vec![1.0; dim] };
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
    assert_eq!(settings.period_ns, Some(500_000_000));
    let inputs = settings.inputs();
    let topics: Vec<_> =
        inputs.states.iter().map(|s| (s.topic.as_str(), s.groups.clone())).collect();
    let expected =
        [("joint_states", vec!["arm".to_owned()]), ("/hand/joint_states", vec!["hand".to_owned()])];
    assert_eq!(topics, expected);
    assert_eq!(inputs.frame_deltas, [-15, 0]);
}

#[test]
fn action_joints_come_from_the_state_group_they_belong_to() {
    let joints = |more| -> Vec<Vec<String>> {
        settings(more).expect("valid").action_joints.into_iter().map(|group| group.joints).collect()
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
    settings.resolve_topics(&Remaps::new(&[], "/left", "/left/policy"));
    let topics: Vec<_> = settings.cameras.iter().map(|camera| camera.topic.as_str()).collect();
    assert_eq!(topics, ["/left/policy/ego", "/wrist/image"]);
    assert_eq!(settings.states[0].topic, "/left/joint_states");
    settings.states[0].topic = "joint_states".to_owned();
    settings.resolve_topics(&Remaps::new(&[], "/", "/policy"));
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
    assert_eq!(settings(vec![("rate_hz", Value::Integer(0))]).expect("valid").period_ns, None);
}

/// A robot in the manner of DROID: a pose, a gripper, joints, and a base of two columns.
fn droid() -> Embodiment {
    let state = |name: &str, dim| StateGroupSpec {
        name: name.to_owned(),
        dim,
        encoding: StateEncoding::SinCos,
    };
    let format = PoseFormat::Rot6d;
    let onto_pose = ActionReference::RelativePose { state_group: "eef_9d".to_owned(), format };
    Embodiment {
        state: vec![state("eef_9d", 9), state("gripper", 1), state("arm", 2), state("base", 2)],
        action: vec![
            action("eef_9d", 9, onto_pose, Some(format)),
            action("gripper", 1, ActionReference::Absolute, None),
            action("arm", 2, ActionReference::Absolute, None),
        ],
        ..embodiment()
    }
}

fn droid_settings(more: Vec<(&str, Value)>) -> Result<Settings, ParamErrors> {
    let mut overrides = vec![
        ("state.eef_9d.source", text("tf")),
        ("state.eef_9d.base_frame", text("base_link")),
        ("state.eef_9d.tip_frame", text("tool")),
        ("state.gripper.source", text("float64")),
        ("state.gripper.topic", text("gripper/position")),
        ("state.gripper.source_range", Value::Doubles(vec![0.085, 0.0])),
        ("state.gripper.model_range", Value::Integers(vec![0, 1])),
        ("state.arm.joints", texts(&["shoulder", "elbow"])),
        ("state.base.source", text("columns")),
        ("state.base.topic", text("base/state")),
        ("state.base.columns", texts(&["height", "yaw"])),
        ("state.base.layout", texts(&["yaw", "x", "height"])),
        ("action.gripper.joints", texts(&["finger"])),
    ];
    for (name, value) in more {
        overrides.retain(|(other, _)| *other != name);
        overrides.push((name, value));
    }
    let named = |(name, value): (&str, Value)| (name.to_owned(), value);
    let mut params = Params::new(overrides.into_iter().map(named).collect())?;
    params.declare_robot(&names(&droid()))?;
    Settings::new(&params, &droid())
}

#[test]
fn every_group_has_its_source() {
    let mut settings = droid_settings(vec![]).expect("valid");
    settings.resolve_topics(&Remaps::new(&[], "/droid", "/droid/policy"));
    let sources: Vec<_> = settings
        .states
        .iter()
        .map(|state| (state.topic.as_str(), state.reader.message_type(), state.reader.groups()))
        .collect();
    let expected = [
        ("/droid/joint_states", "sensor_msgs/msg/JointState", vec!["arm"]),
        ("/droid/gripper/position", "std_msgs/msg/Float64", vec!["gripper"]),
        ("/droid/base/state", "std_msgs/msg/Float64MultiArray", vec!["base"]),
    ];
    assert_eq!(sources, expected);
    let map = settings.states[1].reader.map("gripper").expect("both ranges are given");
    assert_eq!((map.apply(0.085), map.apply(0.0)), (0.0, 1.0));
    let stamped: Vec<_> = settings.inputs().states.iter().map(|state| state.stamped).collect();
    assert_eq!(stamped, [true, false, false]);
    let [eef] = &settings.transforms[..] else { panic!("one transform") };
    assert_eq!((eef.base_frame.as_str(), eef.tip_frame.as_str()), ("base_link", "tool"));
    assert_eq!(eef.layout, PoseLayout::Pose(PoseFormat::Rot6d));
    let [pose] = &settings.poses[..] else { panic!("one group of poses") };
    assert_eq!((pose.topic.as_str(), pose.frame.as_str()), ("~/eef_9d/poses", "base_link"));
    // Joints of its own do not take over the units of another device.
    assert_eq!(settings.action_joints[1].map, None);
}

#[test]
fn a_gripper_joint_is_mapped_there_and_back() {
    let settings = droid_settings(vec![
        ("state.gripper.source", text("joints")),
        ("state.gripper.topic", text("")),
        ("state.gripper.joints", texts(&["finger"])),
        ("state.gripper.source_range", Value::Doubles(vec![0.0, 0.8])),
        ("action.gripper.joints", texts(&[])),
    ])
    .expect("valid");
    assert_eq!(settings.states[0].reader.groups(), ["gripper", "arm"]);
    let map = settings.action_joints[1].map.expect("that of the state, backwards");
    assert!((map.apply(1.0) - 0.8).abs() < 1e-15);

    let own = droid_settings(vec![
        ("action.gripper.model_range", Value::Doubles(vec![0.0, 1.0])),
        ("action.gripper.joint_range", Value::Doubles(vec![0.0, 0.725])),
    ]);
    let map = own.expect("valid").action_joints[1].map.expect("given");
    assert!((map.apply(0.5) - 0.3625).abs() < 1e-15);
}

#[test]
fn sources_that_do_not_fit_are_named() {
    for (name, value, expected) in [
        ("state.gripper.source", text("tf"), "'state.gripper.topic' is given, but source 'tf'"),
        ("state.gripper.topic", text(""), "source 'float64' needs its topic"),
        ("state.gripper.model_range", Value::Doubles(vec![]), "has 0 values; it needs both ends"),
        ("state.gripper.source_range", Value::Doubles(vec![0.1]), "has 1 values"),
        ("state.gripper.source_range", Value::Doubles(vec![0.1, 0.1]), "must differ"),
        (
            "state.arm.source",
            text("float64"),
            "is float64, one value; group 'arm' of 'robot' has 2",
        ),
        (
            "state.base.columns",
            texts(&["yaw"]),
            "has 1 names; group 'base' of 'robot' needs 2 column",
        ),
        ("state.base.layout", texts(&["yaw", "x"]), "column 'height' is missing"),
        ("state.eef_9d.base_frame", text(""), "needs the names of both frames"),
        ("state.eef_9d.tip_frame", text("base_link"), "is 'base_link', as base_frame is"),
        (
            "state.eef_9d.format",
            text("xyz_rotvec"),
            "is xyz_rotvec, but the checkpoint says xyz_rot6d",
        ),
        ("pose_frame", text("world"), "is given in 'base_link', and so are the poses"),
        ("state.arm.tip_frame", text("tool"), "source 'joints' does not use it"),
    ] {
        let error = droid_settings(vec![(name, value)]).expect_err(name).to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
    // A group that the checkpoint does not declare as a pose.
    let base_as_pose = |format: &str| {
        droid_settings(vec![
            ("state.base.source", text("pose")),
            ("state.base.columns", texts(&[])),
            ("state.base.layout", texts(&[])),
            ("state.base.format", text(format)),
        ])
    };
    let error = base_as_pose("auto").expect_err("undeclared").to_string();
    assert!(error.contains("does not say how group 'base' writes a pose"), "{error}");
    let error = base_as_pose("xyz").expect_err("too wide").to_string();
    assert!(error.contains("is xyz, 3 values; group 'base' of 'robot' has 2"), "{error}");
}

/// A group that N1.5 takes for a rotation, from a pose.
fn rotation_settings(rotation: RotationFormat, format: &str) -> Result<Settings, ParamErrors> {
    let encoding = StateEncoding::Double { rotation: Some(rotation), scaling: StateScaling::None };
    let turn = StateGroupSpec { name: "turn".to_owned(), dim: rotation.dim(), encoding };
    let robot = Embodiment { state: vec![turn], action: vec![], ..embodiment() };
    let overrides =
        [("state.turn.source", "pose"), ("state.turn.topic", "eef"), ("state.turn.format", format)];
    let named = |(name, value): (&str, &str)| (name.to_owned(), text(value));
    let mut params = Params::new(overrides.into_iter().map(named).collect())?;
    params.declare_robot(&names(&robot))?;
    Settings::new(&params, &robot)
}

#[test]
fn case_14_rotations_come_from_poses_and_euler_angles_do_not() {
    let settings = rotation_settings(RotationFormat::Quaternion, "auto").expect("declared");
    let StateReader::Pose { layout, .. } = settings.states[0].reader else { panic!("a pose") };
    assert_eq!(layout, PoseLayout::QuaternionWxyz);
    let error =
        rotation_settings(RotationFormat::Quaternion, "quaternion_xyzw").expect_err("order");
    assert!(error.to_string().contains("but the checkpoint says quaternion_wxyz"), "{error}");
    let rpy = RotationFormat::Euler(EulerOrder::from_letters("rpy").expect("an order"));
    for format in ["auto", "rotvec"] {
        let error = rotation_settings(rpy, format).expect_err("Euler angles").to_string();
        assert!(error.contains("'state.turn.source' is pose, but group 'turn'"), "{error}");
        assert!(error.contains("Euler angles") && error.contains("columns"), "{error}");
    }
}

#[test]
fn letterbox_is_what_was_written() {
    let given =
        |value| letterbox(&Params::new(vec![("letterbox".to_owned(), value)]).expect("a choice"));
    assert_eq!(letterbox(&Params::new(vec![]).expect("defaults")), Letterbox::Auto);
    assert_eq!(given(text("off")), Letterbox::Off);
    // As YAML reads them where they have no quotes.
    assert_eq!(
        (given(Value::Bool(true)), given(Value::Bool(false))),
        (Letterbox::On, Letterbox::Off)
    );
    let choices = Letterbox::ALL.map(|choice| given(text(choice.name())));
    assert_eq!(choices, Letterbox::ALL);
    let version = Params::new(vec![("version".to_owned(), Value::Bool(true))]);
    assert!(version.is_err(), "on is no version");
}

#[test]
fn the_frame_of_poses_is_what_somebody_has_said() {
    let frame =
        |more: Vec<(&str, Value)>| droid_settings(more).expect("valid").poses.remove(0).frame;
    let pose = |base_frame: &str| {
        vec![
            ("state.eef_9d.source", text("pose")),
            ("state.eef_9d.topic", text("eef")),
            ("state.eef_9d.base_frame", text(base_frame)),
            ("state.eef_9d.tip_frame", text("")),
        ]
    };
    assert_eq!(frame(vec![("pose_frame", text("base_link"))]), "base_link");
    assert_eq!(frame(pose("table")), "table");
    assert_eq!(frame(pose("")), "");
    assert_eq!(frame([pose(""), vec![("pose_frame", text("world"))]].concat()), "world");
}

#[test]
fn case_94_limits_of_actions_are_per_joint_or_for_all() {
    let settings = droid_settings(vec![
        ("action.arm.position_min", Value::Doubles(vec![-2.0])),
        ("action.arm.position_max", Value::Doubles(vec![1.0, 2.0])),
        ("action.gripper.velocity_max", Value::Integers(vec![3])),
        ("action.gripper.model_range", Value::Doubles(vec![0.0, 1.0])),
        ("action.gripper.joint_range", Value::Doubles(vec![0.0, 0.8])),
        ("action.eef_9d.translation_step_max_m", Value::Double(0.005)),
    ])
    .expect("valid");
    let guard = &settings.guard;
    assert!((guard.step_s - 0.05).abs() < 1e-12);
    let limits = |group: &str| {
        let limits = guard.joints.iter().find(|limits| limits.group == group).expect("limits");
        let limits = limits.joints.iter().map(|j| (j.minimum, j.maximum, j.velocity));
        limits.collect::<Vec<_>>()
    };
    let none = f64::INFINITY;
    assert_eq!(limits("arm"), [(-2.0, 1.0, none), (-2.0, 2.0, none)]);
    assert_eq!(limits("gripper"), [(-none, none, 3.0)]);
    assert!(guard.joints.iter().any(|limits| limits.group == "gripper" && limits.map.is_some()));
    let arm = guard.joints.iter().find(|limits| limits.group == "arm").expect("limits");
    let elbow = arm.joints[1].observed.as_ref().expect("a joint of the state");
    assert_eq!((elbow.state_group.as_str(), elbow.column, elbow.map), ("arm", 1, None));
    let [eef] = &guard.poses[..] else { panic!("one group of poses") };
    assert_eq!((eef.translation_step, eef.rotation_step), (0.005, none));
    assert_eq!(eef.observed.as_deref(), Some("eef_9d"));
    assert_eq!(droid_settings(vec![]).expect("valid").guard.joints, []);
}

#[test]
fn limits_that_do_not_fit_are_named() {
    for (name, value, expected) in [
        (
            "action.arm.position_max",
            Value::Doubles(vec![1.0; 3]),
            "has 3 values; group 'arm' needs 2, one per joint, or one for all",
        ),
        ("action.arm.velocity_max", Value::Doubles(vec![-1.0]), "is -1; a speed is 0 or more"),
        ("action.eef_9d.position_min", Value::Doubles(vec![0.0]), "group 'eef_9d' has no joints"),
        ("action.arm.rotation_step_max_rad", Value::Double(0.1), "group 'arm' is no pose"),
    ] {
        let error = droid_settings(vec![(name, value)]).expect_err(name).to_string();
        assert!(
            error.contains(&format!("parameter '{name}'")) && error.contains(expected),
            "{error}"
        );
    }
    let crossed = droid_settings(vec![
        ("action.arm.position_min", Value::Doubles(vec![0.0, 3.0])),
        ("action.arm.position_max", Value::Doubles(vec![1.0])),
    ]);
    let error = crossed.expect_err("crossed").to_string();
    assert!(error.contains("'action.arm.position_min' is 3 for joint"), "{error}");
    assert!(error.contains("above its position_max 1"), "{error}");
}
