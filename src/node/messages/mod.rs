//! The sensor messages that the node reads, from their bytes on the wire.
//!
//! Subscriptions hand over the serialised message, so that one that cannot be read is seen, counted and named instead
//! of being dropped inside of the middleware, and so that a picture is copied once.

mod commands;
mod geometry;
mod numbers;

use byteorder::{BigEndian, LittleEndian};
use cdr_encoding::from_bytes;
use serde::Deserialize;

pub use commands::{
    JointTrajectory, RecordedChunk, RecordedGroup, RecordedReading, TrajectoryPoint,
};
pub use geometry::{PoseStamped, TfMessage, TransformStamped};
pub use numbers::{Dimension, Float64, Float64MultiArray};

/// Representation identifier and options in front of the first field.
const ENCAPSULATION_LEN: usize = 4;
/// Representation identifiers of plain CDR, the first version: what ROS 2 writes.
const CDR_BE: [u8; 2] = [0, 0];
const CDR_LE: [u8; 2] = [0, 1];
const NANOSECONDS: i64 = 1_000_000_000;

/// Why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{length} bytes are not a {type_name}: {reason}")]
pub struct MessageError {
    pub type_name: &'static str,
    pub length: usize,
    pub reason: String,
}

/// `sensor_msgs/msg/Image`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub stamp_ns: i64,
    pub height: u32,
    pub width: u32,
    pub encoding: String,
    pub is_bigendian: bool,
    pub step: u32,
    pub data: Vec<u8>,
}

/// `sensor_msgs/msg/CompressedImage`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressedImage {
    pub stamp_ns: i64,
    pub format: String,
    pub data: Vec<u8>,
}

/// `sensor_msgs/msg/JointState`
#[derive(Clone, Debug, PartialEq)]
pub struct JointState {
    pub stamp_ns: i64,
    pub name: Vec<String>,
    pub position: Vec<f64>,
    pub velocity: Vec<f64>,
    pub effort: Vec<f64>,
}

/// `builtin_interfaces/msg/Time`
#[derive(Deserialize)]
struct Time {
    sec: i32,
    nanosec: u32,
}

/// `std_msgs/msg/Header`
#[derive(Deserialize)]
struct Header {
    stamp: Time,
    frame_id: String,
}

#[derive(Deserialize)]
struct ImageWire<'a> {
    header: Header,
    height: u32,
    width: u32,
    encoding: String,
    is_bigendian: u8,
    step: u32,
    #[serde(borrow, with = "serde_bytes")]
    data: &'a [u8],
}

#[derive(Deserialize)]
struct CompressedImageWire<'a> {
    header: Header,
    format: String,
    #[serde(borrow, with = "serde_bytes")]
    data: &'a [u8],
}

#[derive(Deserialize)]
struct JointStateWire {
    header: Header,
    name: Vec<String>,
    position: Vec<f64>,
    velocity: Vec<f64>,
    effort: Vec<f64>,
}

impl Image {
    pub const TYPE: &str = "sensor_msgs/msg/Image";

    /// Reads a serialised message; its bytes become `data`.
    ///
    /// # Errors
    /// The bytes are not such a message.
    pub fn from_cdr(mut bytes: Vec<u8>) -> Result<Self, MessageError> {
        let (wire, end) = parse::<ImageWire<'_>>(Self::TYPE, &bytes)?;
        let data = end - wire.data.len()..end;
        let mut image = Self {
            stamp_ns: wire.header.stamp.nanoseconds(Self::TYPE, bytes.len())?,
            height: wire.height,
            width: wire.width,
            encoding: wire.encoding,
            is_bigendian: wire.is_bigendian != 0,
            step: wire.step,
            data: Vec::new(),
        };
        bytes.truncate(data.end);
        bytes.drain(..data.start);
        image.data = bytes;
        Ok(image)
    }
}

/// What the fields of an image say about its bytes, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageLayout {
    pub width: u32,
    pub height: u32,
    pub encoding: String,
    pub step: u32,
}

impl ImageLayout {
    /// As [`Image::from_cdr`], without the pixels.
    ///
    /// # Errors
    /// The bytes are not such a message.
    pub fn from_cdr(bytes: &[u8]) -> Result<Self, MessageError> {
        let (wire, _) = parse::<ImageWire<'_>>(Image::TYPE, bytes)?;
        let ImageWire { width, height, encoding, step, .. } = wire;
        Ok(Self { width, height, encoding, step })
    }
}

