//! Topics and messages of a bag.

use crate::recording::message::starts_with_header;

/// The encoding of ROS 2 messages.
pub const CDR: &str = "cdr";
/// The form of a definition in which the types inside of it follow it.
const ROS2MSG: &str = "ros2msg";

/// A topic of a bag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub name: String,
    /// Full name of the message type, such as `sensor_msgs/msg/JointState`.
    pub message_type: String,
    /// `cdr` for everything that ROS 2 records by itself.
    pub encoding: String,
    /// Whether every message begins with a `std_msgs/Header`: by the definition in the bag, or because it is one of the
    /// common types that do.
    pub stamped: bool,
    /// How many messages the bag says that it has.
    pub messages: Option<u64>,
}

/// One recorded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BagMessage {
    /// Index into the topics of the bag.
    pub topic: usize,
    /// When it was received, nanoseconds.
    pub log_time_ns: u64,
    /// As it went over DDS: encapsulation and CDR fields.
    pub data: Vec<u8>,
}

/// Whether a late subscriber of a recorded topic is to get its last messages.
pub fn is_latched(topic: &str) -> bool {
    topic.rsplit('/').next() == Some("tf_static")
}

/// Whether messages of a type begin with a header. `definition` is its encoding and text.
pub(super) fn is_stamped(message_type: &str, definition: Option<(&str, &[u8])>) -> bool {
    match definition {
        Some((ROS2MSG, text)) if !text.is_empty() => {
            starts_with_header(&String::from_utf8_lossy(text))
        }
        _ => COMMON_STAMPED.contains(&message_type),
    }
}

/// Types that begin with a header, for bags that hold no definitions: all of SQLite before Iron.
const COMMON_STAMPED: &[&str] = &[
    "control_msgs/msg/DynamicJointState",
    "control_msgs/msg/JointTrajectoryControllerState",
    "geometry_msgs/msg/AccelStamped",
    "geometry_msgs/msg/AccelWithCovarianceStamped",
    "geometry_msgs/msg/InertiaStamped",
    "geometry_msgs/msg/PointStamped",
    "geometry_msgs/msg/PolygonStamped",
    "geometry_msgs/msg/PoseArray",
    "geometry_msgs/msg/PoseStamped",
    "geometry_msgs/msg/PoseWithCovarianceStamped",
    "geometry_msgs/msg/QuaternionStamped",
    "geometry_msgs/msg/TransformStamped",
    "geometry_msgs/msg/TwistStamped",
    "geometry_msgs/msg/TwistWithCovarianceStamped",
    "geometry_msgs/msg/Vector3Stamped",
    "geometry_msgs/msg/WrenchStamped",
    "nav_msgs/msg/OccupancyGrid",
    "nav_msgs/msg/Odometry",
    "nav_msgs/msg/Path",
    "sensor_msgs/msg/BatteryState",
    "sensor_msgs/msg/CameraInfo",
    "sensor_msgs/msg/CompressedImage",
    "sensor_msgs/msg/FluidPressure",
    "sensor_msgs/msg/Illuminance",
    "sensor_msgs/msg/Image",
    "sensor_msgs/msg/Imu",
    "sensor_msgs/msg/JointState",
    "sensor_msgs/msg/Joy",
    "sensor_msgs/msg/LaserScan",
    "sensor_msgs/msg/MagneticField",
    "sensor_msgs/msg/MultiDOFJointState",
    "sensor_msgs/msg/MultiEchoLaserScan",
    "sensor_msgs/msg/NavSatFix",
    "sensor_msgs/msg/PointCloud",
    "sensor_msgs/msg/PointCloud2",
    "sensor_msgs/msg/Range",
    "sensor_msgs/msg/RelativeHumidity",
    "sensor_msgs/msg/Temperature",
    "sensor_msgs/msg/TimeReference",
    "trajectory_msgs/msg/JointTrajectory",
    "trajectory_msgs/msg/MultiDOFJointTrajectory",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_decides_before_the_list_does() {
        let joints = "sensor_msgs/msg/JointState";
        assert!(is_stamped(joints, None));
        assert!(is_stamped(joints, Some(("ros2idl", b"module sensor_msgs"))));
        assert!(is_stamped("my_msgs/msg/A", Some((ROS2MSG, b"std_msgs/Header header\n"))));
        assert!(!is_stamped(joints, Some((ROS2MSG, b"float64 position\n"))));
        assert!(!is_stamped("my_msgs/msg/A", None));
        assert!(is_stamped(joints, Some((ROS2MSG, b""))), "an empty definition says nothing");
    }
}
