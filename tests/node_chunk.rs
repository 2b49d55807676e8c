//! A chunk is a function of what the messages say: not of their order, the order of names or cameras in them, or the
//! sign of a quaternion.

use std::path::Path;
use std::sync::Arc;

use gr00t_blackhole::checkpoint::Snapshot;
use gr00t_blackhole::checkpoint::synth::{self, Size};
use gr00t_blackhole::contract::{Frame, Noise, PredictOptions, Version};
use gr00t_blackhole::history::{Gates, Moment, Timeline};
use gr00t_blackhole::node::intake::Intake;
use gr00t_blackhole::node::messages::TfMessage;
use gr00t_blackhole::node::params::{Params, Value};
use gr00t_blackhole::node::sensors::Sensors;
use gr00t_blackhole::node::settings::{self, Settings};
use gr00t_blackhole::policy::{Policy, PolicyOptions};
use gr00t_blackhole::recording::message::{
    Float64, Header, JointState, Quaternion, TfMessage as TfWire, Time, TransformStamped, Vector3,
    serialize,
};

const TAG: &str = "oxe_droid_relative_eef_relative_joint";
const MS: i64 = 1_000_000;
const START: i64 = 1_700_000_000_000_000_000;
const NOW: Moment = Moment { ros_ns: START + 1_600 * MS, steady_ns: 1_600 * MS };
const JOINTS: [&str; 7] = ["j1", "j2", "j3", "j4", "j5", "j6", "j7"];

/// What can be done to the same messages without changing what they say.
#[derive(Clone, Copy, Default)]
struct Disorder {
    messages: Option<u64>,
    joint_names: bool,
    cameras: bool,
    signs: bool,
    /// Frames are encoded as they arrive, as in the node.
    ahead: bool,
}

fn settings(embodiment: &gr00t_blackhole::contract::Embodiment) -> Settings {
    let text = |value: &str| Value::Text(value.to_owned());
    let overrides = [
        ("action_rate_hz", Value::Double(15.0)),
        ("state.eef_9d.source", text("tf")),
        ("state.eef_9d.base_frame", text("base")),
        ("state.eef_9d.tip_frame", text("tip")),
        ("state.gripper_position.source", text("float64")),
        ("state.gripper_position.topic", text("gripper")),
        ("state.gripper_position.source_range", Value::Doubles(vec![0.085, 0.0])),
        ("state.gripper_position.model_range", Value::Doubles(vec![0.0, 1.0])),
        ("state.joint_position.joints", Value::Texts(JOINTS.map(str::to_owned).into())),
    ];
    let overrides = overrides.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let mut params = Params::new(overrides).expect("parameters");
    params.declare_robot(&settings::names(embodiment)).expect("parameters");
    Settings::new(&params, embodiment).expect("they fit")
}

/// One message that is yet to arrive.
#[derive(Clone, Copy)]
enum Message {
    /// Camera by key, and when it was taken.
    Frame(&'static str, i64),
    Joints(i64),
    Gripper,
    Transform(&'static str, &'static str, i64),
    Fixed,
}

fn messages() -> Vec<Message> {
    let mut messages = vec![Message::Gripper, Message::Fixed];
    messages.extend((0..45).map(|n| Message::Frame("exterior_image_1_left", n * 33)));
    messages.extend((0..30).map(|n| Message::Frame("wrist_image_left", n * 50)));
    messages.extend((0..70).map(|n| Message::Joints(n * 20)));
    messages.extend((0..80).map(|n| Message::Transform("base", "elbow", n * 20 + 3)));
    messages.extend((0..80).map(|n| Message::Transform("elbow", "flange", n * 20 + 9)));
    messages
}

/// Fisher and Yates with the numbers of a linear congruence.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for last in (1..items.len()).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(last, (state >> 33) as usize % (last + 1));
    }
}

fn stamp(ms: i64) -> Time {
    Time::from_nanoseconds(START + ms * MS).expect("in range")
}

fn frame(camera: &str, ms: i64) -> Arc<Frame> {
    let seed = ms as usize * 7 + camera.len();
    let rgb: Vec<u8> = (0..320 * 180 * 3).map(|i| ((i * (seed + 13)) >> 5) as u8).collect();
    Arc::new(Frame::new(320, 180, rgb).expect("valid"))
}

fn joint_state(ms: i64, reversed: bool) -> Vec<u8> {
    let value = |joint: usize| (joint as f64 + 0.001 * ms as f64).sin();
    let mut joints: Vec<_> =
        JOINTS.iter().enumerate().map(|(n, name)| (name.to_string(), value(n))).collect();
    joints.push(("finger".to_owned(), 9.0));
    if reversed {
        joints.reverse();
    }
    let (name, position) = joints.into_iter().unzip();
    let header = Header { stamp: stamp(ms), frame_id: String::new() };
    serialize(&JointState { header, name, position, velocity: vec![], effort: vec![] }).unwrap()
}

