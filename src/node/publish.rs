//! Chunks as messages.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use r2r::geometry_msgs::msg::{Point, Pose, PoseArray, Quaternion};
use r2r::gr00t_blackhole::msg::{
    ActionChunk as ChunkMessage, ActionGroup as GroupMessage, ObservationAge, StageTiming,
};
use r2r::std_msgs::msg::Header;
use r2r::{Node, Publisher};
use tracing::{info, warn};

use super::action::goals::GoalId;
use super::follower::Follower;
use super::poses::{PoseValues, poses};
use super::representation;
use super::runtime::{Shared, locked, time_message, uuid_message};
use super::settings::PoseSettings;
use super::timing::Timing;
use super::topics::Topics;
use super::trajectories::Trajectories;
use super::trajectory::ActionJoints;
use crate::contract::{ActionChunk, ActionGroup, Noise, Observation, Representation};
use crate::history::{Moment, Reading};

const NS_PER_S: f64 = 1e9;

/// What a prediction was made from, and for whom.
pub struct Ticket {
    pub observation: Arc<Observation>,
    pub readings: Vec<Reading>,
    pub noise: Noise,
    /// When it was decided to predict.
    pub begin: Moment,
    /// `None`: nobody's, the timer asked.
    pub goal: Option<GoalId>,
    /// Sessions of the device, if there is one, that had begun before.
    pub sessions: u64,
}

/// Where chunks go.
pub struct Publishers {
    chunk: Publisher<ChunkMessage>,
    pub trajectories: Trajectories,
    pub timing: Timing,
    poses: Vec<(PoseSettings, Publisher<PoseArray>)>,
}

impl Publishers {
    /// Creates the topics, with the quality of service that `topics` give them.
    ///
    /// # Errors
    /// What rcl reports.
    pub fn new(
        node: &mut Node,
        pose_groups: &[PoseSettings],
        topics: &Topics,
        controller: Option<Arc<Follower>>,
    ) -> r2r::Result<Self> {
        let mut poses = Vec::new();
        for (pose, topic) in pose_groups.iter().zip(&topics.poses) {
            if pose.frame.is_empty() {
                let PoseSettings { group, topic, .. } = pose;
                info!(
                    "poses of '{group}' are not on {topic}: no parameter says in which frame they are given (pose_frame)"
                );
                continue;
            }
            poses.push((pose.clone(), node.create_publisher(&topic.given, (&topic.qos).into())?));
        }
        let chunk = &topics.chunk;
        Ok(Self {
            chunk: node.create_publisher(&chunk.given, (&chunk.qos).into())?,
            trajectories: Trajectories::new(node, &topics.trajectory, controller)?,
            timing: Timing::new(node)?,
            poses,
        })
    }

    /// Publishes a chunk, its poses, and what is left of it as a trajectory; gives back the chunk as a message.
    ///
    /// # Errors
    /// The chunk could not be published; then nothing is.
    pub fn publish(
        &self,
        shared: &Shared,
        ticket: &Ticket,
        chunk: &ActionChunk,
        sequence: u64,
    ) -> r2r::Result<ChunkMessage> {
        let message = chunk_message(shared, ticket, chunk, sequence);
        self.chunk.publish(&message)?;
        if shared.counters.chunks.fetch_add(1, Ordering::Relaxed) == 0 {
            let seconds = chunk.timings.total().as_secs_f64();
            info!("first chunk published; it took {seconds:.3} s");
        }
        self.trajectories.send(shared, chunk);
        if locked(&shared.params).bool("poses") {
            self.publish_poses(chunk);
        }
        Ok(message)
    }

    /// Takes the topics off the graph.
    pub fn destroy(self, node: &mut Node) {
        node.destroy_publisher(self.chunk);
        self.trajectories.destroy(node);
        self.timing.destroy(node);
        for (_, publisher) in self.poses {
            node.destroy_publisher(publisher);
        }
    }