impl CompressedImage {
    pub const TYPE: &str = "sensor_msgs/msg/CompressedImage";

    /// Reads a serialised message.
    ///
    /// # Errors
    /// The bytes are not such a message.
    pub fn from_cdr(bytes: &[u8]) -> Result<Self, MessageError> {
        let (wire, _) = parse::<CompressedImageWire<'_>>(Self::TYPE, bytes)?;
        let stamp_ns = wire.header.stamp.nanoseconds(Self::TYPE, bytes.len())?;
        Ok(Self { stamp_ns, format: wire.format, data: wire.data.to_vec() })
    }
}

impl JointState {
    pub const TYPE: &str = "sensor_msgs/msg/JointState";

    /// Reads a serialised message.
    ///
    /// # Errors
    /// The bytes are not such a message.
    pub fn from_cdr(bytes: &[u8]) -> Result<Self, MessageError> {
        let (wire, _) = parse::<JointStateWire>(Self::TYPE, bytes)?;
        let stamp_ns = wire.header.stamp.nanoseconds(Self::TYPE, bytes.len())?;
        let JointStateWire { name, position, velocity, effort, .. } = wire;
        Ok(Self { stamp_ns, name, position, velocity, effort })
    }
}

impl Time {
    fn nanoseconds(&self, type_name: &'static str, length: usize) -> Result<i64, MessageError> {
        let nanosec = i64::from(self.nanosec);
        if nanosec >= NANOSECONDS {
            let reason = format!("its stamp has {nanosec} nanoseconds, a second or more");
            return Err(MessageError { type_name, length, reason });
        }
        Ok(i64::from(self.sec) * NANOSECONDS + nanosec)
    }
}

