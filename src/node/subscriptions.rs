//! The node's subscriptions, one task per topic.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use r2r::{Node, QosProfile};
use tokio::task::JoinHandle;
use tracing::info;

use super::inputs;
use super::messages::TfMessage;
use super::runtime::Shared;
use super::sensors::transform_name;
use super::spin::NodeHandle;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The tasks that read the topics; they end when this is dropped, and rcl's subscriptions with them.
pub struct Subscriptions {
    tasks: Vec<JoinHandle<()>>,
}

impl Subscriptions {
    /// Subscribes to every topic that the policy needs.
    ///
    /// # Errors
    /// What ROS refuses, such as the name of a topic.
    pub async fn new(node: &NodeHandle, shared: &Arc<Shared>) -> Result<Self> {
        let known = shared.clone();
        let tasks = node.ask(move |node| subscribe(node, &known)).await??;
        Ok(Self { tasks: tasks.into_iter().map(tokio::spawn).collect() })
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn subscribe(node: &mut Node, shared: &Arc<Shared>) -> Result<Vec<Task>> {
    let mut tasks: Vec<Task> = Vec::new();
    for (number, camera) in shared.settings.cameras.iter().enumerate() {
        let message_type = camera.transport.message_type();
        let messages = node
            .subscribe_raw(&camera.topic, message_type, QosProfile::sensor_data())
            .with_context(|| {
            format!("cannot subscribe to '{}' of camera '{}'", camera.topic, camera.key)
        })?;
        info!("camera '{}' on {} ({message_type})", camera.key, camera.topic);
        tasks.push(Box::pin(inputs::read_camera(shared.clone(), number, messages)));
    }
    for (number, state) in shared.settings.states.iter().enumerate() {
        let groups = format!("state {}", state.reader.groups().join(", "));
        let message_type = state.reader.message_type();
        let messages = node
            .subscribe_raw(&state.topic, message_type, QosProfile::sensor_data())
            .with_context(|| format!("cannot subscribe to {} on '{}'", groups, state.topic))?;
        info!("{groups} on {} ({message_type})", state.topic);
        for group in state.reader.groups() {
            if let Some(map) = state.reader.map(group) {
                let ([first, second], [to_first, to_second]) = (map.from(), map.to());
                info!(
                    "state {group}: {first} is {to_first} for the policy, {second} is {to_second}"
                );
            }
        }
        tasks.push(Box::pin(inputs::read_states(shared.clone(), number, messages)));
    }
    subscribe_to_transforms(node, shared, &mut tasks)?;
    Ok(tasks)
}

/// `/tf` and `/tf_static`, if a state group needs them, with the QoS of tf2's own listener.
fn subscribe_to_transforms(
    node: &mut Node,
    shared: &Arc<Shared>,
    tasks: &mut Vec<Task>,
) -> Result<()> {
    if shared.settings.transforms.is_empty() {
        return Ok(());
    }
    let moving = QosProfile::default().keep_last(100);
    let fixed = QosProfile::default().keep_last(100).transient_local();
    for (topic, is_fixed, qos) in [("/tf", false, moving), ("/tf_static", true, fixed)] {
        let messages = node.subscribe_raw(topic, TfMessage::TYPE, qos).with_context(|| {
            format!("cannot subscribe to {topic}; is the package tf2_msgs installed?")
        })?;
        tasks.push(Box::pin(inputs::read_transforms(shared.clone(), topic, is_fixed, messages)));
    }
    for wanted in &shared.settings.transforms {
        info!("state {} from {} ({})", wanted.group, transform_name(wanted), TfMessage::TYPE);
    }
    Ok(())
}