    fn publish_poses(&self, chunk: &ActionChunk) {
        for (settings, publisher) in &self.poses {
            let Some(group) = chunk.groups.iter().find(|group| group.name == settings.group) else {
                continue;
            };
            let poses = match poses(group, settings.format) {
                Ok(poses) => poses,
                Err(error) => {
                    warn!("no poses of '{}': {error}", settings.group);
                    continue;
                }
            };
            let header =
                Header { stamp: time_message(chunk.stamp_ns), frame_id: settings.frame.clone() };
            let poses = poses.iter().map(pose_message).collect();
            if let Err(error) = publisher.publish(&PoseArray { header, poses }) {
                warn!("the poses of '{}' could not be published: {error}", settings.group);
            }
        }
    }
}

fn chunk_message(
    shared: &Shared,
    ticket: &Ticket,
    chunk: &ActionChunk,
    sequence: u64,
) -> ChunkMessage {
    let settings = &shared.settings;
    let group_message = |group: &ActionGroup| {
        let joints = settings.action_joints.iter().find(|moved| moved.group == group.name);
        let pose = settings.poses.iter().find(|pose| pose.group == group.name);
        GroupMessage {
            name: group.name.clone(),
            representation: representation_number(group.representation, joints),
            dim: group.dim as u32,
            joint_names: joints.map(|moved| moved.joints.clone()).unwrap_or_default(),
            columns: Vec::new(),
            frame_id: pose.map(|pose| pose.frame.clone()).unwrap_or_default(),
            values: group.values.clone(),
        }
    };
    // The header has room for one frame: that of the poses, if they share it.
    let mut frames = settings.poses.iter().map(|pose| &pose.frame);
    let frame = frames.next().filter(|first| frames.all(|frame| frame == *first));
    let ages = ticket.readings.iter().map(|reading| age_message(reading, ticket.begin.ros_ns));
    let stages = chunk.timings.stages().into_iter();
    ChunkMessage {
        header: Header {
            stamp: time_message(chunk.stamp_ns),
            frame_id: frame.cloned().unwrap_or_default(),
        },
        sequence,
        // Sixteen zero bytes: no goal asked for this chunk.
        goal_id: uuid_message(&ticket.goal.unwrap_or_default()),
        version: chunk.version.name().to_owned(),
        embodiment: chunk.embodiment.clone(),
        backend: shared.backend.clone(),
        instruction: chunk.instruction.clone(),
        seed: chunk.seed.unwrap_or(0),
        noise_given: chunk.seed.is_none(),
        horizon: chunk.horizon as u32,
        dt: settings.dt_ns as f64 / NS_PER_S,
        groups: chunk.groups.iter().map(group_message).collect(),
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

/// A reading and how old it is at `now_ns`.
pub fn age_message(reading: &Reading, now_ns: i64) -> ObservationAge {
    ObservationAge {
        input: reading.input.clone(),
        topic: reading.topic.clone(),
        delta: reading.delta,
        stamp: time_message(reading.stamp_ns),
        age: now_ns.saturating_sub(reading.stamp_ns) as f64 / NS_PER_S,
    }
}

fn pose_message(pose: &PoseValues) -> Pose {
    let ([x, y, z], [qx, qy, qz, qw]) = (pose.xyz, pose.xyzw);
    let orientation = Quaternion { x: qx, y: qy, z: qz, w: qw };
    Pose { position: Point { x, y, z }, orientation }
}

/// The message's number of a representation. Values that become joint positions only by a map are none themselves.
pub fn representation_number(representation: Representation, joints: Option<&ActionJoints>) -> u8 {
    let are_positions = joints.is_some_and(|moved| !moved.joints.is_empty() && moved.map.is_none());
    match representation {
        Representation::Absolute if are_positions => representation::JOINT_POSITION,
        Representation::Absolute => representation::VALUE,
        Representation::PoseRot6d => representation::POSE_ROT6D,
        Representation::PoseRotvec => representation::POSE_ROTVEC,
        Representation::PoseMatrix => representation::POSE_MATRIX,
        Representation::Delta => representation::DELTA,
    }
}
