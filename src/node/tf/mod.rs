//! The transforms of `/tf` and `/tf_static`, and the pose of one frame in another at a moment.
//!
//! What a lookup answers depends on the set of transforms and on the moment alone, never on the order of their arrival;
//! except that of edges which close a circle, or contradict each other at the same stamp, the first is kept, and that a full
//! table forgets.

mod link;
mod tree;

use std::collections::{BTreeMap, BTreeSet};

use nalgebra::Isometry3;

pub use tree::{Found, LookupError, Query};

use link::{KEEP_NS, Link};

use crate::history::seconds;

/// At most this many frames are kept; a humanoid has about a hundred.
pub const MAX_FRAMES: usize = 1024;

/// Every frame's transform to its parent: for moving ones as far back as `link::KEEP_NS`.
#[derive(Debug, Default)]
pub struct Transforms {
    /// By the name of the child, without a slash in front.
    links: BTreeMap<String, Link>,
    /// Edges that would have closed a circle, parent and stamp by child; one of `/tf_static` has no stamp. Nobody knows which
    /// edge of a circle is the wrong one, so that the kept ones are not to be trusted near that moment.
    circles: BTreeMap<String, (String, Option<i64>)>,
    /// Stamp of the newest moving transform.
    newest_ns: Option<i64>,
    /// Frames whose chains are asked for.
    wanted: Vec<String>,
}

/// Why a transform was not taken in.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TransformRefused {
    #[error("a transform with an empty frame name (parent '{parent}', child '{child}')")]
    EmptyName { parent: String, child: String },
    #[error("frame '{child}' is its own parent")]
    OwnParent { child: String },
    #[error(
        "the edge '{parent}' -> '{child}' closes a circle: '{parent}' hangs on '{child}' already; stop the publisher of the wrong edge: 'ros2 topic info -v /tf' (and /tf_static) names them. What stays away from /tf is forgotten after {} s, what was on /tf_static when this node is restarted", KEEP_NS / 1_000_000_000
    )]
    Circle { parent: String, child: String },
    #[error("frame '{child}' would be number {}; at most {MAX_FRAMES} are kept, and all of them are asked for", MAX_FRAMES + 1)]
    TooMany { child: String },
    #[error("frame '{child}' has two different transforms at {:.3} s: there are two publishers of it", seconds(*stamp_ns))]
    Contradiction { child: String, stamp_ns: i64 },
    #[error("the transform of frame '{child}' is {:.3} s older than the newest one of /tf", seconds(*behind_ns))]
    Late { child: String, behind_ns: i64 },
}

