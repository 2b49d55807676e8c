//! One frame's pose in its parent over time.

use std::collections::BTreeMap;
use std::sync::Arc;

use nalgebra::Isometry3;

use super::TransformRefused;
use crate::history::seconds;

/// Poses are kept for this long, as in tf2.
pub const KEEP_NS: i64 = 10_000_000_000;
/// Poses kept of one frame, whatever its rate.
pub const MAX_POSES: usize = 4096;
/// The poses this far to both sides of a moment, or as far as poses may be apart if that is more, have to agree with each
/// other. Publishers that contradict each other are seldom in step: two poses of the same one may well be neighbours,
/// but not for a second.
pub const AGREE_NS: i64 = 1_000_000_000;
/// What a single link does not do between two neighbouring poses: be faster than a limit and get further than a distance,
/// so that a jittering stamp alone is no jump. The hands of arms that work beside people reach 1 to 3 m/s, their
/// joints 3 to 6 rad/s, those of fingers about 10 rad/s.
pub const MAX_SPEED_M_S: f64 = 5.0;
pub const MAX_SPEED_RAD_S: f64 = 20.0;
pub const JUMP_M: f64 = 0.1;
pub const JUMP_RAD: f64 = 0.5;

/// A pose, and the frame that it is given in.
#[derive(Clone, Debug, PartialEq)]
pub struct Placed {
    pub parent: Arc<str>,
    pub pose: Isometry3<f64>,
}

/// What is known about one frame.
#[derive(Debug, Default)]
pub struct Link {
    /// The pose for all time, with the stamp of its message.
    fixed: Option<(i64, Placed)>,
    /// Poses by stamp.
    moving: BTreeMap<i64, Placed>,
}

/// Why a link has no pose at a moment.
#[derive(Clone, Debug, PartialEq)]
pub enum Gap {
    /// The oldest pose is this much later.
    Before { by_ns: i64 },
    /// The newest pose is this much earlier.
    After { by_ns: i64 },
    /// The poses around the moment are too far apart to be joined.
    Hole { of_ns: i64 },
    /// A pose near the moment is given in this frame.
    OtherParent(Arc<str>),
    /// Neighbouring poses near the moment are further apart than a link moves.
    Jump(Jump),
}

/// From one pose to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jump {
    pub metres: f64,
    pub radians: f64,
    pub within_ns: i64,
}

impl Jump {
    fn is_implausible(&self) -> bool {
        let seconds = seconds(self.within_ns);
        let shifted = self.metres > JUMP_M && self.metres > MAX_SPEED_M_S * seconds;
        let turned = self.radians > JUMP_RAD && self.radians > MAX_SPEED_RAD_S * seconds;
        shifted || turned
    }
}

impl Link {
    pub fn is_empty(&self) -> bool {
        self.fixed.is_none() && self.moving.is_empty()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.moving.len()
    }

    /// Forgets all that moves, and when the pose for all time was set: stamps of a new clock may be smaller.
    pub fn clear_moving(&mut self) {
        self.moving.clear();
        if let Some((stamp_ns, _)) = &mut self.fixed {
            *stamp_ns = i64::MIN;
        }
    }

    /// Whether both topics claim the frame.
    pub fn is_contested(&self) -> bool {
        self.fixed.is_some() && !self.moving.is_empty()
    }

    /// Takes in a pose; one that is repeated as it was is nothing new.
    pub fn insert(
        &mut self,
        stamp_ns: i64,
        parent: &str,
        child: &str,
        pose: Isometry3<f64>,
        replace: bool,
    ) -> Result<(), TransformRefused> {
        let parent = self.name(parent);
        let placed = Placed { parent, pose };
        if self.moving.get(&stamp_ns).is_some_and(|known| *known != placed) && !replace {
            let child = child.to_owned();
            return Err(TransformRefused::Contradiction { child, stamp_ns });
        }
        self.moving.insert(stamp_ns, placed);
        if self.moving.len() > MAX_POSES {
            self.moving.pop_first();
        }
        Ok(())
    }

    /// Forgets the moving poses before a moment.
    pub fn forget_before(&mut self, horizon_ns: i64) {
        while self.moving.first_key_value().is_some_and(|(stamp, _)| *stamp < horizon_ns) {
            self.moving.pop_first();
        }
    }

    /// Sets the pose for all time, unless a later message has set another one.
    pub fn fix(&mut self, stamp_ns: i64, parent: &str, pose: Isometry3<f64>) {
        if self.fixed.as_ref().is_none_or(|(known_ns, _)| *known_ns <= stamp_ns) {
            self.fixed = Some((stamp_ns, Placed { parent: parent.into(), pose }));
        }
    }

    /// The known parent's name, without another copy of it.
    fn name(&self, parent: &str) -> Arc<str> {
        let known = self.moving.last_key_value().map(|(_, placed)| &placed.parent);
        known.filter(|known| known.as_ref() == parent).map_or_else(|| parent.into(), Arc::clone)
    }

