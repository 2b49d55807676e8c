//! The transforms of `/tf` and `/tf_static`, and the pose of one frame in another at a moment.
//!
//! What a lookup answers depends on the set of transforms and on the moment alone, never on the order of their arrival.

mod link;
mod tree;

use std::collections::BTreeMap;

use nalgebra::Isometry3;

pub use tree::{Found, LookupError, Query};

use link::Link;

/// Frames beyond this number are refused; a humanoid has about a hundred.
pub const MAX_FRAMES: usize = 1024;

/// Every frame's transform to its parent: for moving ones as far back as `link::KEEP_NS`.
#[derive(Debug, Default)]
pub struct Transforms {
    /// By the name of the child, without a slash in front.
    links: BTreeMap<String, Link>,
}

/// Why a transform was not taken in.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TransformRefused {
    #[error("a transform with an empty frame name (parent '{parent}', child '{child}')")]
    EmptyName { parent: String, child: String },
    #[error("frame '{child}' is its own parent")]
    OwnParent { child: String },
    #[error("frame '{child}' would be number {}; at most {MAX_FRAMES} are kept", MAX_FRAMES + 1)]
    TooMany { child: String },
    #[error("frame '{child}' has two different transforms at {:.3} s: there are two publishers of it", *stamp_ns as f64 / 1e9)]
    Contradiction { child: String, stamp_ns: i64 },
    #[error("the transform of frame '{child}' is {:.3} s older than its newest one", *behind_ns as f64 / 1e9)]
    Late { child: String, behind_ns: i64 },
}

impl Transforms {
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
        self.link(parent, child)?.insert(stamp_ns, bare(parent), bare(child), pose, replace)
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
        self.link(parent, child)?.fix(stamp_ns, bare(parent), pose);
        Ok(())
    }

    /// Forgets all that moves; what is fixed holds for any clock.
    pub fn clear_moving(&mut self) {
        self.links.values_mut().for_each(Link::clear_moving);
        self.links.retain(|_, link| !link.is_empty());
    }

    fn link(&mut self, parent: &str, child: &str) -> Result<&mut Link, TransformRefused> {
        let (parent, child) = (bare(parent), bare(child));
        if parent.is_empty() || child.is_empty() {
            let (parent, child) = (parent.to_owned(), child.to_owned());
            return Err(TransformRefused::EmptyName { parent, child });
        }
        if parent == child {
            return Err(TransformRefused::OwnParent { child: child.to_owned() });
        }
        if self.links.len() >= MAX_FRAMES && !self.links.contains_key(child) {
            return Err(TransformRefused::TooMany { child: child.to_owned() });
        }
        Ok(self.links.entry(child.to_owned()).or_default())
    }
}

/// Frame names of ROS 1 begin with a slash; tf2 takes it away.
fn bare(frame: &str) -> &str {
    frame.strip_prefix('/').unwrap_or(frame)
}

#[cfg(test)]
mod tests;
