//! From one frame to another through the tree.

use std::sync::Arc;

use nalgebra::Isometry3;

use super::super::nearest::{hint, nearest};
use super::link::{AGREE_NS, Gap, Jump, Link};
use super::{Transforms, bare};
use crate::history::seconds;
use crate::words::Number;

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Frame that the pose is given in.
    pub base: &'a str,
    /// Frame whose pose is asked for.
    pub tip: &'a str,
    /// The moment, nanoseconds. Where a frame in between is not known until then, the newest moment at which all of
    /// them are known counts.
    pub at_ns: i64,
    /// Poses further apart are not joined.
    pub max_gap_ns: i64,
}

/// A pose that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// Pose of the tip in the base frame.
    pub pose: Isometry3<f64>,
    /// The moment that counts.
    pub at_ns: i64,
    /// The newest moment at which all frames in between are known; `None` if none of them moves.
    pub newest_ns: Option<i64>,
}

/// Why there is no pose.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LookupError {
    #[error("frame '{frame}' is in no transform on /tf or /tf_static{}", hint(.nearest))]
    UnknownFrame { frame: String, nearest: Option<String> },
    #[error(
        "frames '{base}' and '{tip}' are not connected: the first hangs on '{base_root}', the second on '{tip_root}'"
    )]
    NotConnected { base: String, tip: String, base_root: String, tip_root: String },
    #[error(
        "the transforms run in a circle, which the edge '{parent}' -> '{child}' closes; stop the publisher of the wrong edge: 'ros2 topic info -v /tf' (and /tf_static) names them"
    )]
    Loop { parent: String, child: String },
    #[error("frame '{frame}' is on /tf and on /tf_static; it is one or the other")]
    Contested { frame: String },
    #[error("frame '{frame}' is known only from {:.3} s after the moment that is asked for", seconds(*by_ns))]
    TooOld { frame: String, by_ns: i64 },
    #[error("frame '{frame}' is known only until {:.3} s before the moment that is asked for", seconds(*by_ns))]
    TooNew { frame: String, by_ns: i64 },
    #[error("frame '{frame}' has no pose for {:.3} s around the moment that is asked for (limit {:.3} s)", seconds(*of_ns), seconds(*max_ns))]
    Hole { frame: String, of_ns: i64, max_ns: i64 },
    #[error(
        "frame '{frame}' has two parents, '{first}' and '{second}', around the moment that is asked for; if it did not just change hands, two publishers disagree: 'ros2 topic info -v /tf' names them"
    )]
    TwoParents { frame: String, first: String, second: String },
    #[error(
        "the edge '{parent}' -> '{child}' jumps by {:.3} m and {:.3} rad within {:.3} s: probably two publishers contradict each other; 'ros2 topic info -v /tf' names them",
        Number(.jump.metres), .jump.radians, seconds(.jump.within_ns)
    )]
    Jump { parent: String, child: String, jump: Jump },
}

/// A frame on the way up.
struct Step<'a> {
    frame: &'a str,
    link: &'a Link,
    parent: &'a str,
}

impl Transforms {
    /// The pose of one frame in another.
    ///
    /// # Errors
    /// See [`LookupError`].
    pub fn lookup(&self, query: &Query<'_>) -> Result<Found, LookupError> {
        let (base, tip) = (bare(query.base), bare(query.tip));
        let (base_root, from_base) = self.up(base, query.at_ns)?;
        let (tip_root, from_tip) = self.up(tip, query.at_ns)?;
        if base_root != tip_root {
            // A frame on the wrong branch is the reason then.
            for step in from_base.iter().chain(&from_tip) {
                let Step { frame, link, parent } = step;
                if let Some(other) = link.other_parent(query.at_ns, parent, query.max_gap_ns) {
                    return Err(two_parents(frame, parent, other));
                }
            }
            return Err(LookupError::NotConnected {
                base: base.to_owned(),
                tip: tip.to_owned(),
                base_root: base_root.to_owned(),
                tip_root: tip_root.to_owned(),
            });
        }
        let shared = shared_top(&from_base, &from_tip);
        let from_base = &from_base[..from_base.len() - shared];
        let from_tip = &from_tip[..from_tip.len() - shared];
        let moving = from_base.iter().chain(from_tip).filter_map(|step| step.link.newest());
        let newest_ns = moving.min();
        let at_ns = newest_ns.map_or(query.at_ns, |newest_ns| newest_ns.min(query.at_ns));
        self.trust(from_base.iter().chain(from_tip), at_ns, query)?;
        let base_in_top = pose_in_top(from_base, at_ns, query.max_gap_ns)?;
        let tip_in_top = pose_in_top(from_tip, at_ns, query.max_gap_ns)?;
        Ok(Found { pose: base_in_top.inv_mul(&tip_in_top), at_ns, newest_ns })
    }