    /// The frame that the pose for all time is given in.
    pub fn fixed_parent(&self) -> Option<&Arc<str>> {
        self.fixed.as_ref().map(|(_, placed)| &placed.parent)
    }

    /// What is to be kept longer is greater: the fixed, which nobody may send again, then the newer.
    pub fn worth(&self) -> (bool, i64) {
        let fixed_ns = self.fixed.as_ref().map(|(stamp_ns, _)| *stamp_ns);
        (fixed_ns.is_some(), self.newest().or(fixed_ns).unwrap_or(i64::MIN))
    }

    /// Stamp of the newest moving pose.
    pub fn newest(&self) -> Option<i64> {
        self.moving.last_key_value().map(|(stamp, _)| *stamp)
    }

    /// The frame that the pose of a moment is given in: that of the last pose until then, or else of the first one.
    pub fn parent(&self, at_ns: i64) -> Option<&Arc<str>> {
        if let Some((_, placed)) = &self.fixed {
            return Some(&placed.parent);
        }
        let until = self.moving.range(..=at_ns).next_back();
        until.or_else(|| self.moving.first_key_value()).map(|(_, placed)| &placed.parent)
    }

    /// Another frame than `parent` that a pose near the moment is given in.
    pub fn other_parent(&self, at_ns: i64, parent: &str, max_gap_ns: i64) -> Option<&Arc<str>> {
        if self.fixed.is_some() {
            return None;
        }
        let mut parents = self.near(at_ns, max_gap_ns).map(|(_, placed)| &placed.parent);
        parents.find(|other| other.as_ref() != parent)
    }

    fn jump(&self, at_ns: i64, max_gap_ns: i64) -> Option<Jump> {
        let near = || self.near(at_ns, max_gap_ns);
        let mut jumps = near().zip(near().skip(1)).map(|((from_ns, from), (to_ns, to))| Jump {
            metres: (to.pose.translation.vector - from.pose.translation.vector).norm(),
            radians: from.pose.rotation.angle_to(&to.pose.rotation),
            within_ns: to_ns - from_ns,
        });
        jumps.find(Jump::is_implausible)
    }

    /// The moving poses that have to agree for one at this moment.
    fn near(&self, at_ns: i64, max_gap_ns: i64) -> impl Iterator<Item = (&i64, &Placed)> {
        let reach_ns = max_gap_ns.max(AGREE_NS);
        let at_ns = self.newest().map_or(at_ns, |newest| newest.min(at_ns));
        self.moving.range(at_ns.saturating_sub(reach_ns)..=at_ns.saturating_add(reach_ns))
    }

    /// The pose in `parent` at a moment: on the straight line, and on the shortest arc, between the poses before and
    /// after it.
    ///
    /// # Errors
    /// No pose on one side of the moment, two that are more than `max_gap_ns` apart, or poses nearby that are in another frame
    /// or jump.
    pub fn at(&self, at_ns: i64, parent: &str, max_gap_ns: i64) -> Result<Isometry3<f64>, Gap> {
        if let Some((_, placed)) = &self.fixed {
            return Ok(placed.pose);
        }
        if let Some(other) = self.other_parent(at_ns, parent, max_gap_ns) {
            return Err(Gap::OtherParent(other.clone()));
        }
        let before = self.moving.range(..=at_ns).next_back();
        let after = self.moving.range(at_ns..).next();
        match (before, after) {
            (Some((from_ns, from)), Some((to_ns, to))) => {
                let span_ns = to_ns - from_ns;
                if let Some(other) = [from, to].into_iter().find(|p| p.parent.as_ref() != parent) {
                    return Err(Gap::OtherParent(other.parent.clone()));
                }
                if span_ns > max_gap_ns {
                    return Err(Gap::Hole { of_ns: span_ns });
                }
                if let Some(jump) = self.jump(at_ns, max_gap_ns) {
                    return Err(Gap::Jump(jump));
                }
                if span_ns == 0 {
                    return Ok(from.pose);
                }
                let share = (at_ns - from_ns) as f64 / span_ns as f64;
                Ok(between(&from.pose, &to.pose, share))
            }
            (Some((newest, _)), None) => Err(Gap::After { by_ns: at_ns - newest }),
            (None, Some((oldest, _))) => Err(Gap::Before { by_ns: oldest - at_ns }),
            (None, None) => Err(Gap::After { by_ns: 0 }),
        }
    }
}

fn between(from: &Isometry3<f64>, to: &Isometry3<f64>, share: f64) -> Isometry3<f64> {
    let translation = from.translation.vector.lerp(&to.translation.vector, share);
    let rotation = from.rotation.slerp(&to.rotation, share);
    Isometry3::from_parts(translation.into(), rotation)
}
