//! The arm: a camera beside it and one at its wrist, joint states, the opening of its gripper, and transforms.
//!
//! Topics, frames and joints are those of `config/droid.yaml`.

use anyhow::Result;

use super::camera::Camera;
use super::generate::{START_NS, Stream, frame, header, seconds, stamps};
use super::message::{
    CompressedImage, Float64, JointState, Quaternion, TfMessage, TransformStamped, Vector3,
};
use super::motion::Track;
use super::scene::{Effector, Point, Scene, closed_at, hand_at};
use crate::bag::BagWriter;

pub const EXTERIOR_TOPIC: &str = "/camera/exterior_1/image/compressed";
pub const WRIST_TOPIC: &str = "/camera/wrist/image/compressed";
pub const JOINT_TOPIC: &str = "/joint_states";
/// `std_msgs/msg/Float64`: metres between the fingers.
pub const GRIPPER_TOPIC: &str = "/gripper/opening";

/// Two cameras that nothing synchronises.
pub const EXTERIOR_HZ: u32 = 30;
pub const WRIST_HZ: u32 = 20;
pub const JOINT_HZ: u32 = 50;
pub const GRIPPER_HZ: u32 = 25;
pub const TRANSFORM_HZ: u32 = 50;

const EXTERIOR_LATENCY_NS: i64 = 21_000_000;
const WRIST_LATENCY_NS: i64 = 13_000_000;
const JOINT_LATENCY_NS: i64 = 1_000_000;
const GRIPPER_LATENCY_NS: i64 = 2_000_000;
const TRANSFORM_LATENCY_NS: i64 = 3_000_000;

const BASE_FRAME: &str = "panda_link0";
const ELBOW_FRAME: &str = "panda_link4";
const FLANGE_FRAME: &str = "panda_link8";
const DATA_FRAME: &str = "droid_eef";

/// Where the robot stands: x of its base points away from it over the table, y of the scene.
const BASE_IN_SCENE: [f64; 3] = [0.0, -0.55, 0.0];
/// From the point between the fingertips up to the flange, metres.
const FLANGE_ABOVE_GRASP: f64 = 0.115;
/// The elbow hangs over the middle between base and flange, metres.
const ELBOW_ABOVE_FLANGE: f64 = 0.32;

const WIDTH: u32 = 320;
const HEIGHT: u32 = 180;
const EXTERIOR: Camera = Camera {
    width: WIDTH,
    height: HEIGHT,
    eye: Point::new(-0.52, 0.42, 0.46),
    looks_at: Point::new(0.0, 0.04, 0.06),
    half_width: 0.55,
};
/// From the point between the fingertips to the wrist camera, and to what it looks at.
const WRIST_EYE: Point = Point::new(0.0, -0.16, 0.20);
const WRIST_LOOKS_AT: Point = Point::new(0.0, 0.015, -0.03);

/// The flange's turn about its axis, as the tangent of half the angle, at the knots of the motion.
const TURN: Track<1> =
    Track([[0.0], [0.1], [0.15], [0.15], [0.1], [-0.1], [-0.12], [-0.12], [0.0]]);

/// Metres between the fingers, open and around the pear.
const OPEN_M: f64 = 0.085;
const GRASPED_M: f64 = 0.066;

const JOINTS: [&str; 7] = [
    "panda_joint1",
    "panda_joint2",
    "panda_joint3",
    "panda_joint4",
    "panda_joint5",
    "panda_joint6",
    "panda_joint7",
];
const JOINT_MOTION: Track<7> = Track([
    [-0.54, -0.32, 0.02, -2.42, 0.05, 2.10, 0.24],
    [-0.39, 0.10, 0.03, -2.20, 0.06, 2.28, 0.40],
    [-0.24, 0.22, 0.02, -2.12, 0.05, 2.34, 0.52],
    [-0.24, 0.22, 0.02, -2.12, 0.05, 2.34, 0.52],
    [-0.19, 0.02, 0.02, -2.26, 0.04, 2.27, 0.56],
    [0.16, 0.08, -0.02, -2.18, -0.03, 2.25, 0.93],
    [0.19, 0.24, -0.02, -2.08, -0.03, 2.31, 0.96],
    [0.19, 0.24, -0.02, -2.08, -0.03, 2.31, 0.96],
    [-0.54, -0.32, 0.02, -2.42, 0.05, 2.10, 0.24],
]);

