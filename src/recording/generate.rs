//! `gr00t_blackhole make-recording`: the bundled recordings, from nothing but this code.

use std::io::Cursor;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::ValueEnum;
use image::{ExtendedColorType, codecs::jpeg::JpegEncoder};

use super::camera::{Camera, render};
use super::message::{CompressedImage, Header, RosMessage, Time};
use super::motion::DURATION_S;
use super::scene::Scene;
use super::{droid, gr1};
use crate::bag::{BagWriter, TopicId};

/// 2026-01-05 09:00:00 UTC.
pub(super) const START_NS: i64 = 1_767_603_600_000_000_000;
const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;
const JPEG_QUALITY: u8 = 88;

/// A robot that is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Robot {
    /// A humanoid: head camera and joint states.
    Gr1,
    /// An arm: two cameras of different rates, joint states, a gripper on a topic of its own, transforms.
    Droid,
}

/// Write the bundled recording: camera and joint states of a robot at a table, as a rosbag2 bag.
#[derive(Debug, clap::Args)]
pub struct MakeRecordingArgs {
    /// The robot.
    #[arg(long, value_enum, default_value = "gr1")]
    pub robot: Robot,
    /// Directory of the bag; must not exist.
    #[arg(long)]
    pub out: PathBuf,
}

/// Writes the recording; two runs write the same messages. The bag is written beside its place and renamed at the end,
/// so that it is complete whenever it is there.
///
/// # Errors
/// A directory that exists already or cannot be written.
pub fn run(args: &MakeRecordingArgs) -> Result<()> {
    let out = &args.out;
    let mut bag = BagWriter::create(out)?;
    let streams = match args.robot {
        Robot::Gr1 => gr1::streams(&mut bag)?,
        Robot::Droid => droid::streams(&mut bag)?,
    };
    // In the order of arrival, as a recorder would have written them.
    let mut arrivals: Vec<(i64, usize, i64)> = Vec::new();
    for (number, stream) in streams.iter().enumerate() {
        arrivals.extend(stream.stamps.iter().map(|&at| (at + stream.latency_ns, number, at)));
    }
    arrivals.sort_unstable();
    for (arrival, number, stamp) in arrivals {
        (streams[number].write)(&mut bag, arrival as u64, stamp)?;
    }
    bag.finish().with_context(|| format!("while closing {}", out.display()))
}

/// Writes the message of a stamp, received at a time, both nanoseconds since the epoch.
type Write = Box<dyn Fn(&mut BagWriter, u64, i64) -> Result<()>>;

/// The messages of one topic.
pub(super) struct Stream {
    stamps: Vec<i64>,
    /// Between the moment that a message is about and its arrival.
    latency_ns: i64,
    write: Write,
}

impl Stream {
    /// A topic on which the message of a stamp is what `make` makes of it.
    pub(super) fn new<M: RosMessage + 'static>(
        bag: &mut BagWriter,
        topic: &str,
        stamps: Vec<i64>,
        latency_ns: i64,
        make: impl Fn(i64) -> Result<M> + 'static,
    ) -> Result<Self> {
        let topic: TopicId = bag.add_topic::<M>(topic)?;
        let write = move |bag: &mut BagWriter, arrival: u64, stamp: i64| {
            bag.write(topic, arrival, &make(stamp)?)?;
            Ok(())
        };
        Ok(Self { stamps, latency_ns, write: Box::new(write) })
    }
}

/// Header stamps of a topic at `hz`, nanoseconds since the epoch.
pub(super) fn stamps(hz: u32) -> Vec<i64> {
    let count = (DURATION_S * f64::from(hz)) as i64;
    (0..count).map(|tick| START_NS + tick * NANOSECONDS_PER_SECOND / i64::from(hz)).collect()
}

/// Seconds since the start of the motion.
pub(super) fn seconds(stamp_ns: i64) -> f64 {
    (stamp_ns - START_NS) as f64 / NANOSECONDS_PER_SECOND as f64
}

pub(super) fn header(stamp_ns: i64, frame_id: &str) -> Result<Header> {
    Ok(Header { stamp: Time::from_nanoseconds(stamp_ns)?, frame_id: frame_id.into() })
}

/// What a camera sees of a scene, as JPEG.
pub(super) fn frame(
    camera: &Camera,
    scene: Scene,
    stamp_ns: i64,
    frame_id: &str,
) -> Result<CompressedImage> {
    let mut jpeg = Cursor::new(Vec::new());
    JpegEncoder::new_with_quality(&mut jpeg, JPEG_QUALITY)
        .encode(&render(camera, scene), camera.width, camera.height, ExtendedColorType::Rgb8)
        .context("cannot encode a frame as JPEG")?;
    let header = header(stamp_ns, frame_id)?;
    Ok(CompressedImage { header, format: "jpeg".into(), data: jpeg.into_inner() })
}
