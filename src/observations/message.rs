//! The messages of an observation recording.

use serde::{Deserialize, Serialize};

use super::error::RecordError;
use crate::contract::{ActionGroup, Frame, Representation};
use crate::recording::message::{Header, RosMessage, Time};

const RGB8: &str = "rgb8";

/// `sensor_msgs/msg/Image`; `data` is borrowed where it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound(
    serialize = "D: serde_bytes::Serialize",
    deserialize = "D: serde_bytes::Deserialize<'de>"
))]
pub(super) struct Image<D = Vec<u8>> {
    pub header: Header,
    pub height: u32,
    pub width: u32,
    pub encoding: String,
    pub is_bigendian: u8,
    pub step: u32,
    #[serde(with = "serde_bytes")]
    pub data: D,
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
    pub noise_given: bool,
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

impl<D: serde_bytes::Serialize> RosMessage for Image<D> {
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

impl<'a> Image<&'a [u8]> {
    /// Frame `number` of `camera`, which a prediction at `stamp` was the first to use.
    pub fn of(camera: &str, number: u64, stamp: Time, frame: &'a Frame) -> Self {
        Self {
            header: Header { stamp, frame_id: format!("{camera}#{number}") },
            height: frame.height(),
            width: frame.width(),
            encoding: RGB8.into(),
            is_bigendian: 0,
            step: 3 * frame.width(),
            data: frame.rgb(),
        }
    }
}

impl Image {
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
            representation: name(group.representation),
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
        let known = serde_json::from_value(self.representation.as_str().into());
        let representation = known.map_err(|_| RecordError::Representation(self.representation))?;
        let (name, dim, values) = (self.name, self.dim as usize, self.values);
        Ok(ActionGroup { name, representation, dim, values })
    }
}

/// The name of a representation in all JSON of this program.
fn name(representation: Representation) -> String {
    let name = serde_json::to_value(representation).ok();
    name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::message::{deserialize, serialize};

    #[test]
    fn every_representation_keeps_its_name() {
        for (representation, expected) in [
            (Representation::Absolute, "absolute"),
            (Representation::PoseRot6d, "pose_rot6d"),
            (Representation::PoseRotvec, "pose_rotvec"),
            (Representation::PoseMatrix, "pose_matrix"),
            (Representation::Delta, "delta"),
        ] {
            let group = ActionGroup { name: "arm".into(), representation, dim: 1, values: vec![] };
            let recorded = RecordedGroup::from(&group);
            assert_eq!(recorded.representation, expected);
            assert_eq!(recorded.into_group().unwrap(), group);
        }
        let unknown =
            RecordedGroup { name: "arm".into(), representation: "".into(), dim: 1, values: vec![] };
        assert!(unknown.into_group().is_err());
    }

    #[test]
    fn images_that_are_no_recorded_frames_are_refused() {
        let frame = Frame::new(64, 64, vec![7; 64 * 64 * 3]).unwrap();
        let stamp = Time { sec: 1, nanosec: 2 };
        let written = serialize(&Image::of("ego#view", 3, stamp, &frame)).unwrap();
        let image: Image = deserialize(&written).unwrap();
        assert_eq!(image.clone().into_frame().unwrap(), ("ego#view".into(), 3, frame));
        let changed = |change: fn(&mut Image)| {
            let mut image = image.clone();
            change(&mut image);
            image.into_frame().unwrap_err().to_string()
        };
        assert!(changed(|image| image.header.frame_id = "base".into()).contains("no number"));
        assert!(changed(|image| image.header.frame_id = "a#b".into()).contains("no number"));
        assert!(changed(|image| image.encoding = "bgr8".into()).contains("not rgb8"));
        assert!(changed(|image| image.step += 6).contains("without padding"));
        assert!(changed(|image| image.data.truncate(12_287)).contains("12287"));
    }
}