/// The message, and where its last field ends in `bytes`. What follows there is ignored, as ROS does: messages are
/// filled up to a multiple of four bytes, and rclpy's `serialize_message` leaves more behind them.
fn parse<'a, T: Deserialize<'a>>(
    type_name: &'static str,
    bytes: &'a [u8],
) -> Result<(T, usize), MessageError> {
    let error = |reason: String| MessageError { type_name, length: bytes.len(), reason };
    let Some((encapsulation, fields)) = bytes.split_at_checked(ENCAPSULATION_LEN) else {
        return Err(error(format!("fewer than {ENCAPSULATION_LEN} bytes")));
    };
    let representation = [encapsulation[0], encapsulation[1]];
    let parsed = match representation {
        CDR_LE => from_bytes::<T, LittleEndian>(fields),
        CDR_BE => from_bytes::<T, BigEndian>(fields),
        other => return Err(error(format!("representation {other:02x?} is not plain CDR"))),
    };
    let (message, used) = parsed.map_err(|reason| error(reason.to_string()))?;
    Ok((message, ENCAPSULATION_LEN + used))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes plain CDR by the rules: every value aligned to its size, counted from behind the encapsulation.
    #[derive(Default)]
    pub struct Writer(Vec<u8>);

    impl Writer {
        pub fn new() -> Self {
            Self(Vec::new())
        }

        fn aligned(mut self, to: usize, bytes: &[u8]) -> Self {
            self.0.resize(self.0.len().next_multiple_of(to), 0);
            self.0.extend_from_slice(bytes);
            self
        }

        pub fn u32(self, value: u32) -> Self {
            self.aligned(4, &value.to_le_bytes())
        }

        pub fn text(self, text: &str) -> Self {
            self.u32(text.len() as u32 + 1).aligned(1, text.as_bytes()).aligned(1, &[0])
        }

        pub fn u64(self, value: u64) -> Self {
            self.aligned(8, &value.to_le_bytes())
        }

        pub fn flag(self, value: bool) -> Self {
            self.aligned(1, &[u8::from(value)])
        }

        /// Without a length in front.
        pub fn bytes_of(self, bytes: &[u8]) -> Self {
            self.aligned(1, bytes)
        }

        fn bytes(self, bytes: &[u8]) -> Self {
            self.u32(bytes.len() as u32).aligned(1, bytes)
        }

        pub fn double(self, value: f64) -> Self {
            self.aligned(8, &value.to_le_bytes())
        }

        pub fn doubles(self, values: &[f64]) -> Self {
            values.iter().fold(self.u32(values.len() as u32), |w, value| w.double(*value))
        }

        pub fn header(self, sec: i32, nanosec: u32, frame: &str) -> Self {
            self.u32(sec as u32).u32(nanosec).text(frame)
        }

        pub fn message(self) -> Vec<u8> {
            [&[0, 1, 0, 0], &self.0[..]].concat()
        }
    }

    fn image(frame: &str, data: &[u8]) -> Vec<u8> {
        let fields = Writer::new().header(1_700_000_000, 5, frame).u32(2).u32(4).text("rgb8");
        fields.aligned(1, &[0]).u32(12).bytes(data).message()
    }

    fn joint_state() -> Writer {
        let fields =
            Writer::new().header(-1, 999_999_999, "base").u32(2).text("elbow").text("a_wrist");
        fields.doubles(&[0.5, -0.25]).doubles(&[]).doubles(&[1.0])
    }

    #[test]
    fn reads_images_whatever_the_alignment() {
        let data: Vec<u8> = (0..24).collect();
        for frame in ["", "c", "cam", "camera_link"] {
            let image = Image::from_cdr(image(frame, &data)).expect("valid");
            let expected = Image {
                stamp_ns: 1_700_000_000_000_000_005,
                height: 2,
                width: 4,
                encoding: "rgb8".to_owned(),
                is_bigendian: false,
                step: 12,
                data: data.clone(),
            };
            assert_eq!(image, expected);
        }
    }

    #[test]
    fn reads_compressed_images_and_joint_states() {
        let bytes = Writer::new().header(3, 4, "").text("jpeg").bytes(&[1, 2, 3]).message();
        let expected = CompressedImage {
            stamp_ns: 3_000_000_004,
            format: "jpeg".to_owned(),
            data: vec![1, 2, 3],
        };
        assert_eq!(CompressedImage::from_cdr(&bytes), Ok(expected));

        let expected = JointState {
            stamp_ns: -1,
            name: vec!["elbow".to_owned(), "a_wrist".to_owned()],
            position: vec![0.5, -0.25],
            velocity: vec![],
            effort: vec![1.0],
        };
        assert_eq!(JointState::from_cdr(&joint_state().message()), Ok(expected));
    }

    #[test]
    fn padding_is_no_part_of_the_message() {
        for padding in [3, 4, 1000] {
            let bytes = [image("c", &[7; 5]), vec![0xEE; padding]].concat();
            assert_eq!(Image::from_cdr(bytes).expect("padded").data, [7; 5]);
            let bytes = [joint_state().message(), vec![0xEE; padding]].concat();
            assert_eq!(
                JointState::from_cdr(&bytes),
                JointState::from_cdr(&joint_state().message())
            );
        }
    }

    #[test]
    fn damage_is_an_error_that_names_the_type() {
        let whole = joint_state().message();
        for length in 0..whole.len() {
            let error = JointState::from_cdr(&whole[..length]).expect_err("cut off");
            assert!(error.to_string().contains("sensor_msgs/msg/JointState"), "{error}");
        }
        assert!(JointState::from_cdr(&image("c", &[7; 24])).is_err());
        assert!(Image::from_cdr(whole.clone()).is_err());
        for representation in [[0, 6], [0, 2], [0xFF, 0xFF]] {
            let other = [&representation[..], &whole[2..]].concat();
            assert!(
                JointState::from_cdr(&other)
                    .expect_err("other CDR")
                    .reason
                    .contains("not plain CDR")
            );
        }
        let bytes = Writer::new().header(1, 1_000_000_000, "").text("").bytes(&[]).message();
        assert!(CompressedImage::from_cdr(&bytes).is_err());
    }

    proptest! {
        #[test]
        fn never_panics(
            mut bytes in proptest::collection::vec(any::<u8>(), 0..120),
            start in prop_oneof![Just(vec![0u8, 1, 0, 0]), Just(vec![0, 0, 0, 0]), Just(vec![])],
            huge in any::<proptest::sample::Index>(),
        ) {
            bytes.splice(0..0, start);
            let _ = (Image::from_cdr(bytes.clone()), CompressedImage::from_cdr(&bytes), JointState::from_cdr(&bytes));
            // Lengths that promise gigabytes.
            let mut valid = joint_state().message();
            let place = huge.index(valid.len());
            valid[place] = 0xFF;
            let _ = JointState::from_cdr(&valid);
        }
    }
}
