//! What a robot was commanded to do, as recorded: trajectories of joints, and the node's own chunks.

use serde::Deserialize;

use super::{Header, MessageError, Time, parse};

const NS_PER_S: i64 = 1_000_000_000;

/// `trajectory_msgs/msg/JointTrajectory`, without velocities, accelerations and efforts.
#[derive(Clone, Debug, PartialEq)]
pub struct JointTrajectory {
    /// Start of all times; 0 for the moment of reception.
    pub stamp_ns: i64,
    pub joint_names: Vec<String>,
    pub points: Vec<TrajectoryPoint>,
}

/// Where the joints are to be at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct TrajectoryPoint {
    /// As long as the names of the joints.
    pub positions: Vec<f64>,
    pub time_from_start_ns: i64,
}

/// `gr00t_blackhole/msg/ActionChunk`, as far as it says what was predicted from what.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedChunk {
    pub stamp_ns: i64,
    pub version: String,
    pub embodiment: String,
    pub backend: String,
    pub instruction: String,
    /// `None` if the request carried the noise itself.
    pub seed: Option<u64>,
    pub horizon: usize,
    pub dt_ns: i64,
    pub groups: Vec<RecordedGroup>,
    pub ages: Vec<RecordedReading>,
    pub completed_ns: i64,
}

/// One action group of a recorded chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedGroup {
    pub name: String,
    pub dim: usize,
    /// `[horizon, dim]`
    pub values: Vec<f32>,
}

/// A reading that a recorded chunk was predicted from.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedReading {
    pub input: String,
    pub delta: i32,
    pub stamp_ns: i64,
    /// When the prediction began, by this reading's age.
    pub begin_ns: i64,
}

#[derive(Deserialize)]
struct PointWire {
    positions: Vec<f64>,
    #[serde(rename = "velocities")]
    _velocities: Vec<f64>,
    #[serde(rename = "accelerations")]
    _accelerations: Vec<f64>,
    #[serde(rename = "effort")]
    _effort: Vec<f64>,
    time_from_start: Time,
}

#[derive(Deserialize)]
struct JointTrajectoryWire {
    header: Header,
    joint_names: Vec<String>,
    points: Vec<PointWire>,
}

#[derive(Deserialize)]
struct GroupWire {
    name: String,
    #[serde(rename = "representation")]
    _representation: u8,
    dim: u32,
    #[serde(rename = "joint_names")]
    _joint_names: Vec<String>,
    #[serde(rename = "columns")]
    _columns: Vec<String>,
    #[serde(rename = "frame_id")]
    _frame_id: String,
    values: Vec<f32>,
}

#[derive(Deserialize)]
struct StageWire {
    #[serde(rename = "stage")]
    _stage: String,
    #[serde(rename = "seconds")]
    _seconds: f64,
}

#[derive(Deserialize)]
struct AgeWire {
    input: String,
    #[serde(rename = "topic")]
    _topic: String,
    delta: i32,
    stamp: Time,
    age: f64,
}

#[derive(Deserialize)]
struct ChunkWire {
    header: Header,
    #[serde(rename = "sequence")]
    _sequence: u64,
    #[serde(rename = "goal_id")]
    _goal_id: [u8; 16],
    version: String,
    embodiment: String,
    backend: String,
    instruction: String,
    seed: u64,
    noise_given: bool,
    horizon: u32,
    dt: f64,
    groups: Vec<GroupWire>,
    #[serde(rename = "timings")]
    _timings: Vec<StageWire>,
    ages: Vec<AgeWire>,
    completed: Time,
}

impl JointTrajectory {
    pub const TYPE: &str = "trajectory_msgs/msg/JointTrajectory";

    /// Reads a serialised message.
    ///
    /// # Errors
    /// The bytes are not such a message, or a point has another number of positions than there are joints.
    pub fn from_cdr(bytes: &[u8]) -> Result<Self, MessageError> {
        let (wire, _) = parse::<JointTrajectoryWire>(Self::TYPE, bytes)?;
        let error = |reason| MessageError { type_name: Self::TYPE, length: bytes.len(), reason };
        let joints = wire.joint_names.len();
        let mut points = Vec::with_capacity(wire.points.len());
        for (number, point) in wire.points.into_iter().enumerate() {
            let PointWire { positions, time_from_start, .. } = point;
            if positions.len() != joints {
                let found = positions.len();
                let reason = format!("point {number} has {found} positions for {joints} joints");
                return Err(error(reason));
            }
            let time_from_start_ns = time_from_start.nanoseconds(Self::TYPE, bytes.len())?;
            points.push(TrajectoryPoint { positions, time_from_start_ns });
        }
        let stamp_ns = wire.header.stamp.nanoseconds(Self::TYPE, bytes.len())?;
        Ok(Self { stamp_ns, joint_names: wire.joint_names, points })
    }
}

impl RecordedChunk {
    pub const TYPE: &str = "gr00t_blackhole/msg/ActionChunk";

