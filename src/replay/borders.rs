//! What the motion does where one chunk takes over from another.

use std::collections::BTreeMap;

use serde::Serialize;

use super::events::Predicted;
use super::seconds_since;
use crate::node::settings::Settings;
use crate::node::stats::{Commands, Jump, Seams};

/// Borders between chunks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Borders {
    /// Borders that were measured; a jump of the clock ends a motion, so that there is none across it.
    pub count: u64,
    /// Borders at which the last row of the old chunk had been due before the new chunk came.
    pub stalls: u64,
    pub longest_stall_ms: f64,
    /// When the longest one ended, seconds since the recording's start.
    pub longest_stall_at_s: Option<f64>,
    pub groups: BTreeMap<String, GroupBorders>,
}

/// Borders of one group.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupBorders {
    /// Of the joint that jumps farthest, in its unit; metres for a pose.
    pub jump_max: f64,
    pub jump_max_at_s: f64,
    pub jump_median: f64,
    /// Radians; poses only.
    pub rotation_max: Option<f64>,
    /// In the joint's unit per s²; joints only.
    pub acceleration_max: Option<f64>,
}

/// Measures every border. A chunk comes `latency_ns` after the moment at which it was wanted.
pub fn measure(
    predicted: &[Predicted],
    settings: &Settings,
    latency_ns: i64,
    start_ns: i64,
) -> Borders {
    let mut borders = Borders::default();
    let mut seams = Seams::default();
    let mut jumps: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let mut era = 0;
    for prediction in predicted {
        if prediction.moment.era != era {
            seams.interrupt();
            era = prediction.moment.era;
        }
        let commands = Commands::new(
            &prediction.chunk,
            &settings.action_joints,
            &settings.poses,
            settings.dt_ns,
        );
        let Some(commands) = commands else { continue };
        let now_ns = prediction.moment.ros_ns.saturating_add(latency_ns);
        let at_s = seconds_since(start_ns, prediction.moment.log_ns);
        let Some(seam) = seams.follow(None, commands, now_ns).cloned() else { continue };
        let stall_ms = seam.stall_ns as f64 / 1e6;
        if stall_ms > borders.longest_stall_ms {
            borders.longest_stall_ms = stall_ms;
            borders.longest_stall_at_s = Some(at_s);
        }
        for group in seam.groups {
            let known = borders.groups.entry(group.group.clone()).or_default();
            let size = match group.jump {
                Jump::Joints { largest } => largest,
                Jump::Pose { metres, radians } => {
                    known.rotation_max = Some(known.rotation_max.unwrap_or(0.0).max(radians));
                    metres
                }
            };
            let sizes = jumps.entry(group.group).or_default();
            if sizes.is_empty() || size > known.jump_max {
                known.jump_max = size;
                known.jump_max_at_s = at_s;
            }
            sizes.push(size);
            if let Some(acceleration) = group.acceleration {
                let largest = known.acceleration_max.unwrap_or(0.0).max(acceleration);
                known.acceleration_max = Some(largest);
            }
        }
    }
    for (group, mut sizes) in jumps {
        sizes.sort_by(f64::total_cmp);
        if let Some(known) = borders.groups.get_mut(&group) {
            known.jump_median = sizes[(sizes.len() - 1) / 2];
        }
    }
    borders.count = seams.count;
    borders.stalls = seams.stalls;
    borders
}
