//! The humanoid: a head camera and joint states.

use anyhow::Result;

use super::camera::Camera;
use super::generate::{Stream, frame, header, seconds, stamps};
use super::message::{CompressedImage, JointState};
use super::motion::joints_at;
use super::scene::{Effector, Point, Scene};
use crate::bag::BagWriter;

/// Topic of the head camera, `sensor_msgs/msg/CompressedImage`.
pub const CAMERA_TOPIC: &str = "/camera/ego_view/image/compressed";
/// Topic of the joint states, `sensor_msgs/msg/JointState`.
pub const JOINT_TOPIC: &str = "/joint_states";

pub const CAMERA_HZ: u32 = 20;
pub const JOINT_HZ: u32 = 50;

/// Between the shutter and the arrival of the frame.
const CAMERA_LATENCY_NS: i64 = 12_000_000;
/// Between reading the encoders and the arrival of the message.
const JOINT_LATENCY_NS: i64 = 1_000_000;

const HEAD: Camera = Camera {
    width: 256,
    height: 256,
    eye: Point::new(0.02, -0.46, 0.58),
    looks_at: Point::new(0.015, 0.055, 0.02),
    half_width: 0.40,
};

pub(super) fn streams(bag: &mut BagWriter) -> Result<Vec<Stream>> {
    Ok(vec![
        Stream::new(bag, CAMERA_TOPIC, stamps(CAMERA_HZ), CAMERA_LATENCY_NS, frame_at)?,
        Stream::new(bag, JOINT_TOPIC, stamps(JOINT_HZ), JOINT_LATENCY_NS, joint_state_at)?,
    ])
}

/// The camera's message with this stamp.
pub fn frame_at(stamp_ns: i64) -> Result<CompressedImage> {
    let scene = Scene::at(seconds(stamp_ns), Effector::Hand);
    frame(&HEAD, scene, stamp_ns, "head_camera")
}

/// The joint driver's message with this stamp.
pub fn joint_state_at(stamp_ns: i64) -> Result<JointState> {
    let sample = joints_at(seconds(stamp_ns));
    Ok(JointState {
        header: header(stamp_ns, "")?,
        name: sample.name,
        position: sample.position,
        velocity: sample.velocity,
        effort: vec![],
    })
}
