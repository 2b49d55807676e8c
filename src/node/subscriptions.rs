//! The node's subscriptions, one task per topic, and one that watches who publishes there.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use futures::{Stream, StreamExt};
use r2r::Node;
use tokio::task::JoinHandle;
use tracing::info;

use super::graph::{self, Source, Watched};
use super::inputs;
use super::messages::TfMessage;
use super::requests::queued;
use super::runtime::Shared;
use super::sensors::transform_name;
use super::spin::NodeHandle;
use super::topics::Topic;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The tasks that read the topics; they end when this is dropped, and rcl's subscriptions with them.
pub struct Subscriptions {
    tasks: Vec<JoinHandle<()>>,
    shared: Arc<Shared>,
}

impl Subscriptions {
    /// Subscribes to every topic that the policy needs.
    ///
    /// # Errors
    /// What ROS refuses, such as the name of a topic.
    pub async fn new(node: &NodeHandle, shared: &Arc<Shared>) -> Result<Self> {
        let (known, spinner) = (shared.clone(), node.clone());
        let (mut tasks, sources) =
            node.ask(move |node| subscribe(node, &spinner, &known)).await??;
        tasks.push(Box::pin(graph::watch(shared.clone(), node.clone(), sources)));
        Ok(Self { tasks: tasks.into_iter().map(tokio::spawn).collect(), shared: shared.clone() })
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.shared.graph.clear();
    }
}

fn subscribe(
    node: &mut Node,
    spinner: &NodeHandle,
    shared: &Arc<Shared>,
) -> Result<(Vec<Task>, Vec<Source>)> {
    let mut tasks: Vec<Task> = Vec::new();
    let mut sources = Vec::new();
    let cameras = shared.settings.cameras.iter().zip(&shared.topics.cameras);
    for (number, (camera, topic)) in cameras.enumerate() {
        let input = format!("camera '{}'", camera.key);
        let message_type = camera.transport.message_type();
        let mut source = source(&input, topic, message_type);
        source.watched.type_parameter = format!("camera.{}.transport", camera.key);
        let messages = counted(node, topic, &source)
            .with_context(|| format!("cannot subscribe to '{}' of {input}", camera.topic))?;
        info!("{input} on {} ({message_type})", topic.name);
        tasks.push(Box::pin(inputs::read_camera(shared.clone(), number, messages)));
        sources.push(source);
    }
    let states = shared.settings.states.iter().zip(&shared.topics.states);
    for (number, (state, topic)) in states.enumerate() {
        let groups = state.reader.groups();
        let input = format!("state {}", groups.join(", "));
        let message_type = state.reader.message_type();
        let mut source = source(&input, topic, message_type);
        source.state = Some(number);
        let first = groups.first().copied().unwrap_or_default();
        source.watched.type_parameter = format!("state.{first}.source");
        let messages = counted(node, topic, &source)
            .with_context(|| format!("cannot subscribe to {input} on '{}'", state.topic))?;
        info!("{input} on {} ({message_type})", topic.name);
        for group in groups {
            if let Some(map) = state.reader.map(group) {
                let ([first, second], [to_first, to_second]) = (map.from(), map.to());
                info!(
                    "state {group}: {first} is {to_first} for the policy, {second} is {to_second}"
                );
            }
        }
        tasks.push(Box::pin(inputs::read_states(shared.clone(), number, messages)));
        sources.push(source);
    }
    subscribe_to_transforms(node, spinner, shared, &mut tasks, &mut sources)?;
    Ok((tasks, sources))
}

/// `/tf` and `/tf_static`, if a state group needs them.
fn subscribe_to_transforms(
    node: &mut Node,
    spinner: &NodeHandle,
    shared: &Arc<Shared>,
    tasks: &mut Vec<Task>,
    sources: &mut Vec<Source>,
) -> Result<()> {
    let Some([moving, fixed]) = &shared.topics.transforms else { return Ok(()) };
    for (name, is_fixed, topic) in [("/tf", false, moving), ("/tf_static", true, fixed)] {
        let mut source = source("transforms", topic, TfMessage::TYPE);
        source.watched.latched = is_fixed;
        let messages = counted(node, topic, &source).with_context(|| {
            format!("cannot subscribe to {name}; is the package tf2_msgs installed?")
        })?;
        // A transform that is said once and for all must not get lost among those of others.
        let messages = queued(messages, spinner, name);
        tasks.push(Box::pin(inputs::read_transforms(shared.clone(), name, is_fixed, messages)));
        sources.push(source);
    }
    for wanted in &shared.settings.transforms {
        info!("state {} from {} ({})", wanted.group, transform_name(wanted), TfMessage::TYPE);
    }
    Ok(())
}

/// What is watched of a topic.
fn source(input: &str, topic: &Topic, message_type: &str) -> Source {
    Source {
        watched: Watched {
            input: input.to_owned(),
            topic: topic.name.clone(),
            message_type: message_type.to_owned(),
            type_parameter: String::new(),
            requested: topic.qos.clone(),
            latched: false,
        },
        received: Arc::new(AtomicU64::new(0)),
        state: None,
    }
}

/// The messages of a topic, which `source` counts.
fn counted(
    node: &mut Node,
    topic: &Topic,
    source: &Source,
) -> r2r::Result<impl Stream<Item = Vec<u8>> + Unpin + Send + use<>> {
    let message_type = &source.watched.message_type;
    let messages = node.subscribe_raw(&topic.given, message_type, (&topic.qos).into())?;
    let received = source.received.clone();
    Ok(messages.inspect(move |_| {
        received.fetch_add(1, Ordering::Relaxed);
    }))
}
