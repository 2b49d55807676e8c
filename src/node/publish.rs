//! Chunks as messages.

use std::sync::atomic::Ordering;

use r2r::gr00t_blackhole::msg::{
    ActionChunk as ChunkMessage, ActionGroup as GroupMessage, ObservationAge, StageTiming,
};
use r2r::std_msgs::msg::Header;
use r2r::trajectory_msgs::msg::{JointTrajectory, JointTrajectoryPoint};
use r2r::{Node, Publisher, QosProfile};
use tracing::{info, warn};

use super::representation;
use super::runtime::{Shared, locked, time_message};
use super::settings::trajectory_lead_ns;
use super::trajectory::{Trajectory, trajectory};
use super::worker::Job;
use crate::contract::{ActionChunk, ActionGroup, Representation};

const NS_PER_S: f64 = 1e9;

/// Where chunks go.
pub struct Publishers {
    chunk: Publisher<ChunkMessage>,
    trajectory: Publisher<JointTrajectory>,
}

impl Publishers {
    /// `~/action_chunk` is reliable and latched, so that a late subscriber gets the last chunk. A trajectory is not
    /// latched: a controller that starts later must not get an old motion.
    pub fn new(node: &mut Node) -> r2r::Result<Self> {
        let latched = QosProfile::default().reliable().transient_local().keep_last(1);
        let reliable = QosProfile::default().reliable().keep_last(1);
        Ok(Self {
            chunk: node.create_publisher("~/action_chunk", latched)?,
            trajectory: node.create_publisher("~/joint_trajectory", reliable)?,
        })
    }

    /// Publishes a chunk, and what is left of it as a trajectory.
    pub fn publish(&self, shared: &Shared, job: &Job, chunk: &ActionChunk) {
        let sequence = shared.counters.chunks.load(Ordering::Relaxed);
        let message = chunk_message(shared, job, chunk, sequence);
        if let Err(error) = self.chunk.publish(&message) {
            warn!("the chunk could not be published: {error}");
            return;
        }
        shared.counters.chunks.fetch_add(1, Ordering::Relaxed);
        if sequence == 0 {
            let seconds = chunk.timings.total().as_secs_f64();
            info!("first chunk published; it took {seconds:.3} s");
        }
        let (wanted, lead_ns) = {
            let params = locked(&shared.params);
            (params.bool("trajectory"), trajectory_lead_ns(&params))
        };
        if wanted {
            self.publish_trajectory(shared, chunk, lead_ns);
        }
    }

    fn publish_trajectory(&self, shared: &Shared, chunk: &ActionChunk, lead_ns: i64) {
        let settings = &shared.settings;
        let now_ns = shared.clock.now().ros_ns;
        let cut = trajectory(chunk, &settings.action_joints, settings.dt_ns, now_ns, lead_ns);
        shared.counters.dropped_points.fetch_add(cut.dropped as u64, Ordering::Relaxed);
        match cut.trajectory {
            Some(trajectory) => {
                if let Err(error) = self.trajectory.publish(&trajectory_message(trajectory)) {
                    warn!("the trajectory could not be published: {error}");
                }
            }
            None if cut.dropped > 0 => {
                let late = (now_ns - chunk.stamp_ns) as f64 / NS_PER_S;
                warn!(
                    "no trajectory: the prediction ended {late:.3} s after its observation, when every point of the \
                     chunk was due already"
                );
            }
            None => {}
        }
    }
}

fn chunk_message(shared: &Shared, job: &Job, chunk: &ActionChunk, sequence: u64) -> ChunkMessage {
    let settings = &shared.settings;
    let joints_of = |group: &str| {
        let names = settings.action_joints.iter().find(|names| names.group == group);
        names.map(|names| names.joints.clone()).unwrap_or_default()
    };
    let ages = job.sighting.readings.iter().map(|reading| ObservationAge {
        input: reading.input.clone(),
        topic: reading.topic.clone(),
        delta: reading.delta,
        stamp: time_message(reading.stamp_ns),
        age: (job.begin_ns - reading.stamp_ns) as f64 / NS_PER_S,
    });
    let stages = chunk.timings.stages().into_iter();
    ChunkMessage {
        header: Header { stamp: time_message(chunk.stamp_ns), frame_id: String::new() },
        sequence,
        // Sixteen zero bytes: no goal asked for this chunk.
        goal_id: r2r::unique_identifier_msgs::msg::UUID { uuid: vec![0; 16] },
        version: chunk.version.name().to_owned(),
        embodiment: chunk.embodiment.clone(),
        backend: shared.backend.clone(),
        instruction: chunk.instruction.clone(),
        seed: chunk.seed.unwrap_or(0),
        noise_given: chunk.seed.is_none(),
        horizon: chunk.horizon as u32,
        dt: settings.dt_ns as f64 / NS_PER_S,
        groups: chunk
            .groups
            .iter()
            .map(|group| group_message(group, joints_of(&group.name)))
            .collect(),
        timings: stages
            .map(|(stage, time)| StageTiming {
                stage: stage.to_owned(),
                seconds: time.as_secs_f64(),
            })
            .collect(),
        ages: ages.collect(),
        completed: time_message(shared.clock.now().ros_ns),
    }
}

fn group_message(group: &ActionGroup, joint_names: Vec<String>) -> GroupMessage {
    GroupMessage {
        name: group.name.clone(),
        representation: representation_number(group.representation, &joint_names),
        dim: group.dim as u32,
        joint_names,
        columns: Vec::new(),
        frame_id: String::new(),
        values: group.values.clone(),
    }
}

/// The message's number of a representation.
pub fn representation_number(representation: Representation, joint_names: &[String]) -> u8 {
    match representation {
        Representation::Absolute if joint_names.is_empty() => representation::VALUE,
        Representation::Absolute => representation::JOINT_POSITION,
        Representation::PoseRot6d => representation::POSE_ROT6D,
        Representation::PoseRotvec => representation::POSE_ROTVEC,
        Representation::PoseMatrix => representation::POSE_MATRIX,
        Representation::Delta => representation::DELTA,
    }
}

fn trajectory_message(trajectory: Trajectory) -> JointTrajectory {
    const NS_PER_S: i64 = 1_000_000_000;
    let points = trajectory.points.into_iter().map(|point| JointTrajectoryPoint {
        positions: point.positions,
        time_from_start: r2r::builtin_interfaces::msg::Duration {
            sec: i32::try_from(point.time_from_start_ns / NS_PER_S).unwrap_or(i32::MAX),
            nanosec: (point.time_from_start_ns % NS_PER_S) as u32,
        },
        ..Default::default()
    });
    JointTrajectory {
        header: Header { stamp: time_message(trajectory.stamp_ns), frame_id: String::new() },
        joint_names: trajectory.joint_names,
        points: points.collect(),
    }
}
