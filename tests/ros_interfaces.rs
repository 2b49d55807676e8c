//! The generated messages, as the node sees them: they exist, and survive the wire with every field.
#![cfg(feature = "ros")]

use gr00t_blackhole::bag::Bag;
use gr00t_blackhole::contract::{Observation, PredictOptions, Version};
use gr00t_blackhole::observations::{Identity, Recorder};
use r2r::WrappedTypesupport;
use r2r::gr00t_blackhole::msg::{
    ActionChunk, ActionGroup, ObservationAge, RecordedPrediction, StageTiming,
};

fn chunk() -> ActionChunk {
    let mut chunk = ActionChunk {
        sequence: 7,
        version: "n16".into(),
        embodiment: "gr1".into(),
        backend: "cpu".into(),
        instruction: "pick up the apple".into(),
        seed: u64::MAX,
        horizon: 2,
        dt: 0.05,
        groups: vec![ActionGroup {
            name: "waist".into(),
            representation: ActionGroup::JOINT_POSITION as u8,
            dim: 3,
            joint_names: vec!["yaw".into(), "pitch".into(), "roll".into()],
            values: vec![0.1, -0.2, 0.3, f32::MIN_POSITIVE, -0.0, 1e30],
            ..Default::default()
        }],
        timings: vec![StageTiming { stage: "encode".into(), seconds: 1.25e-3 }],
        ages: vec![ObservationAge {
            input: "ego_view".into(),
            topic: "/camera/image_raw".into(),
            delta: -15,
            age: 0.034,
            ..Default::default()
        }],
        ..Default::default()
    };
    chunk.header.stamp.sec = 1_700_000_000;
    chunk.header.stamp.nanosec = 999_999_999;
    chunk.goal_id.uuid = (1..=16).collect();
    chunk
}

#[test]
fn a_chunk_survives_the_wire() {
    let sent = chunk();
    let bytes = sent.to_serialized_bytes().expect("serialise");
    let received = ActionChunk::from_serialized_bytes(&bytes).expect("deserialise");
    assert_eq!(received, sent);
}

#[test]
fn every_representation_has_its_own_number() {
    let mut numbers = [
        ActionGroup::UNSET as u8,
        ActionGroup::JOINT_POSITION as u8,
        ActionGroup::VALUE as u8,
        ActionGroup::POSE_ROT6D as u8,
        ActionGroup::POSE_ROTVEC as u8,
        ActionGroup::POSE_MATRIX as u8,
        ActionGroup::VELOCITY as u8,
        ActionGroup::DELTA as u8,
        ActionGroup::POSITION as u8,
        ActionGroup::ROTATION_ROTVEC as u8,
        ActionGroup::ROTATION_QUATERNION as u8,
        ActionGroup::ROTATION_ROT6D as u8,
        ActionGroup::ROTATION_MATRIX as u8,
        ActionGroup::ROTATION_EULER as u8,
    ];
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
}

#[test]
fn every_package_of_the_design_has_bindings() {
    // Names only: a package that the filter in .cargo/config.toml lacks does not compile here.
    type Services = (
        r2r::gr00t_blackhole::srv::SetInstruction::Request,
        r2r::gr00t_blackhole::srv::GetContract::Response,
        r2r::gr00t_blackhole::action::PredictChunk::Goal,
        r2r::lifecycle_msgs::srv::ChangeState::Request,
        r2r::action_msgs::srv::CancelGoal::Request,
        r2r::rcl_interfaces::srv::SetParameters::Request,
    );
    type Messages = (
        r2r::sensor_msgs::msg::Image,
        r2r::trajectory_msgs::msg::JointTrajectory,
        r2r::geometry_msgs::msg::PoseStamped,
        r2r::diagnostic_msgs::msg::DiagnosticArray,
        r2r::rosgraph_msgs::msg::Clock,
        r2r::std_msgs::msg::Float64MultiArray,
    );
    assert!(size_of::<(Services, Messages)>() > 0);
}

#[test]
fn a_recorded_prediction_is_the_message_of_its_definition() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("recording");
    let (version, embodiment, snapshot) = (Version::N17, "droid".into(), "/models/n17".into());
    let identity = Identity { version, embodiment, snapshot };
    let recorder = Recorder::create(&path, identity, u64::MAX).expect("a recording");
    let observation = Observation {
        stamp_ns: 1_700_000_000_999_999_999,
        state: [("gripper".to_owned(), vec![-0.0, 0.1]), ("arm".to_owned(), vec![])].into(),
        instruction: "pick up the apple".to_owned(),
        ..Observation::default()
    };
    recorder.record(&observation.into(), &PredictOptions::default(), Err("refused".to_owned()));
    assert_eq!(recorder.finish().recorded, 1);
    let bag = Bag::read(&path).expect("a bag");
    let found =
        RecordedPrediction::from_serialized_bytes(&bag.messages[0].data).expect("deserialise");
    assert_eq!((found.header.stamp.sec, found.header.stamp.nanosec), (1_700_000_000, 999_999_999));
    assert_eq!((found.version.as_str(), found.embodiment.as_str()), ("n17", "droid"));
    assert_eq!(
        (found.instruction.as_str(), found.failure.as_str()),
        ("pick up the apple", "refused")
    );
    assert_eq!((found.seed, found.horizon), (Version::N17.default_seed(), 0));
    assert_eq!(found.state[1].name, "gripper");
    assert_eq!(found.state[1].values[0].to_bits(), (-0.0f64).to_bits());
    assert!(found.frames.is_empty() && found.groups.is_empty() && !found.noise_given);
}
