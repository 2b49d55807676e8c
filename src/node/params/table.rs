//! The table itself.

use super::super::qos::{Durability, History, Reliability};
use super::super::stop::Stop;
use super::value::{Default, Range, Value};
use crate::backend::blackhole::device::{DeviceKind, DeviceOptions};
use crate::backend::blackhole::numerics::{DtypePolicy, MathFidelity};
use crate::golden::DEFAULT_FLOOR;

/// What a parameter belongs to: the node, or every camera or group of the robot that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Node,
    /// Once per camera; `<key>` in the name is the camera key.
    Camera,
    /// Once per state group.
    State,
    /// Once per action group.
    Action,
    /// Once per topic that is subscribed to; `<key>` is the topic's full name.
    Subscription,
    /// Once per topic of chunks, trajectories and poses.
    Publisher,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub name: &'static str,
    pub scope: Scope,
    pub default: Default,
    pub range: Range,
    /// Fixed once the node has started.
    pub read_only: bool,
    pub description: &'static str,
}

const fn fixed(
    scope: Scope,
    name: &'static str,
    default: Default,
    range: Range,
    description: &'static str,
) -> Entry {
    Entry { name, scope, default, range, read_only: true, description }
}

const fn live(
    name: &'static str,
    default: Default,
    range: Range,
    description: &'static str,
) -> Entry {
    Entry { name, scope: Scope::Node, default, range, read_only: false, description }
}

