//! One frame's pose in its parent over time.

use std::collections::BTreeMap;
use std::sync::Arc;

use nalgebra::Isometry3;

use super::TransformRefused;

/// Poses are kept for this long, as in tf2.
pub const KEEP_NS: i64 = 10_000_000_000;
/// Poses kept of one frame, whatever its rate.
pub const MAX_POSES: usize = 4096;

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
    /// A pose next to the moment is given in this frame.
    OtherParent(Arc<str>),
}

impl Link {
    pub fn is_empty(&self) -> bool {
        self.fixed.is_none() && self.moving.is_empty()
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.moving.len()
    }

    pub fn clear_moving(&mut self) {
        self.moving.clear();
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
        let newest = self.newest().unwrap_or(stamp_ns);
        let behind_ns = newest.saturating_sub(stamp_ns);
        if behind_ns > KEEP_NS {
            return Err(TransformRefused::Late { child: child.to_owned(), behind_ns });
        }
        let parent = self.name(parent);
        let placed = Placed { parent, pose };
        if self.moving.get(&stamp_ns).is_some_and(|known| *known != placed) && !replace {
            let child = child.to_owned();
            return Err(TransformRefused::Contradiction { child, stamp_ns });
        }
        self.moving.insert(stamp_ns, placed);
        let horizon = newest.max(stamp_ns).saturating_sub(KEEP_NS);
        while self.moving.len() > MAX_POSES
            || self.moving.first_key_value().is_some_and(|(stamp, _)| *stamp < horizon)
        {
            self.moving.pop_first();
        }
        Ok(())
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

    /// The pose in `parent` at a moment: on the straight line, and on the shortest arc, between the poses before and
    /// after it.
    ///
    /// # Errors
    /// No pose on one side of the moment, two that are more than `max_gap_ns` apart, or one in another frame.
    pub fn at(&self, at_ns: i64, parent: &str, max_gap_ns: i64) -> Result<Isometry3<f64>, Gap> {
        if let Some((_, placed)) = &self.fixed {
            return Ok(placed.pose);
        }
        let before = self.moving.range(..=at_ns).next_back();
        let after = self.moving.range(at_ns..).next();
        match (before, after) {
            (Some((from_ns, from)), Some((to_ns, to))) => {
                let span_ns = to_ns - from_ns;
                if let Some(other) = [from, to].into_iter().find(|p| p.parent.as_ref() != parent) {
                    return Err(Gap::OtherParent(other.parent.clone()));
                }
                if span_ns == 0 {
                    return Ok(from.pose);
                }
                if span_ns > max_gap_ns {
                    return Err(Gap::Hole { of_ns: span_ns });
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
