//! The messages of the recordings, and CDR as ROS 2 puts it on the wire.

use cdr_encoding::{Error as CdrError, from_bytes, to_writer};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Bytes before the first field: representation identifier and options.
const ENCAPSULATION_LEN: usize = 4;
/// Plain CDR, little endian: what every common ROS 2 machine writes.
const CDR_LE: [u8; ENCAPSULATION_LEN] = [0, 1, 0, 0];
/// Lowest bit of the second byte: set when the fields are little endian.
const LITTLE_ENDIAN_BIT: u8 = 1;
/// `builtin_interfaces/Time`: seconds as `int32`, nanoseconds as `uint32`.
const STAMP_LEN: usize = 8;
const NANOSECONDS_PER_SECOND: i64 = 1_000_000_000;

/// `builtin_interfaces/msg/Time`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Time {
    pub sec: i32,
    pub nanosec: u32,
}

impl Time {
    /// The time that is `nanoseconds` after the epoch.
    ///
    /// # Errors
    /// [`MessageError::Stamp`] outside of what `sec` can hold (years 1901 to 2038).
    pub fn from_nanoseconds(nanoseconds: i64) -> Result<Self, MessageError> {
        let sec = i32::try_from(nanoseconds.div_euclid(NANOSECONDS_PER_SECOND))
            .map_err(|_| MessageError::Stamp { nanoseconds })?;
        Ok(Self { sec, nanosec: nanoseconds.rem_euclid(NANOSECONDS_PER_SECOND) as u32 })
    }

    pub fn nanoseconds(self) -> i64 {
        i64::from(self.sec) * NANOSECONDS_PER_SECOND + i64::from(self.nanosec)
    }
}

/// `std_msgs/msg/Header`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub stamp: Time,
    pub frame_id: String,
}

/// `sensor_msgs/msg/CompressedImage`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompressedImage {
    pub header: Header,
    pub format: String,
    pub data: Vec<u8>,
}

/// `sensor_msgs/msg/JointState`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JointState {
    pub header: Header,
    pub name: Vec<String>,
    pub position: Vec<f64>,
    pub velocity: Vec<f64>,
    pub effort: Vec<f64>,
}

/// `std_msgs/msg/Float64`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Float64 {
    pub data: f64,
}

/// `geometry_msgs/msg/Vector3`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vector3 {
    pub x: f64,
    pub y: f64,
    pub z: f64,
}

/// `geometry_msgs/msg/Quaternion`
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quaternion {
    pub x: f64,
    pub y: f64,
    pub z: f64,
    pub w: f64,
}

/// `geometry_msgs/msg/TransformStamped`, with the two parts of its `transform`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransformStamped {
    pub header: Header,
    pub child_frame_id: String,
    pub translation: Vector3,
    pub rotation: Quaternion,
}

/// `tf2_msgs/msg/TFMessage`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TfMessage {
    pub transforms: Vec<TransformStamped>,
}

/// A message type that a bag can describe to its reader.
pub trait RosMessage: Serialize {
    /// Full name, such as `sensor_msgs/msg/JointState`.
    const TYPE: &'static str;
    /// The definition with those of the types inside it, in the `ros2msg` form of MCAP.
    const SCHEMA: &'static str;
}

impl RosMessage for CompressedImage {
    const TYPE: &'static str = "sensor_msgs/msg/CompressedImage";
    const SCHEMA: &'static str = include_str!("schema/CompressedImage.txt");
}

impl RosMessage for JointState {
    const TYPE: &'static str = "sensor_msgs/msg/JointState";
    const SCHEMA: &'static str = include_str!("schema/JointState.txt");
}

impl RosMessage for Float64 {
    const TYPE: &'static str = "std_msgs/msg/Float64";
    const SCHEMA: &'static str = include_str!("schema/Float64.txt");
}

impl RosMessage for TfMessage {
    const TYPE: &'static str = "tf2_msgs/msg/TFMessage";
    const SCHEMA: &'static str = include_str!("schema/TFMessage.txt");
}