/// Every parameter of the node.
pub const TABLE: &[Entry] = &[
    fixed(
        Scope::Node,
        "snapshot",
        Default::Text(""),
        Range::Any,
        "Snapshot directory of the checkpoint: config.json, processor_config.json, statistics.json, safetensors. Empty for the released checkpoint of the parameter version, which has to be in the hub cache (gr00t_blackhole weights fetch).",
    ),
    fixed(
        Scope::Node,
        "version",
        Default::Text("auto"),
        Range::Choice(&["auto", "n15", "n16", "n17"]),
        "Model version; auto takes it from the checkpoint's config.json, and needs a snapshot.",
    ),
    fixed(
        Scope::Node,
        "tokenizer",
        Default::Text(""),
        Range::Any,
        "Directory of the tokenizer files; empty for the snapshot's tokenizer folder, the snapshot itself, or the hub cache.",
    ),
    fixed(
        Scope::Node,
        "embodiment",
        Default::Text(""),
        Range::Any,
        "The checkpoint's tag of the robot, such as gr1; may be empty where the checkpoint serves one robot alone.",
    ),
    fixed(
        Scope::Node,
        "data_config",
        Default::Text(""),
        Range::Any,
        "Data config, n15 only, such as fourier_gr1_arms_waist: which cameras and groups of the checkpoint's metadata are used, and how. Empty for the embodiment's own, or the only one that fits.",
    ),
    fixed(
        Scope::Node,
        "letterbox",
        Default::Text("auto"),
        Range::Choice(&["auto", "on", "off"]),
        "Whether frames are padded to squares, n17 only; auto does as the checkpoint declares. It has to be as in training.",
    ),
    fixed(
        Scope::Node,
        "backend",
        Default::Text("cpu"),
        Range::Choice(&["cpu", DeviceKind::Card.name(), DeviceKind::Simulator.name()]),
        "What computes the chunks: this machine's processor (cpu), a Tenstorrent Blackhole card (blackhole), or a simulator of one (sim), the library that the environment variable TT_METAL_SIMULATOR names.",
    ),
    fixed(
        Scope::Node,
        "device_id",
        Default::Integer(0),
        Range::Integer(0, 65_535),
        "Backends blackhole and sim: number of the card, from 0. One node at a time can have it.",
    ),
    fixed(
        Scope::Node,
        "device_python",
        Default::Text(""),
        Range::Any,
        "Backends blackhole and sim: the Python that has the packages of device/requirements.txt; empty for GR00T_DEVICE_PYTHON, or python3.",
    ),
    fixed(
        Scope::Node,
        "dtype_policy",
        Default::Text("mixed_dit"),
        Range::Choice(&DtypePolicy::NAMES),
        "Backends blackhole and sim: formats of the weights. bf16 as they are in the checkpoint, mixed with those of all transformer blocks as bfp8_b, mixed_dit with those of the action head's.",
    ),
    fixed(
        Scope::Node,
        "math_fidelity",
        Default::Text("hifi2"),
        Range::Choice(&MathFidelity::NAMES),
        "Backends blackhole and sim: passes of the matrix engine, so bits that it multiplies. lofi 1 pass, hifi2 2, hifi4 4.",
    ),
    fixed(
        Scope::Node,
        "watchdog_factor",
        Default::Double(DeviceOptions::DEFAULT_WATCHDOG_FACTOR),
        Range::Double(1.0, 1000.0),
        "Backends blackhole and sim: a stage that takes so many times as long as 99 of 100 is given up, and the device is started again. It counts from the 20th prediction on; before, a stage of a card has 30 s.",
    ),
    fixed(
        Scope::Node,
        "threads",
        Default::Integer(0),
        Range::Integer(0, 256),
        "Threads of the CPU backend; 0 for one per core.",
    ),
    fixed(
        Scope::Node,
        "autostart",
        Default::Bool(true),
        Range::Any,
        "Whether the node configures and activates itself; else it waits for lifecycle transitions (ros2 lifecycle set).",
    ),
    fixed(
        Scope::Node,
        "warm_up",
        Default::Integer(1),
        Range::Integer(0, 100),
        "Predictions while the node configures, on the golden's observation or, without a golden, on a made-up one; it does not configure if the policy cannot predict. 0 for none, but one on the golden.",
    ),
    fixed(
        Scope::Node,
        "golden",
        Default::Text(""),
        Range::Any,
        "Directory of a golden, an observation with the chunk that is known to be right (gr00t_blackhole golden record); empty for golden/EMBODIMENT in the snapshot, if it is there.",
    ),
    fixed(
        Scope::Node,
        "fidelity_gate",
        Default::Bool(true),
        Range::Any,
        "Whether the node refuses to configure when the policy's chunk for the golden is not the known one, or, without a golden, when another backend does not compute what the CPU does in f32.",
    ),
    fixed(
        Scope::Node,
        "fidelity_floor",
        Default::Double(DEFAULT_FLOOR),
        Range::Double(0.0, 1.0),
        "Lowest correlation (PCC) and concordance with the golden, for every action group, at which the node configures.",
    ),
    fixed(
        Scope::Node,
        "record_observations",
        Default::Text(""),
        Range::Any,
        "Directory of a bag to write with all that predictions saw, felt and answered, from which gr00t_blackhole replay makes each chunk again; with _2, _3, ... behind its name where it exists. Empty for none.",
    ),
    fixed(
        Scope::Node,
        "record_observations_max_gb",
        Default::Double(16.0),
        Range::Double(0.001, 100_000.0),
        "Size at which such a bag ends, in gigabytes of messages.",
    ),
    fixed(
        Scope::Node,
        "cache_dir",
        Default::Text(""),
        Range::Any,
        "Directory for what is computed from weights alone and for a card's compiled kernels, which makes the next start faster; empty for GR00T_CACHE_DIR or ~/.cache/gr00t_blackhole, none for no cache.",
    ),
    live(
        "instruction",
        Default::Text(""),
        Range::Any,
        "What the robot is to do. While it is empty, nothing is predicted.",
    ),
    live(
        "seed",
        Default::Integer(-1),
        Range::Integer(-1, i64::MAX),
        "Seed of the initial noise of every chunk; -1 for the version's own (n15: 0, n16 and n17: 42).",
    ),
    fixed(
        Scope::Node,
        "rate_hz",
        Default::Double(2.0),
        Range::Double(0.0, 200.0),
        "Predictions per second that the timer aims at, and goals of ~/predict_chunk [Hz]; 0 for no timer, and for goals that predict without a pause.",
    ),
    fixed(
        Scope::Node,
        "execute_steps",
        Default::Integer(0),
        Range::Integer(0, 1000),
        "Rows of a chunk that are executed before the next chunk takes over: predictions begin execute_steps / action_rate_hz apart, while the rest of the chunk bridges the time that a prediction takes. 0 for the pace of rate_hz.",
    ),
    live(
        "preemption",
        Default::Text("reject"),
        Range::Choice(&["reject", "replace"]),
        "What becomes of a goal of ~/predict_chunk while another one runs: it is rejected, or it replaces the other one.",
    ),
    live(
        "goal_max_duration_s",
        Default::Double(300.0),
        Range::Double(0.001, 86_400.0),
        "Time after which any goal ends, so that one whose client has vanished does not run for ever [s].",
    ),
    live(
        "goal_start_timeout_ms",
        Default::Integer(5000),
        Range::Integer(0, 600_000),
        "Time for which a new goal waits for inputs that are missing or cannot be used; after its first chunk it ends at once [ms].",
    ),
    live(
        "stop",
        Default::Text("hold"),
        Range::Choice(Stop::CHOICES),
        "What is published on ~/joint_trajectory when a goal ends before it has succeeded, and when the node is deactivated: one point where the joints are (hold), a trajectory without points (empty, which joint_trajectory_controller takes for a stop; also where the joints' positions are not known), or nothing.",
    ),
    fixed(
        Scope::Node,
        "action_rate_hz",
        Default::Double(20.0),
        Range::Double(0.1, 1000.0),
        "Control rate of the data that the policy was trained on [Hz]: rows of a chunk, and control steps between earlier frames, are 1 / action_rate_hz apart.",
    ),
    live(
        "camera_max_age_ms",
        Default::Integer(500),
        Range::Integer(1, 60_000),
        "Age by header stamp beyond which a frame is stale and nothing is predicted [ms].",
    ),
    live(
        "state_max_age_ms",
        Default::Integer(500),
        Range::Integer(1, 60_000),
        "Age by header stamp beyond which a state (joints, pose, transform, number) is stale and nothing is predicted [ms].",
    ),
    live(
        "camera_skew_max_ms",
        Default::Integer(150),
        Range::Integer(0, 60_000),
        "How far apart the header stamps of two cameras' newest frames may be; beyond, nothing is predicted [ms]. 0 for any distance. Frames of several cameras are paired by stamp as long as they are at most 500 ms apart.",
    ),
    live(
        "frozen_camera_frames",
        Default::Integer(30),
        Range::Integer(0, 100_000),
        "A camera that has sent the same bytes again with new stamps so many times in a row is frozen, and nothing is predicted until it shows another picture. 0 for never: simulations that render without noise.",
    ),
    live(
        "state_jump_max_rad_s",
        Default::Double(30.0),
        Range::Double(0.0, 100_000.0),
        "A joint state in which a joint (of a group without source_range) has moved faster than this since the last one is refused, and nothing is predicted until the joint is within the limit again [rad/s]. 0 for no limit, also for drivers that wrap angles.",
    ),
    live(
        "state_publishers_max",
        Default::Integer(1),
        Range::Integer(0, 100),
        "Publishers that the topic of a state may have; with more, whose values would alternate, nothing is predicted. 0 for any number.",
    ),
    fixed(
        Scope::Node,
        "timeline",
        Default::Text("stamp"),
        Range::Choice(&["stamp", "receive"]),
        "What dates a message: its header stamp, or the time of receipt for drivers whose stamps are zero or from another clock.",
    ),
    fixed(
        Scope::Node,
        "joint_states_topic",
        Default::Text("joint_states"),
        Range::Any,
        "Topic of sensor_msgs/msg/JointState for the state groups that name none of their own.",
    ),
    live(
        "trajectory",
        Default::Bool(true),
        Range::Any,
        "Whether chunks are published as trajectory_msgs/msg/JointTrajectory on ~/joint_trajectory too.",
    ),
    live(
        "trajectory_lead_ms",
        Default::Integer(0),
        Range::Integer(0, 10_000),
        "Points of the trajectory that are due in less than this are dropped, as those in the past are [ms].",
    ),
    live(
        "trajectory_stamp",
        Default::Text("observation"),
        Range::Choice(&["observation", "zero"]),
        "What times of the trajectory count from: the stamp of the observation, or with a stamp of zero the moment of publication, which joint_trajectory_controller takes for now.",
    ),
    live(
        "limit_violation",
        Default::Text("refuse"),
        Range::Choice(&["refuse", "clamp"]),
        "What is done with a chunk that goes beyond a limit of action.<key>.*: refuse drops it whole, clamp brings its values to the limit.",
    ),
    fixed(
        Scope::Node,
        "follow_joint_trajectory",
        Default::Text(""),
        Range::Any,
        "Action of type control_msgs/action/FollowJointTrajectory that trajectories are sent to as goals, such as /joint_trajectory_controller/follow_joint_trajectory; a stop cancels the last one. Empty for none. Set trajectory to false where the same controller listens to ~/joint_trajectory.",
    ),
    live(
        "poses",
        Default::Bool(true),
        Range::Any,
        "Whether the poses of a chunk are published as geometry_msgs/msg/PoseArray on ~/<group>/poses too.",
    ),
    fixed(
        Scope::Node,
        "pose_frame",
        Default::Text(""),
        Range::Any,
        "Frame that the poses of chunks are given in; empty for the base_frame of the state group that they are composed onto.",
    ),
    fixed(
        Scope::Node,
        "use_sim_time",
        Default::Bool(false),
        Range::Any,
        "Take the time from /clock instead of the system.",
    ),
    fixed(
        Scope::Camera,
        "camera.<key>.topic",
        Default::Text("camera/<key>/image_raw"),
        Range::Any,
        "Topic of the camera, exactly as published (with /compressed at its end where it has one).",
    ),
    fixed(
        Scope::Camera,
        "camera.<key>.transport",
        Default::Text("raw"),
        Range::Choice(&["raw", "compressed"]),
        "Type of the topic: sensor_msgs/msg/Image, or sensor_msgs/msg/CompressedImage (JPEG, PNG).",
    ),
    fixed(
        Scope::Camera,
        "camera.<key>.order",
        Default::Text(""),
        Range::Choice(&["", "rgb", "bgr", "rgba", "bgra", "mono"]),
        "Order of the channels where the encoding does not say it (8UC1, 8UC3, 8UC4); bgr on a compressed topic swaps red and blue.",
    ),
    fixed(
        Scope::State,
        "state.<key>.source",
        Default::Text("joints"),
        Range::Choice(&["joints", "pose", "tf", "float64", "columns"]),
        "Where the group's values come from: joints of sensor_msgs/msg/JointState, a geometry_msgs/msg/PoseStamped, a transform of /tf and /tf_static, a std_msgs/msg/Float64, or named columns of a std_msgs/msg/Float64MultiArray.",
    ),
    fixed(
        Scope::State,
        "state.<key>.topic",
        Default::Text(""),
        Range::Any,
        "Topic of the source; empty for joint_states_topic where the source is joints. A transform has none.",
    ),
    fixed(
        Scope::State,
        "state.<key>.joints",
        Default::NoTexts,
        Range::Any,
        "Source joints: names of the group's joints, one per value, in the checkpoint's order. Has to be given.",
    ),
    fixed(
        Scope::State,
        "state.<key>.columns",
        Default::NoTexts,
        Range::Any,
        "Source columns: names of the columns that make up the group, one per value, in the checkpoint's order. Has to be given.",
    ),
    fixed(
        Scope::State,
        "state.<key>.layout",
        Default::NoTexts,
        Range::Any,
        "Source columns: names of all columns of the message, in its order; empty where the message labels them itself (one dimension of size 1 per column, or one dimension with all names in its label, parted by commas).",
    ),
    fixed(
        Scope::State,
        "state.<key>.base_frame",
        Default::Text(""),
        Range::Any,
        "Sources tf and pose: frame that the pose is given in. For tf it has to be given; for pose a message with another frame_id is refused, and empty takes any.",
    ),
    fixed(
        Scope::State,
        "state.<key>.tip_frame",
        Default::Text(""),
        Range::Any,
        "Source tf: frame whose pose in base_frame is the group. Has to be given.",
    ),
    fixed(
        Scope::State,
        "state.<key>.format",
        Default::Text("auto"),
        Range::Choice(&[
            "auto",
            "xyz_rot6d",
            "xyz_rotvec",
            "matrix",
            "xyz",
            "quaternion_xyzw",
            "quaternion_wxyz",
            "rotvec",
            "rot6d",
            "rotation_matrix",
        ]),
        "Sources tf and pose: how the group's values write the pose, where the checkpoint does not say it. rot6d is the first two rows of the rotation matrix, rotvec axis times angle, matrix 4x4 row by row.",
    ),
    fixed(
        Scope::State,
        "state.<key>.source_range",
        Default::NoDoubles,
        Range::Any,
        "The source's two end values (such as gripper open, closed), which become those of model_range, and what lies between in proportion; a value more than 5 % outside is refused. Empty takes values as they are. Sources joints, float64 and columns.",
    ),
    fixed(
        Scope::State,
        "state.<key>.model_range",
        Default::NoDoubles,
        Range::Any,
        "The checkpoint's values at the two ends of source_range, in the same order.",
    ),
    fixed(
        Scope::Action,
        "action.<key>.joints",
        Default::NoTexts,
        Range::Any,
        "Joint names of the action group, one per column; empty for those of the state group that it belongs to, [''] for none.",
    ),
    fixed(
        Scope::Action,
        "action.<key>.model_range",
        Default::NoDoubles,
        Range::Any,
        "The checkpoint's values at two ends of the group (such as gripper open, closed), which become those of joint_range in the trajectory; empty for the ranges of the state group where the joints come from it, else for none.",
    ),
    fixed(
        Scope::Action,
        "action.<key>.joint_range",
        Default::NoDoubles,
        Range::Any,
        "The joints' positions at the two ends of the action group's model_range, in the same order.",
    ),
    fixed(
        Scope::Action,
        "action.<key>.position_min",
        Default::NoDoubles,
        Range::Any,
        "Lowest positions of the group's joints in their own units (after joint_range), one per joint or one for all; empty for none. What happens below is up to limit_violation.",
    ),
    fixed(
        Scope::Action,
        "action.<key>.position_max",
        Default::NoDoubles,
        Range::Any,
        "Highest positions of the group's joints, as position_min.",
    ),
    fixed(
        Scope::Action,
        "action.<key>.velocity_max",
        Default::NoDoubles,
        Range::Any,
        "Highest speeds of the group's joints in their own units per second, one per joint or one for all; empty for none. They hold between rows, and from the observed position (where the state has the joint) to the first row.",
    ),
    fixed(
        Scope::Action,
        "action.<key>.translation_step_max_m",
        Default::Double(0.0),
        Range::Double(0.0, 1000.0),
        "Groups that are poses: longest way from one row to the next, and from the observed pose to the first row where the group is relative to it [m]; 0.0 for none.",
    ),
    fixed(
        Scope::Action,
        "action.<key>.rotation_step_max_rad",
        Default::Double(0.0),
        Range::Double(0.0, 3.2),
        "Groups that are poses: largest turn from one row to the next, as translation_step_max_m [rad]; 0.0 for none.",
    ),
    fixed(
        Scope::Subscription,
        "qos_overrides.<key>.subscription.reliability",
        Default::Text("best_effort"),
        Range::Choice(Reliability::NAMES),
        "Reliability that is asked for: reliable has lost messages sent again, but gets nothing from best_effort publishers. The topics /tf and /tf_static have reliable.",
    ),
    fixed(
        Scope::Subscription,
        "qos_overrides.<key>.subscription.durability",
        Default::Text("volatile"),
        Range::Choice(Durability::NAMES),
        "Durability that is asked for: transient_local also gets messages from before the subscription, but nothing from volatile publishers. The topic /tf_static has transient_local.",
    ),
    fixed(
        Scope::Subscription,
        "qos_overrides.<key>.subscription.history",
        Default::Text("keep_last"),
        Range::Choice(History::NAMES),
        "Which messages wait to be read: the last ones (depth), or all.",
    ),
    fixed(
        Scope::Subscription,
        "qos_overrides.<key>.subscription.depth",
        Default::Integer(5),
        Range::Integer(1, 10_000),
        "Messages that wait to be read, with keep_last. The topics /tf and /tf_static have 100.",
    ),
    fixed(
        Scope::Publisher,
        "qos_overrides.<key>.publisher.reliability",
        Default::Text("reliable"),
        Range::Choice(Reliability::NAMES),
        "Reliability that is offered; subscribers that ask for reliable get nothing from best_effort.",
    ),
    fixed(
        Scope::Publisher,
        "qos_overrides.<key>.publisher.durability",
        Default::Text("volatile"),
        Range::Choice(Durability::NAMES),
        "Durability that is offered: with transient_local, late subscribers get the last messages (depth). The topic ~/action_chunk has transient_local.",
    ),
    fixed(
        Scope::Publisher,
        "qos_overrides.<key>.publisher.history",
        Default::Text("keep_last"),
        Range::Choice(History::NAMES),
        "Which messages are kept for slow and, with transient_local, late subscribers: the last ones (depth), or all.",
    ),
    fixed(
        Scope::Publisher,
        "qos_overrides.<key>.publisher.depth",
        Default::Integer(1),
        Range::Integer(1, 10_000),
        "Messages that are kept, with keep_last.",
    ),
];

