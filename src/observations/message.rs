//! The messages of an observation recording.

use serde::{Deserialize, Serialize};

use super::error::RecordError;
use crate::contract::{ActionGroup, Frame, Representation};
use crate::recording::message::{Header, RosMessage, Time};

const RGB8: &str = "rgb8";

/// `sensor_msgs/msg/Image`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Image {
    pub header: Header,
    pub height: u32,
    pub width: u32,
    pub encoding: String,
    pub is_bigendian: u8,
    pub step: u32,
    #[serde(with = "serde_bytes")]
    pub data: Vec<u8>,
}

/// `gr00t_blackhole/msg/RecordedPrediction`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedPrediction {
    pub header: Header,
    pub program: String,
    pub version: String,
    pub embodiment: String,
    pub snapshot: String,
    pub instruction: String,
    pub frames: Vec<RecordedFrames>,
    pub state: Vec<RecordedState>,
    pub seed: u64,
    pub noise: Vec<f32>,
    pub failure: String,
    pub horizon: u32,
    pub groups: Vec<RecordedGroup>,
}

/// `gr00t_blackhole/msg/RecordedFrames`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RecordedFrames {
    pub camera: String,
    pub numbers: Vec<u64>,
}

/// `gr00t_blackhole/msg/RecordedState`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedState {
    pub name: String,
    pub values: Vec<f64>,
}

/// `gr00t_blackhole/msg/RecordedGroup`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct RecordedGroup {
    pub name: String,
    pub representation: String,
    pub dim: u32,
    pub values: Vec<f32>,
}

impl RosMessage for Image {
    const TYPE: &'static str = "sensor_msgs/msg/Image";
    const SCHEMA: &'static str =
        concat!(include_str!("schema/Image.txt"), include_str!("schema/header.txt"));
}

/// Between the definitions of a `ros2msg` schema.
macro_rules! part {
    ($name:literal) => {
        concat!(
            "================================================================================\nMSG: gr00t_blackhole/",
            $name,
            "\n",
            include_str!(concat!("../../msg/", $name, ".msg"))
        )
    };
}

impl RosMessage for RecordedPrediction {
    const TYPE: &'static str = "gr00t_blackhole/msg/RecordedPrediction";
    const SCHEMA: &'static str = concat!(
        include_str!("../../msg/RecordedPrediction.msg"),
        part!("RecordedFrames"),
        part!("RecordedState"),
        part!("RecordedGroup"),
        include_str!("schema/header.txt")
    );
}

impl Image {
    /// Frame `number` of `camera`, which a prediction at `stamp` was the first to use.
    pub fn of(camera: &str, number: u64, stamp: Time, frame: &Frame) -> Self {
        Self {
            header: Header { stamp, frame_id: format!("{camera}#{number}") },
            height: frame.height(),
            width: frame.width(),
            encoding: RGB8.into(),
            is_bigendian: 0,
            step: 3 * frame.width(),
            data: frame.rgb().to_vec(),
        }
    }

    /// The frame with its camera and number.
    ///
    /// # Errors
    /// An image that [`Image::of`] has not made.
    pub fn into_frame(self) -> Result<(String, u64, Frame), RecordError> {
        let frame_id = self.header.frame_id;
        let foreign = |reason: &str| RecordError::Frame {
            frame_id: frame_id.clone(),
            reason: reason.to_owned(),
        };
        let (camera, number) =
            frame_id.rsplit_once('#').ok_or_else(|| foreign("its frame_id has no number"))?;
        let number = number.parse().map_err(|_| foreign("its frame_id has no number"))?;
        if self.encoding != RGB8 || u64::from(self.step) != 3 * u64::from(self.width) {
            return Err(foreign("it is not rgb8 without padding"));
        }
        let frame = Frame::new(self.width, self.height, self.data)
            .map_err(|error| foreign(&error.to_string()))?;
        Ok((camera.to_owned(), number, frame))
    }
}

impl From<&ActionGroup> for RecordedGroup {
    fn from(group: &ActionGroup) -> Self {
        Self {
            name: group.name.clone(),
            representation: name(group.representation).to_owned(),
            dim: group.dim as u32,
            values: group.values.clone(),
        }
    }
}

impl RecordedGroup {
    /// The group as the policy answered it.
    ///
    /// # Errors
    /// A representation that there is not.
    pub fn into_group(self) -> Result<ActionGroup, RecordError> {
        let known = REPRESENTATIONS.into_iter().find(|known| name(*known) == self.representation);
        let representation = known.ok_or(RecordError::Representation(self.representation))?;
        let (name, dim, values) = (self.name, self.dim as usize, self.values);
        Ok(ActionGroup { name, representation, dim, values })
    }
}

const REPRESENTATIONS: [Representation; 5] = [
    Representation::Absolute,
    Representation::PoseRot6d,
    Representation::PoseRotvec,
    Representation::PoseMatrix,
    Representation::Delta,
];

fn name(representation: Representation) -> &'static str {
    match representation {
        Representation::Absolute => "absolute",
        Representation::PoseRot6d => "pose_rot6d",
        Representation::PoseRotvec => "pose_rotvec",
        Representation::PoseMatrix => "pose_matrix",
        Representation::Delta => "delta",
    }
}
