//! The task that looks at the graph while the node is active.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use r2r::Node;
use tracing::warn;

use super::super::core::Core;
use super::super::runtime::{Shared, locked};
use super::super::spin::NodeHandle;
use super::namesakes::{self, Namesakes};
use super::watch::{Endpoint, Sight, Watch};
use super::{InputFindings, Watched};

/// Time between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// Every node with parameters publishes this topic, by which its name is seen.
pub const PARAMETER_EVENTS: &str = "/parameter_events";

/// How rmw calls a node that it has not been told the name of.
const UNKNOWN_NODE: &str = "_NODE_NAME_UNKNOWN_";

/// What the last look at the graph has found, per topic; nothing while the node is not active.
#[derive(Debug, Default)]
pub struct GraphFindings(Mutex<Vec<InputFindings>>);

impl GraphFindings {
    pub fn findings(&self) -> Vec<InputFindings> {
        locked(&self.0).clone()
    }

    /// After the last look.
    pub fn clear(&self) {
        locked(&self.0).clear();
    }
}

/// A subscription to watch.
pub struct Source {
    pub watched: Watched,
    /// Messages that have come.
    pub received: Arc<AtomicU64>,
    /// Its number, if it is a source of states.
    pub state: Option<usize>,
}

/// Looks at the graph again and again, tells what is wrong there, and tells the gates who publishes states.
pub async fn watch(shared: Arc<Shared>, node: NodeHandle, sources: Vec<Source>) {
    let topics: Arc<[String]> = sources.iter().map(|source| source.watched.topic.clone()).collect();
    let mut watch = Watch::new(sources.iter().map(|source| source.watched.clone()).collect());
    loop {
        let asked = topics.clone();
        let ask =
            move |node: &mut Node| asked.iter().map(|topic| publishers(node, topic)).collect();
        let Ok(seen) = node.ask::<Vec<_>>(ask).await else { return };
        let sight = |(publishers, source): (_, &Source)| Sight {
            publishers,
            received: source.received.load(Ordering::Relaxed),
        };
        let sights = seen.into_iter().zip(&sources).map(sight).collect();
        let (findings, warnings) = watch.look(Instant::now(), sights);
        for warning in warnings {
            warn!("{warning}");
        }
        for (source, found) in sources.iter().zip(&findings) {
            if let Some(number) = source.state {
                locked(&shared.sensors).note_publishers(number, found.publishers.clone());
            }
        }
        *locked(&shared.graph.0) = findings;
        tokio::time::sleep(PERIOD).await;
    }
}

/// Looks for other nodes of this node's name, in every state of its life, and tells of them.
pub async fn watch_name(core: Arc<Core>, node: NodeHandle) {
    let mut namesakes = Namesakes::default();
    loop {
        let ask = |node: &mut Node| publishers(node, PARAMETER_EVENTS);
        let Ok(seen) = node.ask(ask).await else { return };
        let has_name = |other: &&Endpoint| other.node.as_ref() == Some(&core.node_name);
        let nodes = seen.iter().filter(has_name).count();
        let tell = namesakes.look(Instant::now(), nodes);
        let others = namesakes.others();
        core.namesakes.store(others, Ordering::Relaxed);
        if tell {
            warn!("{}", namesakes::sentence(&core.node_name, others));
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// The full name of a node on the graph; `None` where rmw has not been told it.
pub fn full_name(namespace: &str, name: &str) -> Option<String> {
    let known = name != UNKNOWN_NODE;
    known.then(|| format!("{}/{name}", namespace.trim_end_matches('/')))
}

/// The publishers of a topic; none where the graph cannot be asked.
fn publishers(node: &Node, topic: &str) -> Vec<Endpoint> {
    let found = node.get_publishers_info_by_topic(topic, false).unwrap_or_default();
    found
        .into_iter()
        .map(|info| Endpoint {
            id: info.endpoint_gid.to_vec(),
            node: full_name(&info.node_namespace, &info.node_name),
            message_type: info.topic_type,
            offered: (&info.qos_profile).into(),
        })
        .collect()
}