/// Names of what the served robot has.
#[derive(Clone, Debug, std::default::Default, PartialEq, Eq)]
pub struct Names {
    pub cameras: Vec<String>,
    pub state: Vec<String>,
    pub action: Vec<String>,
}

/// A topic with the node's own quality of service, which parameters can override.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicQos {
    /// [`Scope::Subscription`] or [`Scope::Publisher`].
    pub scope: Scope,
    /// Its full name, after remapping.
    pub topic: String,
    /// By policy: the last part of a row's name.
    pub own: [(&'static str, Value); 4],
}

impl TopicQos {
    /// The parameters of this topic with the values that they have by themselves.
    pub fn declared(&self) -> impl Iterator<Item = (Declared, Value)> {
        let rows = TABLE.iter().filter(|entry| entry.scope == self.scope);
        rows.map(|entry| {
            let own = self.own.iter().find(|(policy, _)| entry.name.ends_with(policy));
            let value = own.map_or_else(|| entry.default.value(""), |(_, value)| value.clone());
            (entry.of(&self.topic), value)
        })
    }
}

/// A row with its full name.
#[derive(Clone, Debug)]
pub struct Declared {
    pub name: String,
    /// What `<key>` stands for; empty for parameters of the node.
    pub key: String,
    pub entry: &'static Entry,
}

impl Entry {
    /// The parameters that this row stands for.
    pub fn declared(&'static self, names: &Names) -> Vec<Declared> {
        let keys: &[String] = match self.scope {
            Scope::Node => &[String::new()],
            Scope::Camera => &names.cameras,
            Scope::State => &names.state,
            Scope::Action => &names.action,
            // Topics are known later, see [`TopicQos`].
            Scope::Subscription | Scope::Publisher => &[],
        };
        keys.iter().map(|key| self.of(key)).collect()
    }

    fn of(&'static self, key: &str) -> Declared {
        Declared { name: self.name.replace("<key>", key), key: key.to_owned(), entry: self }
    }

    /// Whether `name` is this row's for some camera or group.
    pub fn matches(&self, name: &str) -> bool {
        match self.name.split_once("<key>") {
            None => self.name == name,
            Some((start, end)) => {
                name.len() > start.len() + end.len()
                    && name.starts_with(start)
                    && name.ends_with(end)
            }
        }
    }
}
