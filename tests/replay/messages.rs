//! Messages that only these tests write.

use gr00t_blackhole::recording::message::{Header, RosMessage, Time};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Image {
    pub header: Header,
    pub height: u32,
    pub width: u32,
    pub encoding: String,
    pub is_bigendian: u8,
    pub step: u32,
    pub data: Vec<u8>,
}

impl RosMessage for Image {
    const TYPE: &'static str = "sensor_msgs/msg/Image";
    const SCHEMA: &'static str = "std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\nuint32 step\nuint8[] data\n";
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    pub clock: Time,
}

impl RosMessage for Clock {
    const TYPE: &'static str = "rosgraph_msgs/msg/Clock";
    const SCHEMA: &'static str = "builtin_interfaces/Time clock\n";
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    pub positions: Vec<f64>,
    pub velocities: Vec<f64>,
    pub accelerations: Vec<f64>,
    pub effort: Vec<f64>,
    pub time_from_start: Time,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JointTrajectory {
    pub header: Header,
    pub joint_names: Vec<String>,
    pub points: Vec<Point>,
}

impl RosMessage for JointTrajectory {
    const TYPE: &'static str = "trajectory_msgs/msg/JointTrajectory";
    const SCHEMA: &'static str = "std_msgs/Header header\nstring[] joint_names\ntrajectory_msgs/JointTrajectoryPoint[] points\n";
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    pub name: String,
    pub representation: u8,
    pub dim: u32,
    pub joint_names: Vec<String>,
    pub columns: Vec<String>,
    pub frame_id: String,
    pub values: Vec<f32>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageTiming {
    pub stage: String,
    pub seconds: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Age {
    pub input: String,
    pub topic: String,
    pub delta: i32,
    pub stamp: Time,
    pub age: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActionChunk {
    pub header: Header,
    pub sequence: u64,
    pub goal_id: [u8; 16],
    pub version: String,
    pub embodiment: String,
    pub backend: String,
    pub instruction: String,
    pub seed: u64,
    pub noise_given: bool,
    pub horizon: u32,
    pub dt: f64,
    pub groups: Vec<Group>,
    pub timings: Vec<StageTiming>,
    pub ages: Vec<Age>,
    pub completed: Time,
}

impl RosMessage for ActionChunk {
    const TYPE: &'static str = "gr00t_blackhole/msg/ActionChunk";
    const SCHEMA: &'static str = "std_msgs/Header header\nuint64 sequence\n";
}