pub(super) fn streams(bag: &mut BagWriter) -> Result<Vec<Stream>> {
    Ok(vec![
        Stream::new(bag, "/tf_static", vec![START_NS], 0, fixed_at)?,
        Stream::new(bag, EXTERIOR_TOPIC, stamps(EXTERIOR_HZ), EXTERIOR_LATENCY_NS, exterior_at)?,
        Stream::new(bag, WRIST_TOPIC, stamps(WRIST_HZ), WRIST_LATENCY_NS, wrist_at)?,
        Stream::new(bag, JOINT_TOPIC, stamps(JOINT_HZ), JOINT_LATENCY_NS, joint_state_at)?,
        Stream::new(bag, GRIPPER_TOPIC, stamps(GRIPPER_HZ), GRIPPER_LATENCY_NS, opening_at)?,
        Stream::new(bag, "/tf", stamps(TRANSFORM_HZ), TRANSFORM_LATENCY_NS, transforms_at)?,
    ])
}

/// The message with this stamp of the camera beside the robot.
pub fn exterior_at(stamp_ns: i64) -> Result<CompressedImage> {
    let scene = Scene::at(seconds(stamp_ns), Effector::Gripper);
    frame(&EXTERIOR, scene, stamp_ns, "exterior_camera_1")
}

/// The message with this stamp of the camera at the wrist.
pub fn wrist_at(stamp_ns: i64) -> Result<CompressedImage> {
    let hand = Point::from(hand_at(seconds(stamp_ns)).map(|axis| axis as f32));
    let camera = Camera {
        eye: hand + WRIST_EYE,
        looks_at: hand + WRIST_LOOKS_AT,
        half_width: 0.75,
        ..EXTERIOR
    };
    let scene = Scene::at(seconds(stamp_ns), Effector::Gripper);
    frame(&camera, scene, stamp_ns, "wrist_camera")
}

/// The joint driver's message with this stamp.
pub fn joint_state_at(stamp_ns: i64) -> Result<JointState> {
    let (position, velocity) = JOINT_MOTION.at(seconds(stamp_ns));
    Ok(JointState {
        header: header(stamp_ns, "")?,
        name: JOINTS.map(String::from).into(),
        position: position.into(),
        velocity: velocity.into(),
        effort: vec![],
    })
}

/// The gripper driver's message about this moment.
pub fn opening_at(stamp_ns: i64) -> Result<Float64> {
    let closed = closed_at(seconds(stamp_ns));
    Ok(Float64 { data: OPEN_M + (GRASPED_M - OPEN_M) * closed })
}

/// The moving transforms with this stamp: base to elbow, elbow to flange.
pub fn transforms_at(stamp_ns: i64) -> Result<TfMessage> {
    let seconds = seconds(stamp_ns);
    let [x, y, z] = hand_at(seconds);
    let [base_x, base_y, base_z] = BASE_IN_SCENE;
    let flange = Vector3 { x: y - base_y, y: base_x - x, z: z - base_z + FLANGE_ABOVE_GRASP };
    let elbow = Vector3 { x: flange.x / 2.0, y: flange.y / 2.0, z: flange.z + ELBOW_ABOVE_FLANGE };
    let lower = Vector3 { x: flange.x - elbow.x, y: flange.y - elbow.y, z: flange.z - elbow.z };
    // Pointing down is a half turn about x; TURN comes after it, about z.
    let tangent = TURN.at(seconds).0[0];
    let cosine = 1.0 / (1.0 + tangent * tangent).sqrt();
    let down = Quaternion { x: cosine, y: tangent * cosine, z: 0.0, w: 0.0 };
    let level = Quaternion { x: 0.0, y: 0.0, z: 0.0, w: 1.0 };
    Ok(TfMessage {
        transforms: vec![
            transform(stamp_ns, BASE_FRAME, ELBOW_FRAME, elbow, level)?,
            transform(stamp_ns, ELBOW_FRAME, FLANGE_FRAME, lower, down)?,
        ],
    })
}

/// The fixed transform: flange to the frame of the data (spec N1.7, section 8.2).
pub fn fixed_at(stamp_ns: i64) -> Result<TfMessage> {
    let turn = Quaternion { x: 0.5, y: -0.5, z: -0.5, w: 0.5 };
    let here = Vector3 { x: 0.0, y: 0.0, z: 0.0 };
    let fixed = transform(stamp_ns, FLANGE_FRAME, DATA_FRAME, here, turn)?;
    Ok(TfMessage { transforms: vec![fixed] })
}

fn transform(
    stamp_ns: i64,
    parent: &str,
    child: &str,
    translation: Vector3,
    rotation: Quaternion,
) -> Result<TransformStamped> {
    let (header, child_frame_id) = (header(stamp_ns, parent)?, child.to_owned());
    Ok(TransformStamped { header, child_frame_id, translation, rotation })
}
