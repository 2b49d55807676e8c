//! Who publishes on the topics that the node reads, and why nothing comes from whom.

pub mod namesakes;
#[cfg(feature = "ros")]
mod task;
mod watch;

use std::fmt;

use super::qos::{Policy, Profile};

#[cfg(feature = "ros")]
pub use task::{GraphFindings, PARAMETER_EVENTS, Source, full_name, watch, watch_name};
pub use watch::{Endpoint, NAMELESS, SILENCE, Sight, Watch};

/// A topic that the node reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Such as `camera 'ego_view'`.
    pub input: String,
    /// On the graph, after remapping.
    pub topic: String,
    pub message_type: String,
    /// The parameter that chooses another type; empty where there is none.
    pub type_parameter: String,
    pub requested: Profile,
    /// It may say something once and never again, as `/tf_static`.
    pub latched: bool,
}

/// What a look at the graph has found out about one topic.
#[derive(Clone, Debug, PartialEq)]
pub struct InputFindings {
    pub input: String,
    pub topic: String,
    /// Nodes whose messages can arrive, one entry per publisher.
    pub publishers: Vec<String>,
    pub wrong_type: Vec<WrongType>,
    pub incompatible: Vec<Incompatible>,
    /// There are publishers, but nothing has come from them for [`SILENCE`].
    pub silent: bool,
}

/// A publisher of another message type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongType {
    pub node: String,
    pub message_type: String,
    /// The type that is read.
    pub read: String,
    /// See [`Watched::type_parameter`].
    pub parameter: String,
}

/// As a sentence with the fix.
impl fmt::Display for WrongType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, message_type, read, parameter } = self;
        write!(f, "{node} publishes {message_type} there, but {read} is read; none of it arrives")?;
        match parameter.as_str() {
            "" => Ok(()),
            parameter => write!(f, "; parameter `{parameter}` says which type is read"),
        }
    }
}

/// A publisher that offers less than the node asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incompatible {
    pub node: String,
    pub offered: Profile,
    pub requested: Profile,
    /// Where they differ; at least one.
    pub policies: Vec<Policy>,
}

impl Incompatible {
    /// As a sentence with the fix, which is about this topic.
    pub fn sentence(&self, topic: &str) -> String {
        let Self { node, offered, requested, policies } = self;
        let names: Vec<String> = policies.iter().map(Policy::to_string).collect();
        let fixes: Vec<String> = policies.iter().map(|policy| policy.fix(topic, offered)).collect();
        format!(
            "{node} publishes there with incompatible {} and none of it arrives: it offers ({offered}), this node asks \
             for ({requested}); {}",
            names.join(" and "),
            fixes.join(", ")
        )
    }
}
