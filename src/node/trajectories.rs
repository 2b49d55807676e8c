//! Where trajectories go: a topic, and a controller where one is named.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use r2r::std_msgs::msg::Header;
use r2r::trajectory_msgs::msg::{JointTrajectory, JointTrajectoryPoint};
use r2r::{Node, Publisher};
use tracing::warn;

use super::follower::Follower;
use super::runtime::{Shared, duration_message, locked, time_message};
use super::settings::{self, Settings};
use super::stop::{Stop, hold, joint_names};
use super::topics::Topic;
use super::trajectory::{Start, Trajectory, trajectory};
use crate::contract::ActionChunk;

const NS_PER_S: f64 = 1e9;

/// See the module.
pub struct Trajectories {
    topic: Publisher<JointTrajectory>,
    controller: Option<Arc<Follower>>,
    /// A trajectory was published since the last stop, whatever the parameter says by now.
    moving: AtomicBool,
}

impl Trajectories {
    /// # Errors
    /// What rcl reports.
    pub fn new(
        node: &mut Node,
        topic: &Topic,
        controller: Option<Arc<Follower>>,
    ) -> r2r::Result<Self> {
        let topic = node.create_publisher(&topic.given, (&topic.qos).into())?;
        Ok(Self { topic, controller, moving: AtomicBool::new(false) })
    }

    /// Sends what is left of a chunk as a trajectory.
    pub fn send(&self, shared: &Shared, chunk: &ActionChunk) {
        let Settings { action_joints, dt_ns, .. } = &shared.settings;
        let (on_topic, lead_ns, start) = {
            let params = locked(&shared.params);
            let lead_ns = settings::trajectory_lead_ns(&params);
            (params.bool("trajectory"), lead_ns, settings::trajectory_start(&params))
        };
        if !on_topic && self.controller.is_none() {
            return;
        }
        let now_ns = shared.clock.now().ros_ns;
        let cut = trajectory(chunk, action_joints, *dt_ns, now_ns, lead_ns, start);
        shared.counters.dropped_points.fetch_add(cut.dropped as u64, Ordering::Relaxed);
        match cut.trajectory {
            Some(trajectory) => {
                let message = trajectory_message(trajectory);
                if on_topic {
                    self.publish(&message);
                    self.moving.store(true, Ordering::Relaxed);
                }
                if let Some(controller) = &self.controller {
                    controller.follow(message);
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

    /// Brings the arm to rest, see [`Stop`]. A controller is told to drop what it has, whereupon it holds its position.
    pub fn stop(&self, shared: &Shared) {
        let (stop, on_topic) = {
            let params = locked(&shared.params);
            (Stop::from_choice(params.text("stop")), params.bool("trajectory"))
        };
        let joint_names = joint_names(&shared.settings);
        if stop == Stop::Nothing || joint_names.is_empty() {
            return;
        }
        if let Some(controller) = &self.controller {
            controller.stop();
        }
        if self.moving.swap(false, Ordering::Relaxed) || on_topic {
            self.publish(&stop_message(shared, stop, joint_names));
        }
    }

    fn publish(&self, message: &JointTrajectory) {
        if let Err(error) = self.topic.publish(message) {
            warn!("the trajectory could not be published: {error}");
        }
    }

    /// Takes the topic off the graph.
    pub fn destroy(self, node: &mut Node) {
        node.destroy_publisher(self.topic);
    }
}

fn stop_message(shared: &Shared, stop: Stop, joint_names: Vec<String>) -> JointTrajectory {
    let (max_age_ns, start) = {
        let params = locked(&shared.params);
        (settings::gates(&params).state_max_age_ns, settings::trajectory_start(&params))
    };
    let now_ns = shared.clock.now().ros_ns;
    let held = || {
        let sensors = locked(&shared.sensors);
        hold(&shared.settings, &sensors.history, now_ns, max_age_ns, shared.settings.dt_ns)
    };
    let held = if stop == Stop::Hold { held() } else { Ok(None) };
    let mut message = match held {
        Ok(Some(trajectory)) => trajectory_message(trajectory),
        Ok(None) => empty_trajectory(now_ns, joint_names),
        Err(unknown) => {
            warn!(
                "the stop is an empty trajectory, since the position to hold is not known: {unknown}"
            );
            empty_trajectory(now_ns, joint_names)
        }
    };
    if start == Start::Publication {
        message.header.stamp = time_message(0);
    }
    message
}

fn trajectory_message(trajectory: Trajectory) -> JointTrajectory {
    let points = trajectory.points.into_iter().map(|point| JointTrajectoryPoint {
        positions: point.positions,
        time_from_start: duration_message(point.time_from_start_ns),
        ..Default::default()
    });
    JointTrajectory {
        header: Header { stamp: time_message(trajectory.stamp_ns), frame_id: String::new() },
        joint_names: trajectory.joint_names,
        points: points.collect(),
    }
}

/// What joint_trajectory_controller takes for: drop the motion.
fn empty_trajectory(stamp_ns: i64, joint_names: Vec<String>) -> JointTrajectory {
    let header = Header { stamp: time_message(stamp_ns), frame_id: String::new() };
    JointTrajectory { header, joint_names, points: Vec::new() }
}
