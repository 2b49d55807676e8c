//! `gr00t_blackhole make-recording`: the bundled recording, from nothing but this code.

use std::io::Cursor;
use std::path::PathBuf;

use anyhow::{Context, Result};
use image::{ExtendedColorType, codecs::jpeg::JpegEncoder};

use super::bag::BagWriter;
use super::camera::{FRAME_SIDE, render};
use super::message::{CompressedImage, Header, JointState, Time};
use super::motion::{DURATION_S, joints_at};

/// Topic of the head camera, `sensor_msgs/msg/CompressedImage`.
pub const CAMERA_TOPIC: &str = "/camera/ego_view/image/compressed";
/// Topic of the joint states, `sensor_msgs/msg/JointState`.
pub const JOINT_TOPIC: &str = "/joint_states";
/// What the recorded robot does, in words.
pub const INSTRUCTION: &str = "pick the pear and place it on the plate";

pub const CAMERA_HZ: u32 = 20;
pub const JOINT_HZ: u32 = 50;
const JPEG_QUALITY: u8 = 88;

/// 2026-01-05 09:00:00 UTC.
const START_NS: i64 = 1_767_603_600_000_000_000;
/// Between the shutter and the arrival of the frame.
const CAMERA_LATENCY_NS: i64 = 12_000_000;
/// Between reading the encoders and the arrival of the message.
const JOINT_LATENCY_NS: i64 = 1_000_000;
const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// Writes the bundled recording: camera and joint states of a robot that puts a pear on a plate, as a rosbag2 bag.
#[derive(Debug, clap::Args)]
pub struct MakeRecordingArgs {
    /// Directory of the bag; must not exist.
    #[arg(long)]
    pub out: PathBuf,
}

/// Writes the recording; two runs write the same messages.
///
/// # Errors
/// A directory that exists already or cannot be written.
pub fn run(args: &MakeRecordingArgs) -> Result<()> {
    let out = &args.out;
    let mut bag = BagWriter::create(out)?;
    let camera = bag.add_topic::<CompressedImage>(CAMERA_TOPIC)?;
    let joints = bag.add_topic::<JointState>(JOINT_TOPIC)?;
    let mut frames = stamps(CAMERA_HZ).peekable();
    let mut states = stamps(JOINT_HZ).peekable();
    // In the order of arrival, as a recorder would have written them.
    loop {
        let frame_time = frames.peek().map(|stamp| stamp + CAMERA_LATENCY_NS);
        let state_time = states.peek().map(|stamp| stamp + JOINT_LATENCY_NS);
        match (frame_time, state_time) {
            (None, None) => break,
            (Some(frame), state) if state.is_none_or(|state| frame < state) => {
                let message = frame_at(frame - CAMERA_LATENCY_NS)?;
                bag.write(camera, frame as u64, &message)?;
                frames.next();
            }
            (_, Some(state)) => {
                let message = joint_state_at(state - JOINT_LATENCY_NS)?;
                bag.write(joints, state as u64, &message)?;
                states.next();
            }
            (Some(_), None) => unreachable!("the guard above holds when no state is left"),
        }
    }
    bag.finish().with_context(|| format!("while closing {}", out.display()))
}

/// Header stamps of a topic at `hz`, nanoseconds since the epoch.
fn stamps(hz: u32) -> impl Iterator<Item = i64> {
    let count = (DURATION_S * f64::from(hz)) as i64;
    (0..count).map(move |tick| START_NS + tick * NANOSECONDS_PER_SECOND / i64::from(hz))
}

/// Seconds since the start of the motion.
fn seconds(stamp_ns: i64) -> f64 {
    (stamp_ns - START_NS) as f64 / NANOSECONDS_PER_SECOND as f64
}

/// The camera's message with this stamp.
pub fn frame_at(stamp_ns: i64) -> Result<CompressedImage> {
    let mut jpeg = Cursor::new(Vec::new());
    JpegEncoder::new_with_quality(&mut jpeg, JPEG_QUALITY)
        .encode(&render(seconds(stamp_ns)), FRAME_SIDE, FRAME_SIDE, ExtendedColorType::Rgb8)
        .context("cannot encode a frame as JPEG")?;
    let header =
        Header { stamp: Time::from_nanoseconds(stamp_ns)?, frame_id: "head_camera".into() };
    Ok(CompressedImage { header, format: "jpeg".into(), data: jpeg.into_inner() })
}

/// The joint driver's message with this stamp.
pub fn joint_state_at(stamp_ns: i64) -> Result<JointState> {
    let sample = joints_at(seconds(stamp_ns));
    let header = Header { stamp: Time::from_nanoseconds(stamp_ns)?, frame_id: String::new() };
    Ok(JointState {
        header,
        name: sample.name,
        position: sample.position,
        velocity: sample.velocity,
        effort: vec![],
    })
}