/// Why bytes are not the message they are said to be.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    #[error("{nanoseconds} ns does not fit a ROS time stamp, which holds the years 1901 to 2038")]
    Stamp { nanoseconds: i64 },
    #[error("a serialized message of {found} bytes is shorter than the {needed} that it must have")]
    Short { needed: usize, found: usize },
    #[error(
        "encapsulation {0:#04x} {1:#04x} is not plain CDR; ROS 2 writes 0x00 0x00 (big endian) or 0x00 0x01"
    )]
    Encapsulation(u8, u8),
    #[error("cannot write {message_type} as CDR: {error}")]
    Serialize { message_type: &'static str, error: CdrError },
    #[error("the bytes are no {message_type}: {error}")]
    Deserialize { message_type: &'static str, error: CdrError },
}

/// `message` as it goes over DDS and into a bag: encapsulation, then little-endian fields.
///
/// # Errors
/// [`MessageError::Serialize`] for a string or sequence of 4 GiB or more.
pub fn serialize<M: RosMessage>(message: &M) -> Result<Vec<u8>, MessageError> {
    let mut bytes = Vec::new();
    serialize_to(message, &mut bytes)?;
    Ok(bytes)
}

/// As [`serialize`], in place of what `bytes` held.
///
/// # Errors
/// As [`serialize`].
pub fn serialize_to<M: RosMessage>(message: &M, bytes: &mut Vec<u8>) -> Result<(), MessageError> {
    bytes.clear();
    bytes.extend(CDR_LE);
    to_writer::<M, byteorder::LittleEndian, _>(bytes, message)
        .map_err(|error| MessageError::Serialize { message_type: M::TYPE, error })
}

/// Reads a message in either byte order.
///
/// # Errors
/// Bytes that are no plain CDR, or that end before the last field does.
pub fn deserialize<M: RosMessage + DeserializeOwned>(bytes: &[u8]) -> Result<M, MessageError> {
    let little_endian = is_little_endian(bytes)?;
    let fields = &bytes[ENCAPSULATION_LEN..];
    let read = if little_endian {
        from_bytes::<M, byteorder::LittleEndian>(fields)
    } else {
        from_bytes::<M, byteorder::BigEndian>(fields)
    };
    read.map(|(message, _)| message)
        .map_err(|error| MessageError::Deserialize { message_type: M::TYPE, error })
}

/// The header stamp of a serialized message whose first field is a `std_msgs/Header`.
///
/// # Errors
/// As [`write_stamp`].
pub fn read_stamp(bytes: &[u8]) -> Result<Time, MessageError> {
    let little_endian = is_little_endian(bytes)?;
    let [sec, nanosec] = stamp_words(bytes)?;
    Ok(if little_endian {
        Time { sec: i32::from_le_bytes(sec), nanosec: u32::from_le_bytes(nanosec) }
    } else {
        Time { sec: i32::from_be_bytes(sec), nanosec: u32::from_be_bytes(nanosec) }
    })
}

/// Replaces the header stamp of a serialized message whose first field is a `std_msgs/Header`, in its own byte
/// order and without touching anything else. [`starts_with_header`] tells which types those are.
///
/// # Errors
/// Bytes that are no plain CDR or too short to hold a stamp.
pub fn write_stamp(bytes: &mut [u8], stamp: Time) -> Result<(), MessageError> {
    let (sec, nanosec) = if is_little_endian(bytes)? {
        (stamp.sec.to_le_bytes(), stamp.nanosec.to_le_bytes())
    } else {
        (stamp.sec.to_be_bytes(), stamp.nanosec.to_be_bytes())
    };
    stamp_words(bytes)?;
    let place = &mut bytes[ENCAPSULATION_LEN..ENCAPSULATION_LEN + STAMP_LEN];
    place[..4].copy_from_slice(&sec);
    place[4..].copy_from_slice(&nanosec);
    Ok(())
}

/// Whether a `ros2msg` schema's first field is a `std_msgs/Header`.
pub fn starts_with_header(ros2msg_schema: &str) -> bool {
    let first_field = ros2msg_schema
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .find(|line| !line.is_empty() && !line.contains('='));
    let field_type = first_field.and_then(|field| field.split_whitespace().next());
    matches!(field_type, Some("std_msgs/Header" | "std_msgs/msg/Header" | "Header"))
}

fn is_little_endian(bytes: &[u8]) -> Result<bool, MessageError> {
    let [high, low, _, _] = *bytes
        .first_chunk::<ENCAPSULATION_LEN>()
        .ok_or(MessageError::Short { needed: ENCAPSULATION_LEN, found: bytes.len() })?;
    if high != 0 || low > LITTLE_ENDIAN_BIT {
        return Err(MessageError::Encapsulation(high, low));
    }
    Ok(low == LITTLE_ENDIAN_BIT)
}

fn stamp_words(bytes: &[u8]) -> Result<[[u8; 4]; 2], MessageError> {
    let short = MessageError::Short { needed: ENCAPSULATION_LEN + STAMP_LEN, found: bytes.len() };
    match bytes.get(ENCAPSULATION_LEN..).and_then(|fields| fields.first_chunk::<STAMP_LEN>()) {
        Some(&[a, b, c, d, e, f, g, h]) => Ok([[a, b, c, d], [e, f, g, h]]),
        None => Err(short),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cdr_encoding::to_vec;

    fn joint_state() -> JointState {
        JointState {
            header: Header { stamp: Time { sec: 7, nanosec: 9 }, frame_id: "ab".into() },
            name: vec!["elbow".into()],
            position: vec![0.5],
            velocity: vec![],
            effort: vec![],
        }
    }

    #[test]
    fn bytes_follow_the_layout_of_cdr() {
        let expected = [
            &[0, 1, 0, 0][..],               // little endian
            &[7, 0, 0, 0, 9, 0, 0, 0],       // stamp
            &[3, 0, 0, 0, b'a', b'b', 0, 0], // frame_id with its NUL, padded to 4
            &[1, 0, 0, 0],                   // one name
            &[6, 0, 0, 0],                   // its length with the NUL
            b"elbow\0\0\0",                  // padded to 4
            &[1, 0, 0, 0],                   // one position
            &[0, 0, 0, 0],                   // padded to 8, counted from after the encapsulation
            &0.5f64.to_le_bytes(),
            &[0, 0, 0, 0], // no velocities
            &[0, 0, 0, 0], // no efforts
        ]
        .concat();
        assert_eq!(serialize(&joint_state()).unwrap(), expected);
        assert_eq!(deserialize::<JointState>(&expected).unwrap(), joint_state());
    }

    #[test]
    fn a_stamp_is_replaced_in_either_byte_order() {
        let stamp = Time { sec: 1_767_603_600, nanosec: 123_456_789 };
        let mut little = serialize(&joint_state()).unwrap();
        write_stamp(&mut little, stamp).unwrap();
        let mut expected = joint_state();
        expected.header.stamp = stamp;
        assert_eq!(deserialize::<JointState>(&little).unwrap(), expected);
        assert_eq!(read_stamp(&little).unwrap(), stamp);

        let fields = to_vec::<_, byteorder::BigEndian>(&joint_state()).unwrap();
        let mut big = [&[0, 0, 0, 0][..], &fields].concat();
        write_stamp(&mut big, stamp).unwrap();
        assert_eq!(deserialize::<JointState>(&big).unwrap(), expected);
        assert_eq!(read_stamp(&big).unwrap(), stamp);
    }

    #[test]
    fn short_and_foreign_bytes_are_refused() {
        let stamp = Time { sec: 1, nanosec: 2 };
        for len in 0..ENCAPSULATION_LEN + STAMP_LEN {
            let mut bytes = vec![0; len];
            assert!(matches!(write_stamp(&mut bytes, stamp), Err(MessageError::Short { .. })));
        }
        let mut parameter_list = [0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert!(matches!(
            write_stamp(&mut parameter_list, stamp),
            Err(MessageError::Encapsulation(0, 3))
        ));
        let whole = serialize(&joint_state()).unwrap();
        for len in 0..whole.len() {
            assert!(deserialize::<JointState>(&whole[..len]).is_err(), "cut to {len} bytes");
        }
    }

    #[test]
    fn header_is_recognised_by_the_first_field_alone() {
        assert!(starts_with_header(CompressedImage::SCHEMA));
        assert!(starts_with_header(JointState::SCHEMA));
        assert!(starts_with_header(
            "# a comment\n\nint32 LIMIT=3\nstd_msgs/Header header # when\n"
        ));
        assert!(!starts_with_header("string data\nstd_msgs/Header header\n"));
        assert!(!starts_with_header("builtin_interfaces/Time clock\n"));
        assert!(!starts_with_header(""));
    }

    #[test]
    fn times_before_the_epoch_and_out_of_range() {
        assert_eq!(Time::from_nanoseconds(-1).unwrap(), Time { sec: -1, nanosec: 999_999_999 });
        assert_eq!(Time::from_nanoseconds(-1).unwrap().nanoseconds(), -1);
        assert!(matches!(Time::from_nanoseconds(i64::MAX), Err(MessageError::Stamp { .. })));
    }
}
