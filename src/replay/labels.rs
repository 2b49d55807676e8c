//! What the columns of action groups are called, and in which unit a joint is commanded.

use crate::node::settings::Settings;
use crate::node::trajectory::ActionJoints;

/// Joints by group, as the parameters give them.
#[derive(Clone, Debug, Default)]
pub struct Labels(Vec<ActionJoints>);

impl Labels {
    pub fn new(settings: &Settings) -> Self {
        Self(settings.action_joints.clone())
    }

    fn of(&self, group: &str) -> Option<&ActionJoints> {
        self.0.iter().find(|joints| joints.group == group)
    }

    /// The joint that a column moves; `None` where the parameters name none.
    pub fn joint(&self, group: &str, column: usize) -> Option<&str> {
        self.of(group)?.joints.get(column).map(String::as_str)
    }

    /// The unit of a group's joints as far as it is known.
    pub fn unit(&self, group: &str) -> &'static str {
        let known = self.of(group).is_some_and(|of| !of.joints.is_empty() && of.map.is_none());
        if known { "rad" } else { "" }
    }

    /// The name of a column.
    pub fn column(&self, group: &str, column: usize) -> String {
        self.joint(group, column).map_or_else(|| format!("{group}[{column}]"), str::to_owned)
    }

    /// A value of a group as its joint is commanded.
    pub fn commanded(&self, group: &str, value: f64) -> f64 {
        let map = self.of(group).and_then(|joints| joints.map);
        map.map_or(value, |map| map.apply(value))
    }
}