    /// Reads a serialised message.
    ///
    /// # Errors
    /// The bytes are not such a message, or a group does not have `horizon * dim` values.
    pub fn from_cdr(bytes: &[u8]) -> Result<Self, MessageError> {
        let (wire, _) = parse::<ChunkWire>(Self::TYPE, bytes)?;
        let error = |reason| MessageError { type_name: Self::TYPE, length: bytes.len(), reason };
        let time = |time: Time| time.nanoseconds(Self::TYPE, bytes.len());
        let horizon = wire.horizon as usize;
        let dt_ns = (wire.dt * NS_PER_S as f64).round();
        if !(1.0..1e15).contains(&dt_ns) {
            return Err(error(format!("the time between two rows, {} s, is none", wire.dt)));
        }
        let mut groups = Vec::with_capacity(wire.groups.len());
        for GroupWire { name, dim, values, .. } in wire.groups {
            let dim = dim as usize;
            if dim == 0 || horizon.checked_mul(dim) != Some(values.len()) {
                let found = values.len();
                let reason =
                    format!("group '{name}' has {found} values, not {horizon} rows of {dim}");
                return Err(error(reason));
            }
            groups.push(RecordedGroup { name, dim, values });
        }
        let mut ages = Vec::with_capacity(wire.ages.len());
        for AgeWire { input, delta, stamp, age, .. } in wire.ages {
            let stamp_ns = time(stamp)?;
            let begin_ns = stamp_ns.saturating_add((age * NS_PER_S as f64).round() as i64);
            ages.push(RecordedReading { input, delta, stamp_ns, begin_ns });
        }
        Ok(Self {
            stamp_ns: time(wire.header.stamp)?,
            version: wire.version,
            embodiment: wire.embodiment,
            backend: wire.backend,
            instruction: wire.instruction,
            seed: (!wire.noise_given).then_some(wire.seed),
            horizon,
            dt_ns: dt_ns as i64,
            groups,
            ages,
            completed_ns: time(wire.completed)?,
        })
    }

    /// When its prediction began; the stamp of the observation if nothing tells.
    pub fn begin_ns(&self) -> i64 {
        self.ages.iter().map(|reading| reading.begin_ns).max().unwrap_or(self.stamp_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::Writer;
    use super::*;

    fn trajectory(positions: &[f64]) -> Vec<u8> {
        let fields = Writer::new().header(4, 5, "").u32(2).text("elbow").text("wrist").u32(1);
        let fields = fields.doubles(positions).doubles(&[]).doubles(&[]).doubles(&[]);
        fields.u32(0).u32(50_000_000).message()
    }

    #[test]
    fn reads_trajectories() {
        let expected = JointTrajectory {
            stamp_ns: 4_000_000_005,
            joint_names: vec!["elbow".to_owned(), "wrist".to_owned()],
            points: vec![TrajectoryPoint {
                positions: vec![0.5, -1.0],
                time_from_start_ns: 50_000_000,
            }],
        };
        assert_eq!(JointTrajectory::from_cdr(&trajectory(&[0.5, -1.0])), Ok(expected));
        let error = JointTrajectory::from_cdr(&trajectory(&[0.5])).expect_err("one is missing");
        assert!(error.to_string().contains("1 positions for 2 joints"), "{error}");
        let whole = trajectory(&[0.5, -1.0]);
        for length in 0..whole.len() {
            assert!(JointTrajectory::from_cdr(&whole[..length]).is_err());
        }
    }

    #[test]
    fn reads_chunks() {
        let head = Writer::new().header(7, 0, "");
        // sequence, goal id, texts.
        let head = head.u64(3).bytes_of(&[0; 16]);
        let head = head.text("n16").text("gr1").text("cpu").text("wave").u64(42).flag(false);
        let head = head.u32(2).double(0.05).u32(1).text("arm").flag(true).u32(1);
        let group = head.u32(0).u32(0).text("").u32(2).u32(0.5f32.to_bits()).u32(1f32.to_bits());
        let stage = group.u32(1).text("encode").double(0.1);
        let age = stage.u32(1).text("ego").text("/ego").u32(0).u32(7).u32(0).double(0.02);
        let bytes = age.u32(7).u32(300_000_000).message();
        let chunk = RecordedChunk::from_cdr(&bytes).expect("valid");
        assert_eq!(
            (chunk.stamp_ns, chunk.seed, chunk.dt_ns),
            (7_000_000_000, Some(42), 50_000_000)
        );
        assert_eq!((chunk.begin_ns(), chunk.completed_ns), (7_020_000_000, 7_300_000_000));
        assert_eq!(chunk.groups[0].values, [0.5, 1.0]);
        assert_eq!(chunk.instruction, "wave");
    }

    proptest! {
        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
            let message = [&[0, 1, 0, 0][..], &bytes].concat();
            let _ = (JointTrajectory::from_cdr(&message), RecordedChunk::from_cdr(&message));
        }
    }
}
