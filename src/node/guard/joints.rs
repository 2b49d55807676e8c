//! Limits of joints: where they may be, and how fast they may get there.

use super::{ObservedState, OnViolation, Violation};
use crate::node::state::affine::AffineMap;

/// The limits of an action group that moves joints.
#[derive(Clone, Debug, PartialEq)]
pub struct JointLimits {
    pub group: String,
    /// One per column.
    pub joints: Vec<LimitedJoint>,
    /// From the group's values to positions of the joints, where they are not the same.
    pub map: Option<AffineMap>,
}

/// The limits of one joint, in its own units; infinite for none.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitedJoint {
    pub name: String,
    pub minimum: f64,
    pub maximum: f64,
    /// Per second.
    pub velocity: f64,
    /// Where its position is found in an observation, if it is there.
    pub observed: Option<ObservedJoint>,
}

/// Where the position of a joint is found in an observation.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedJoint {
    pub state_group: String,
    pub column: usize,
    /// From the state group's values to positions of the joint, where they are not the same.
    pub map: Option<AffineMap>,
}

/// A value of a chunk and the position that it commands.
#[derive(Clone, Copy)]
struct Command {
    position: f64,
    /// What rounding the value to f32 can change the position by.
    rounding: f64,
}

impl JointLimits {
    pub(super) fn check(
        &self,
        values: &mut [f32],
        observed: &ObservedState,
        step_s: f64,
        on_violation: OnViolation,
    ) -> Result<usize, Violation> {
        let dim = self.joints.len().max(1);
        let mut limited = 0;
        for (column, joint) in self.joints.iter().enumerate() {
            let mut before = joint.observed_position(observed);
            for (row, value) in values.iter_mut().skip(column).step_by(dim).enumerate() {
                let command = self.command(*value);
                let Some(violation) = self.violation(joint, row, before, command, step_s) else {
                    before = Some(command);
                    continue;
                };
                if on_violation == OnViolation::Refuse {
                    return Err(violation);
                }
                let [low, high] = self.within(joint, before, step_s)?;
                *value = self.value_within(command.position.clamp(low, high), low, high);
                if !value.is_finite() {
                    let (group, value) = (self.group.clone(), *value);
                    return Err(Violation::NotFinite { group, row, column, value });
                }
                before = Some(self.command(*value));
                limited += 1;
            }
        }
        Ok(limited)
    }

    fn command(&self, value: f32) -> Command {
        let position =
            |value: f32| self.map.map_or(f64::from(value), |map| map.apply(f64::from(value)));
        let here = position(value);
        // The neighbour towards zero, since beyond the largest number there is none.
        let neighbour = if value > 0.0 { value.next_down() } else { value.next_up() };
        Command { position: here, rounding: (position(neighbour) - here).abs() }
    }

    fn violation(
        &self,
        joint: &LimitedJoint,
        row: usize,
        before: Option<Command>,
        Command { position: value, rounding }: Command,
        step_s: f64,
    ) -> Option<Violation> {
        let (group, name) = (self.group.clone(), joint.name.clone());
        let Command { position: from, rounding: of_before } =
            before.unwrap_or(Command { position: value, rounding: 0.0 });
        let moved = (value - from).abs();
        if value < joint.minimum - rounding {
            let limit = joint.minimum;
            Some(Violation::BelowMinimum { group, joint: name, row, value, limit })
        } else if value > joint.maximum + rounding {
            let limit = joint.maximum;
            Some(Violation::AboveMaximum { group, joint: name, row, value, limit })
        } else if moved > joint.velocity * step_s + rounding + of_before {
            let (value, limit) = (moved / step_s, joint.velocity);
            Some(Violation::Speed { group, joint: name, row, value, limit })
        } else {
            None
        }
    }

    /// The lowest and the highest position that keep all limits after `before`.
    fn within(
        &self,
        joint: &LimitedJoint,
        before: Option<Command>,
        step_s: f64,
    ) -> Result<[f64; 2], Violation> {
        let &LimitedJoint { minimum, maximum, velocity, .. } = joint;
        let Some(Command { position, rounding }) = before else { return Ok([minimum, maximum]) };
        let (low, high) =
            (minimum.max(position - velocity * step_s), maximum.min(position + velocity * step_s));
        if low <= high {
            return Ok([low, high]);
        }
        if low - high <= 2.0 * rounding {
            return Ok([high, high]);
        }
        let (group, joint) = (self.group.clone(), joint.name.clone());
        Err(Violation::OutOfReach { group, joint, observed: position, minimum, maximum })
    }

    /// The value that commands `position`, rounded so that it does not leave the limits, where there is such a value.
    fn value_within(&self, position: f64, low: f64, high: f64) -> f32 {
        let backwards = self.map.map(|map| AffineMap::new(map.to(), map.from()));
        let nearest = backwards.map_or(position, |map| map.apply(position)) as f32;
        let is_within = |value: &f32| (low..=high).contains(&self.command(*value).position);
        [nearest, nearest.next_down(), nearest.next_up()]
            .into_iter()
            .find(is_within)
            .unwrap_or(nearest)
    }
}

impl LimitedJoint {
    fn observed_position(&self, observed: &ObservedState) -> Option<Command> {
        let ObservedJoint { state_group, column, map } = self.observed.as_ref()?;
        let &value = observed.get(state_group)?.get(*column)?;
        let position = map.map_or(value, |map| map.apply(value));
        // The policy's state is f32.
        Some(Command { position, rounding: f64::from(f32::EPSILON) * position.abs() })
    }
}
