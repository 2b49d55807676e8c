//! The parameters `action.<key>.*` that limit what a chunk may command.

use super::super::guard::{
    Guard, JointLimits, LimitedJoint, ObservedJoint, OnViolation, PoseLimits,
};
use super::super::params::{ParamError, Params};
use super::super::state::StateReader;
use super::super::state::affine::AffineMap;
use super::super::trajectory::ActionJoints;
use super::poses;
use super::states::StateSettings;
use super::unusable;
use crate::contract::{ActionGroupSpec, ActionReference, Embodiment};
use crate::words::Number;

const OF_JOINTS: [&str; 3] = ["position_min", "position_max", "velocity_max"];
const OF_POSES: [&str; 2] = ["translation_step_max_m", "rotation_step_max_rad"];

/// The parameter `limit_violation`.
pub fn on_violation(params: &Params) -> OnViolation {
    match params.text("limit_violation") {
        "clamp" => OnViolation::Clamp,
        _ => OnViolation::Refuse,
    }
}

pub(super) fn guard(
    params: &Params,
    embodiment: &Embodiment,
    states: &[StateSettings],
    action_joints: &[ActionJoints],
    errors: &mut Vec<ParamError>,
) -> Guard {
    let step_s = 1.0 / params.double("action_rate_hz");
    let mut guard = Guard { step_s, ..Guard::default() };
    for (spec, moved) in embodiment.action.iter().zip(action_joints) {
        let group = Group { params, spec, states };
        guard.joints.extend(group.joints(moved, errors));
        guard.poses.extend(group.poses(errors));
    }
    guard
}

/// One action group and its parameters.
struct Group<'a> {
    params: &'a Params,
    spec: &'a ActionGroupSpec,
    states: &'a [StateSettings],
}

impl Group<'_> {
    fn name(&self, what: &str) -> String {
        format!("action.{}.{what}", self.spec.name)
    }

    fn joints(&self, moved: &ActionJoints, errors: &mut Vec<ParamError>) -> Option<JointLimits> {
        let given = OF_JOINTS.map(|what| (what, self.params.doubles(&self.name(what))));
        if given.iter().all(|(_, values)| values.is_empty()) {
            return None;
        }
        let reason = if self.spec.reference == ActionReference::Delta {
            Some("is changes per step, not positions")
        } else if moved.joints.is_empty() || poses::format(self.spec).is_some() {
            Some("has no joints")
        } else {
            None
        };
        if let Some(reason) = reason {
            for (what, _) in given.iter().filter(|(_, values)| !values.is_empty()) {
                let reason =
                    format!("is given, but group '{}' {reason}; leave it out", self.spec.name);
                errors.push(unusable(self.name(what), reason));
            }
            return None;
        }
        let known = errors.len();
        let [minima, maxima, velocities] =
            given.map(|(what, values)| self.per_joint(what, values, errors));
        for velocity in velocities.iter().flatten().filter(|velocity| **velocity < 0.0) {
            let reason = format!("is {}; a speed is 0 or more", Number(*velocity));
            errors.push(unusable(self.name("velocity_max"), reason));
        }
        let value = |values: &Option<Vec<f64>>, column: usize, none: f64| {
            values.as_ref().and_then(|values| values.get(column)).copied().unwrap_or(none)
        };
        let joint = |(column, name): (usize, &String)| LimitedJoint {
            name: name.clone(),
            minimum: value(&minima, column, f64::NEG_INFINITY),
            maximum: value(&maxima, column, f64::INFINITY),
            velocity: value(&velocities, column, f64::INFINITY),
            observed: self.observed(name),
        };
        let joints: Vec<LimitedJoint> = moved.joints.iter().enumerate().map(joint).collect();
        for LimitedJoint { name, minimum, maximum, .. } in &joints {
            if minimum > maximum {
                let reason = format!(
                    "is {} for joint '{name}', above its position_max {}",
                    Number(*minimum),
                    Number(*maximum)
                );
                errors.push(unusable(self.name("position_min"), reason));
            }
        }
        let group = self.spec.name.clone();
        (errors.len() == known).then_some(JointLimits { group, joints, map: moved.map })
    }

    /// One value per joint, of a list of one for each or one for all.
    fn per_joint(
        &self,
        what: &str,
        given: &[f64],
        errors: &mut Vec<ParamError>,
    ) -> Option<Vec<f64>> {
        let dim = self.spec.dim;
        match given {
            [] => None,
            [one] => Some(vec![*one; dim]),
            each if each.len() == dim => Some(each.to_vec()),
            _ => {
                let reason = format!(
                    "has {} values; group '{}' needs {dim}, one per joint, or one for all",
                    given.len(),
                    self.spec.name
                );
                errors.push(unusable(self.name(what), reason));
                None
            }
        }
    }

    /// Where the position of a joint is observed, if it is.
    fn observed(&self, joint: &str) -> Option<ObservedJoint> {
        self.states.iter().find_map(|state| {
            let StateReader::Joints { joints, .. } = &state.reader else { return None };
            joints.groups().find_map(|group| {
                let column = joints.joints(group).iter().position(|name| name == joint)?;
                let backwards = |map: &AffineMap| AffineMap::new(map.to(), map.from());
                let map = state.reader.map(group).map(backwards);
                Some(ObservedJoint { state_group: group.to_owned(), column, map })
            })
        })
    }

    fn poses(&self, errors: &mut Vec<ParamError>) -> Option<PoseLimits> {
        let given = OF_POSES.map(|what| (what, self.params.double(&self.name(what))));
        if given.iter().all(|(_, limit)| *limit == 0.0) {
            return None;
        }
        let Some(format) = poses::format(self.spec) else {
            for (what, _) in given.iter().filter(|(_, limit)| *limit > 0.0) {
                let reason =
                    format!("is given, but group '{}' is no pose; leave it out", self.spec.name);
                errors.push(unusable(self.name(what), reason));
            }
            return None;
        };
        let [translation_step, rotation_step] =
            given.map(|(_, limit)| if limit > 0.0 { limit } else { f64::INFINITY });
        let observed = match &self.spec.reference {
            ActionReference::RelativePose { state_group, .. } => Some(state_group.clone()),
            _ => None,
        };
        let group = self.spec.name.clone();
        Some(PoseLimits { group, format, translation_step, rotation_step, observed })
    }
}