    /// Refuses steps that touch an edge which would have closed a circle from the moment that counts to the one asked for.
    fn trust<'a>(
        &self,
        steps: impl Iterator<Item = &'a Step<'a>>,
        at_ns: i64,
        query: &Query<'_>,
    ) -> Result<(), LookupError> {
        let reach_ns = query.max_gap_ns.max(AGREE_NS);
        let near = at_ns.saturating_sub(reach_ns)..=query.at_ns.saturating_add(reach_ns);
        for child in steps.flat_map(|step| [step.frame, step.parent]) {
            let Some((parent, stamp_ns)) = self.circles.get(child) else { continue };
            if stamp_ns.is_none_or(|stamp_ns| near.contains(&stamp_ns)) {
                let (parent, child) = (parent.clone(), child.to_owned());
                return Err(LookupError::Loop { parent, child });
            }
        }
        Ok(())
    }

    /// The root that a frame hangs on, and the frames on the way there, the frame itself first.
    fn up<'a>(
        &'a self,
        frame: &'a str,
        at_ns: i64,
    ) -> Result<(&'a str, Vec<Step<'a>>), LookupError> {
        let mut steps: Vec<Step<'a>> = Vec::new();
        let mut current = frame;
        while let Some((name, link)) = self.links.get_key_value(current) {
            if steps.iter().any(|step| step.frame == name.as_str()) {
                let child = steps.last().map_or(name.as_str(), |step| step.frame).to_owned();
                return Err(LookupError::Loop { parent: name.clone(), child });
            }
            if link.is_contested() {
                return Err(LookupError::Contested { frame: name.clone() });
            }
            let Some(parent) = link.parent(at_ns) else { break };
            steps.push(Step { frame: name, link, parent });
            current = parent.as_ref();
        }
        if steps.is_empty() && !self.is_parent(frame) {
            let known = self.links.keys().map(String::as_str);
            let nearest = nearest(frame, known).map(str::to_owned);
            return Err(LookupError::UnknownFrame { frame: frame.to_owned(), nearest });
        }
        Ok((current, steps))
    }

    fn is_parent(&self, frame: &str) -> bool {
        let parents = self.links.values().filter_map(|link| link.parent(i64::MAX));
        parents.map(Arc::as_ref).any(|parent: &str| parent == frame)
    }
}

fn two_parents(frame: &str, first: &str, second: &str) -> LookupError {
    let [frame, first, second] = [frame, first, second].map(str::to_owned);
    LookupError::TwoParents { frame, first, second }
}

/// How many steps at the end are the same.
fn shared_top(a: &[Step<'_>], b: &[Step<'_>]) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a.frame == b.frame).count()
}

/// The pose of the first frame in the parent of the last one.
fn pose_in_top(
    steps: &[Step<'_>],
    at_ns: i64,
    max_gap_ns: i64,
) -> Result<Isometry3<f64>, LookupError> {
    let mut pose = Isometry3::identity();
    for step in steps {
        let frame = || step.frame.to_owned();
        let in_parent = step.link.at(at_ns, step.parent, max_gap_ns).map_err(|gap| match gap {
            Gap::Before { by_ns } => LookupError::TooOld { frame: frame(), by_ns },
            Gap::After { by_ns } => LookupError::TooNew { frame: frame(), by_ns },
            Gap::Hole { of_ns } => LookupError::Hole { frame: frame(), of_ns, max_ns: max_gap_ns },
            Gap::OtherParent(other) => two_parents(step.frame, step.parent, &other),
            Gap::Jump(jump) => {
                LookupError::Jump { parent: step.parent.to_owned(), child: frame(), jump }
            }
        })?;
        pose = in_parent * pose;
    }
    Ok(pose)
}
