//! The topics of the node with their quality of service, which the parameters `qos_overrides.*` can change.
//!
//! The convention is rclcpp's: `qos_overrides.<topic>.<subscription or publisher>.<policy>`, with the topic's full name
//! after remapping.

use super::params::{ParamErrors, Params, Scope, TopicQos, Value};
use super::qos::{Durability, History, Profile, Reliability};
use super::remap::Remaps;
use super::settings::Settings;

/// One topic, as a subscription or as a publisher of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    /// [`Scope::Subscription`] or [`Scope::Publisher`].
    scope: Scope,
    /// Before remapping, which is rcl's.
    pub given: String,
    /// On the graph.
    pub name: String,
    pub qos: Profile,
}

/// All topics of a configured policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topics {
    /// As in [`Settings::cameras`].
    pub cameras: Vec<Topic>,
    /// As in [`Settings::states`].
    pub states: Vec<Topic>,
    /// `/tf` and `/tf_static`, if a state group needs them.
    pub transforms: Option<[Topic; 2]>,
    pub chunk: Topic,
    pub trajectory: Topic,
    /// As in [`Settings::poses`].
    pub poses: Vec<Topic>,
}

impl Topics {
    /// The node's own profiles: sensor data in, as tf2's listener for transforms; reliable out, and the chunk latched, so
    /// that a late subscriber gets the last one. Trajectories and poses are not latched: a controller that starts later
    /// must not get an old motion.
    pub fn new(settings: &Settings, remaps: &Remaps) -> Self {
        let topic = |scope, given: &str, qos| Topic {
            scope,
            given: given.to_owned(),
            name: remaps.remapped(given),
            qos,
        };
        let sensor = |given: &str| topic(Scope::Subscription, given, Profile::SENSOR_DATA);
        let reliable = |given: &str| topic(Scope::Publisher, given, Profile::reliable(1));
        let transforms = || {
            [("/tf", Profile::reliable(100)), ("/tf_static", Profile::latched(100))]
                .map(|(given, qos)| topic(Scope::Subscription, given, qos))
        };
        Self {
            cameras: settings.cameras.iter().map(|camera| sensor(&camera.topic)).collect(),
            states: settings.states.iter().map(|state| sensor(&state.topic)).collect(),
            transforms: (!settings.transforms.is_empty()).then(transforms),
            chunk: topic(Scope::Publisher, "~/action_chunk", Profile::latched(1)),
            trajectory: reliable("~/joint_trajectory"),
            poses: settings.poses.iter().map(|pose| reliable(&pose.topic)).collect(),
        }
    }

    /// As [`Topics::new`], with what `params` say otherwise; declares the parameters of the topics.
    ///
    /// # Errors
    /// Overrides of topics that the node does not have, or whose value does not fit.
    pub fn overridden(
        settings: &Settings,
        remaps: &Remaps,
        params: &mut Params,
    ) -> Result<Self, ParamErrors> {
        let mut topics = Self::new(settings, remaps);
        let parameters: Vec<TopicQos> = topics.iter().map(Topic::parameters).collect();
        params.declare_topics(&parameters)?;
        topics.iter_mut().for_each(|topic| topic.apply_overrides(params));
        Ok(topics)
    }

    fn iter(&self) -> impl Iterator<Item = &Topic> {
        let inputs =
            self.cameras.iter().chain(&self.states).chain(self.transforms.iter().flatten());
        inputs.chain([&self.chunk, &self.trajectory]).chain(&self.poses)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Topic> {
        let transforms = self.transforms.iter_mut().flatten();
        let inputs = self.cameras.iter_mut().chain(&mut self.states).chain(transforms);
        inputs.chain([&mut self.chunk, &mut self.trajectory]).chain(&mut self.poses)
    }
}

impl Topic {
    fn parameters(&self) -> TopicQos {
        let Profile { reliability, durability, history, depth, .. } = &self.qos;
        let text = |name: &str| Value::Text(name.to_owned());
        TopicQos {
            scope: self.scope,
            topic: self.name.clone(),
            own: [
                ("reliability", text(reliability.name())),
                ("durability", text(durability.name())),
                ("history", text(history.name())),
                // The node's own depths are small.
                ("depth", Value::Integer(*depth as i64)),
            ],
        }
    }

    fn apply_overrides(&mut self, params: &Params) {
        let name = |policy: &str| self.parameter(policy);
        let reliability = Reliability::from_name(params.text(&name("reliability")));
        let durability = Durability::from_name(params.text(&name("durability")));
        let history = History::from_name(params.text(&name("history")));
        let depth = usize::try_from(params.integer(&name("depth"))).ok();
        let own = self.qos.clone();
        self.qos = Profile {
            reliability: reliability.unwrap_or(own.reliability),
            durability: durability.unwrap_or(own.durability),
            history: history.unwrap_or(own.history),
            depth: depth.unwrap_or(own.depth),
            ..own
        };
    }

    /// The parameter that overrides a policy of this topic.
    pub fn parameter(&self, policy: &str) -> String {
        let end = if self.scope == Scope::Publisher { "publisher" } else { "subscription" };
        format!("qos_overrides.{}.{end}.{policy}", self.name)
    }
}