fn transform(parent: &str, child: &str, ms: i64, sign: f64) -> TransformStamped {
    let (sine, cosine) = (0.5 + 0.0004 * ms as f64).sin_cos();
    TransformStamped {
        header: Header { stamp: stamp(ms), frame_id: parent.to_owned() },
        child_frame_id: child.to_owned(),
        translation: Vector3 { x: 0.3, y: 0.0002 * ms as f64, z: 0.2 },
        rotation: Quaternion {
            x: sign * 0.6 * sine,
            y: 0.0,
            z: sign * 0.8 * sine,
            w: sign * cosine,
        },
    }
}

/// The bytes of the chunk's groups that the messages lead to.
fn chunk(policy: &mut Policy, disorder: Disorder) -> Vec<u8> {
    let mut settings = settings(policy.embodiment());
    if disorder.cameras {
        settings.cameras.reverse();
    }
    let mut sensors = Sensors::new(&settings);
    let keys = settings.cameras.iter().map(|camera| camera.key.clone()).collect();
    let encoder = policy.intake().expect("N1.7 takes frames ahead");
    let intake = Intake::spawn(keys, encoder, |error| panic!("{error}")).expect("a thread");
    let mut order = messages();
    if let Some(seed) = disorder.messages {
        shuffle(&mut order, seed);
    }
    let timeline = Timeline::Stamp;
    for (count, message) in order.into_iter().enumerate() {
        let sign = if disorder.signs && count % 2 == 0 { -1.0 } else { 1.0 };
        let mut take_state = |topic: &str, bytes: Vec<u8>| {
            let number = settings.states.iter().position(|state| state.topic == topic).unwrap();
            let read = settings.states[number].reader.read(&bytes).expect("valid");
            // A joint state that comes late is refused: the newest counts.
            let _ = sensors.history.insert_state(
                number,
                read.stamp_ns,
                read.sample,
                NOW,
                timeline,
                0.0,
            );
        };
        match message {
            Message::Joints(ms) => {
                take_state("joint_states", joint_state(ms, disorder.joint_names))
            }
            Message::Gripper => take_state("gripper", serialize(&Float64 { data: 0.03 }).unwrap()),
            Message::Frame(key, ms) => {
                let number = settings.cameras.iter().position(|camera| camera.key == key).unwrap();
                let at_ns = START + ms * MS;
                let frame = frame(key, ms);
                let shown = frame.clone();
                let taken = sensors.history.insert_frame(number, at_ns, frame, NOW, timeline);
                if disorder.ahead && taken.is_ok() {
                    intake.arrived(number, shown);
                }
            }
            Message::Transform(parent, child, ms) => {
                let transforms = vec![transform(parent, child, ms, sign)];
                let bytes = serialize(&TfWire { transforms }).unwrap();
                let message = TfMessage::from_cdr(&bytes).expect("valid");
                let refused = sensors.insert_transforms(&message, false, NOW, timeline);
                assert_eq!(refused, [] as [&str; 0]);
            }
            Message::Fixed => {
                let transforms = vec![transform("flange", "tip", 0, sign)];
                let bytes = serialize(&TfWire { transforms }).unwrap();
                let message = TfMessage::from_cdr(&bytes).expect("valid");
                let refused = sensors.insert_transforms(&message, true, NOW, timeline);
                assert_eq!(refused, [] as [&str; 0]);
            }
        }
    }
    let max_age_ns = 500 * MS;
    let gates =
        Gates { camera_max_age_ns: max_age_ns, state_max_age_ns: max_age_ns, ..Gates::OPEN };
    let seen = sensors.observation(NOW, "put the pear on the plate", &gates).expect("complete");
    let options = PredictOptions { noise: Some(Noise::Seed(7)), ..Default::default() };
    let chunk = policy.predict(&seen.observation, &options).expect("a chunk");
    let groups = chunk.groups.iter().flat_map(|group| &group.values);
    let values = groups.flat_map(|value| value.to_le_bytes());
    chunk.stamp_ns.to_le_bytes().into_iter().chain(values).collect()
}

fn tiny(folder: &Path) -> Policy {
    let snapshot = folder.join("n17");
    synth::write(Version::N17, Size::Tiny, &snapshot, &|_, _| {}).expect("written");
    assert_eq!(Snapshot::open(&snapshot).expect("opens").version(), Version::N17);
    let options =
        PolicyOptions { snapshot, embodiment: Some(TAG.to_owned()), ..PolicyOptions::default() };
    Policy::load(&options).expect("loads")
}

#[test]
fn order_names_cameras_and_signs_change_no_byte_of_a_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let mut policy = tiny(folder.path());
    let straight = chunk(&mut policy, Disorder::default());
    for (what, disorder) in [
        ("joint names", Disorder { joint_names: true, ..Default::default() }),
        ("cameras", Disorder { cameras: true, ..Default::default() }),
        ("signs", Disorder { signs: true, ..Default::default() }),
        ("arrival", Disorder { messages: Some(1), ..Default::default() }),
        ("frames ahead", Disorder { ahead: true, ..Default::default() }),
        (
            "everything",
            Disorder {
                messages: Some(2),
                joint_names: true,
                cameras: true,
                signs: true,
                ahead: true,
            },
        ),
    ] {
        assert!(chunk(&mut policy, disorder) == straight, "{what} changed the chunk");
    }
}
