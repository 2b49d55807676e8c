//! The trajectory that ends a motion.

use super::guard::LimitedJoint;
use super::settings::Settings;
use super::state::StateReader;
use super::state::affine::AffineMap;
use super::trajectory::{Point, Trajectory};
use crate::history::History;
use crate::words::Number;

/// How the arm is brought to rest when a goal ends early or the node is deactivated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// A trajectory of one point: where the joints are.
    Hold,
    /// A trajectory without points, on which joint_trajectory_controller drops what it has.
    Empty,
    /// Nothing: somebody else stops the arm.
    Nothing,
}

impl Stop {
    /// The choice of the parameter `stop`.
    pub fn from_choice(choice: &str) -> Self {
        match choice {
            "empty" => Stop::Empty,
            "none" => Stop::Nothing,
            _ => Stop::Hold,
        }
    }

    pub const CHOICES: &[&str] = &["hold", "empty", "none"];
}

/// Why the position of a joint is not known.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unknown {
    #[error("no state group has joint '{joint}'")]
    NoState { joint: String },
    #[error("there is no sample of joint '{joint}' that is young enough")]
    NoSample { joint: String },
    #[error("joint '{joint}' is at {:.6}, beyond its limits", Number(*.position))]
    BeyondLimit { joint: String, position: f64 },
}

/// Where the joints of all action groups are now, as a trajectory of one point that is due after `reach_ns`; `None` if no
/// action group has joints.
///
/// # Errors
/// The position of a joint is not known, or is older than `max_age_ns`.
pub fn hold(
    settings: &Settings,
    history: &History,
    now_ns: i64,
    max_age_ns: i64,
    reach_ns: i64,
) -> Result<Option<Trajectory>, Unknown> {
    let joint_names = joint_names(settings);
    let position = |joint: &String| position(settings, history, joint, now_ns, max_age_ns);
    let positions = joint_names.iter().map(position).collect::<Result<Vec<f64>, Unknown>>()?;
    let point = Point { positions, time_from_start_ns: reach_ns };
    let any = !joint_names.is_empty();
    Ok(any.then_some(Trajectory { stamp_ns: now_ns, joint_names, points: vec![point] }))
}

/// The joints of all action groups, in the order of their trajectories.
pub fn joint_names(settings: &Settings) -> Vec<String> {
    settings.action_joints.iter().flat_map(|group| group.joints.iter().cloned()).collect()
}

fn position(
    settings: &Settings,
    history: &History,
    joint: &str,
    now_ns: i64,
    max_age_ns: i64,
) -> Result<f64, Unknown> {
    for (source, state) in settings.states.iter().enumerate() {
        let StateReader::Joints { joints, .. } = &state.reader else { continue };
        for group in joints.groups() {
            let Some(column) = joints.joints(group).iter().position(|name| name == joint) else {
                continue;
            };
            let sample = history.newest_state(source);
            let young = sample.filter(|(stamp, _)| now_ns.saturating_sub(*stamp) <= max_age_ns);
            let value = young.and_then(|(_, sample)| sample.get(group)?.get(column).copied());
            let value = value.ok_or_else(|| Unknown::NoSample { joint: joint.to_owned() })?;
            // The sample has the checkpoint's units, the trajectory those of the joint.
            let back = state.reader.map(group).map(|map| AffineMap::new(map.to(), map.from()));
            let position = back.map_or(value, |back| back.apply(value));
            let limits = settings.guard.joints.iter().flat_map(|group| &group.joints);
            let within = |limit: &LimitedJoint| (limit.minimum..=limit.maximum).contains(&position);
            return match limits.clone().find(|limit| limit.name == joint) {
                Some(limit) if !within(limit) => {
                    Err(Unknown::BeyondLimit { joint: joint.to_owned(), position })
                }
                _ => Ok(position),
            };
        }
    }
    Err(Unknown::NoState { joint: joint.to_owned() })
}