impl Transforms {
    /// None yet; a full table never forgets the chains of the `wanted` frames.
    pub fn new<'a>(wanted: impl IntoIterator<Item = &'a str>) -> Self {
        let wanted = wanted.into_iter().map(|frame| bare(frame).to_owned()).collect();
        Self { wanted, ..Self::default() }
    }

    /// Takes in the pose of `child` in `parent` at a moment. One that has another pose at this moment already is refused,
    /// or gets this one if `replace`.
    ///
    /// # Errors
    /// See [`TransformRefused`]; the transforms are as before.
    pub fn insert(
        &mut self,
        stamp_ns: i64,
        parent: &str,
        child: &str,
        pose: Isometry3<f64>,
        replace: bool,
    ) -> Result<(), TransformRefused> {
        let (parent, child) = named(parent, child)?;
        let newest_ns = self.newest_ns.map_or(stamp_ns, |newest_ns| newest_ns.max(stamp_ns));
        let behind_ns = newest_ns.saturating_sub(stamp_ns);
        if behind_ns > KEEP_NS {
            return Err(TransformRefused::Late { child: child.to_owned(), behind_ns });
        }
        // What was not renewed for so long is not to stand in the way.
        self.advance(newest_ns);
        self.refuse_circle(parent, child, Some(stamp_ns))?;
        self.link(child)?.insert(stamp_ns, parent, child, pose, replace)
    }

    /// Takes in the pose of `child` in `parent` for all time; it takes the place of an earlier one.
    ///
    /// # Errors
    /// See [`TransformRefused`]; the transforms are as before.
    pub fn insert_static(
        &mut self,
        stamp_ns: i64,
        parent: &str,
        child: &str,
        pose: Isometry3<f64>,
    ) -> Result<(), TransformRefused> {
        let (parent, child) = named(parent, child)?;
        // Of fixed ones alone: this one may never be sent again, but moving ones that are wrong are forgotten.
        self.refuse_circle(parent, child, None)?;
        self.link(child)?.fix(stamp_ns, parent, pose);
        Ok(())
    }

    /// Forgets all that moves; what is fixed holds for any clock.
    pub fn clear_moving(&mut self) {
        self.newest_ns = None;
        self.circles.retain(|_, (_, stamp_ns)| stamp_ns.is_none());
        self.links.values_mut().for_each(Link::clear_moving);
        self.links.retain(|_, link| !link.is_empty());
    }

    /// Sets the stamp of the newest transform, and forgets what is too old by it.
    fn advance(&mut self, newest_ns: i64) {
        if self.newest_ns == Some(newest_ns) {
            return;
        }
        self.newest_ns = Some(newest_ns);
        let horizon_ns = newest_ns.saturating_sub(KEEP_NS);
        self.links.values_mut().for_each(|link| link.forget_before(horizon_ns));
        self.links.retain(|_, link| !link.is_empty());
        self.circles
            .retain(|_, (_, stamp_ns)| stamp_ns.is_none_or(|stamp_ns| stamp_ns >= horizon_ns));
    }

    /// Refuses an edge whose parent hangs on its child at a moment, or for all time.
    fn refuse_circle(
        &mut self,
        parent: &str,
        child: &str,
        stamp_ns: Option<i64>,
    ) -> Result<(), TransformRefused> {
        if !self.hangs_on(parent, child, stamp_ns) {
            return Ok(());
        }
        let (parent, child) = (parent.to_owned(), child.to_owned());
        if self.circles.len() < MAX_FRAMES || self.circles.contains_key(&child) {
            self.circles.insert(child.clone(), (parent.clone(), stamp_ns));
        }
        Err(TransformRefused::Circle { parent, child })
    }

    fn hangs_on(&self, frame: &str, other: &str, stamp_ns: Option<i64>) -> bool {
        let mut current = frame;
        // A circle that is there already would have no end.
        for _ in 0..=self.links.len() {
            let Some(link) = self.links.get(current) else { return false };
            let above = match stamp_ns {
                Some(at_ns) => link.parent(at_ns),
                None => link.fixed_parent(),
            };
            let Some(next) = above else { return false };
            if next.as_ref() == other {
                return true;
            }
            current = next;
        }
        false
    }

    /// The link of a frame; a new one gets its place, if need be that of another.
    fn link(&mut self, child: &str) -> Result<&mut Link, TransformRefused> {
        if self.links.len() >= MAX_FRAMES && !self.links.contains_key(child) {
            let spare = self.spare();
            let spare =
                spare.ok_or_else(|| TransformRefused::TooMany { child: child.to_owned() })?;
            self.links.remove(&spare);
        }
        Ok(self.links.entry(child.to_owned()).or_default())
    }

    /// The frame that is missed least: of those that no chain asked for needs, the one unheard of for longest.
    fn spare(&self) -> Option<String> {
        let mut needed = BTreeSet::new();
        for end in &self.wanted {
            let mut current = end.as_str();
            while needed.insert(current) {
                let Some(next) = self.links.get(current).and_then(|link| link.parent(i64::MAX))
                else {
                    break;
                };
                current = next;
            }
        }
        let spare = self.links.iter().filter(|(frame, _)| !needed.contains(frame.as_str()));
        spare.min_by_key(|(_, link)| link.worth()).map(|(frame, _)| frame.clone())
    }
}

/// The two names as they are kept.
fn named<'a>(parent: &'a str, child: &'a str) -> Result<(&'a str, &'a str), TransformRefused> {
    let (parent, child) = (bare(parent), bare(child));
    if parent.is_empty() || child.is_empty() {
        let (parent, child) = (parent.to_owned(), child.to_owned());
        return Err(TransformRefused::EmptyName { parent, child });
    }
    if parent == child {
        return Err(TransformRefused::OwnParent { child: child.to_owned() });
    }
    Ok((parent, child))
}

/// A frame's name as tf2 has it: those of ROS 1 begin with a slash.
pub fn bare(frame: &str) -> &str {
    frame.strip_prefix('/').unwrap_or(frame)
}

#[cfg(test)]
mod tests;
