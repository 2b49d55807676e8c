//! Poses and transforms.

use serde::Deserialize;

use super::{Header, MessageError, parse};

/// `geometry_msgs/msg/PoseStamped`
#[derive(Clone, Debug, PartialEq)]
pub struct PoseStamped {
    pub stamp_ns: i64,
    pub frame_id: String,
    /// Metres.
    pub position: [f64; 3],
    pub orientation_xyzw: [f64; 4],
}

/// `tf2_msgs/msg/TFMessage`
#[derive(Clone, Debug, PartialEq)]
pub struct TfMessage {
    pub transforms: Vec<TransformStamped>,
}

/// `geometry_msgs/msg/TransformStamped`: the pose of `child` in `parent`.
#[derive(Clone, Debug, PartialEq)]
pub struct TransformStamped {
    pub stamp_ns: i64,
    pub parent: String,
    pub child: String,
    /// Metres.
    pub translation: [f64; 3],
    pub rotation_xyzw: [f64; 4],
}

/// `geometry_msgs/msg/Pose`, and `Transform`, which has the same fields by other names.
#[derive(Deserialize)]
struct PoseWire {
    xyz: [f64; 3],
    xyzw: [f64; 4],
}

#[derive(Deserialize)]
struct PoseStampedWire {
    header: Header,
    pose: PoseWire,
}

#[derive(Deserialize)]
struct TransformStampedWire {
    header: Header,
    child_frame_id: String,
    transform: PoseWire,
}

#[derive(Deserialize)]
struct TfMessageWire {
    transforms: Vec<TransformStampedWire>,
}

impl PoseStamped {
    pub const TYPE: &str = "geometry_msgs/msg/PoseStamped";

    /// Reads a serialised message.
    ///
    /// # Errors
    /// The bytes are not such a message.
    pub fn from_cdr(bytes: &[u8]) -> Result<Self, MessageError> {
        let (wire, _) = parse::<PoseStampedWire>(Self::TYPE, bytes)?;
        Ok(Self {
            stamp_ns: wire.header.stamp.nanoseconds(Self::TYPE, bytes.len())?,
            frame_id: wire.header.frame_id,
            position: wire.pose.xyz,
            orientation_xyzw: wire.pose.xyzw,
        })
    }
}

impl TfMessage {
    pub const TYPE: &str = "tf2_msgs/msg/TFMessage";

    /// Reads a serialised message.
    ///
    /// # Errors
    /// The bytes are not such a message.
    pub fn from_cdr(bytes: &[u8]) -> Result<Self, MessageError> {
        let (wire, _) = parse::<TfMessageWire>(Self::TYPE, bytes)?;
        let transform = |wire: TransformStampedWire| {
            Ok(TransformStamped {
                stamp_ns: wire.header.stamp.nanoseconds(Self::TYPE, bytes.len())?,
                parent: wire.header.frame_id,
                child: wire.child_frame_id,
                translation: wire.transform.xyz,
                rotation_xyzw: wire.transform.xyzw,
            })
        };
        let transforms = wire.transforms.into_iter().map(transform).collect::<Result<_, _>>()?;
        Ok(Self { transforms })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::Writer;
    use super::*;

    fn seven(writer: Writer, values: [f64; 7]) -> Writer {
        values.iter().fold(writer, |writer, value| writer.double(*value))
    }

    #[test]
    fn reads_poses() {
        let values = [1.0, 2.0, 3.0, 0.1, 0.2, 0.3, 0.9];
        let bytes = seven(Writer::new().header(4, 5, "base"), values).message();
        let expected = PoseStamped {
            stamp_ns: 4_000_000_005,
            frame_id: "base".to_owned(),
            position: [1.0, 2.0, 3.0],
            orientation_xyzw: [0.1, 0.2, 0.3, 0.9],
        };
        assert_eq!(PoseStamped::from_cdr(&bytes), Ok(expected));
        for length in 0..bytes.len() {
            let error = PoseStamped::from_cdr(&bytes[..length]).expect_err("cut off").to_string();
            assert!(error.contains("geometry_msgs/msg/PoseStamped"), "{error}");
        }
    }

    #[test]
    fn reads_transforms_whatever_the_alignment() {
        let values = [1.0, 2.0, 3.0, 0.1, 0.2, 0.3, 0.9];
        let mut writer = Writer::new().u32(3);
        for (i, (parent, child)) in [("a", "tool"), ("base", "b"), ("world", "")].iter().enumerate()
        {
            writer = seven(writer.header(i as i32, 7, parent).text(child), values);
        }
        let message = TfMessage::from_cdr(&writer.message()).expect("valid");
        let names: Vec<_> = message
            .transforms
            .iter()
            .map(|t| (t.stamp_ns, t.parent.as_str(), t.child.as_str()))
            .collect();
        let expected =
            [(7, "a", "tool"), (1_000_000_007, "base", "b"), (2_000_000_007, "world", "")];
        assert_eq!(names, expected);
        let last = &message.transforms[2];
        assert_eq!(last.translation, [1.0, 2.0, 3.0]);
        assert_eq!(last.rotation_xyzw, [0.1, 0.2, 0.3, 0.9]);
    }

    proptest! {
        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..160), count in any::<u32>()) {
            let message = [&[0, 1, 0, 0][..], &count.to_le_bytes(), &bytes].concat();
            let _ = (TfMessage::from_cdr(&message), PoseStamped::from_cdr(&message));
        }
    }
}
