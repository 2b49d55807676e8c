//! The topic.

use std::sync::Arc;
use std::time::Duration;

use r2r::diagnostic_msgs::msg::{DiagnosticArray, DiagnosticStatus, KeyValue};
use r2r::std_msgs::msg::Header;
use r2r::{Node, Publisher, QosProfile};
use tokio::time::MissedTickBehavior;
use tracing::warn;

use super::super::core::Core;
use super::super::lifecycle::Manager;
use super::super::runtime::{Throttle, WARNING_PERIOD, time_message};
use super::report;
use super::status::Status;

const TOPIC: &str = "/diagnostics";
const PERIOD: Duration = Duration::from_secs(1);

/// Says once a second how the node is, in every state of its life.
pub struct Diagnostics {
    topic: Publisher<DiagnosticArray>,
}

impl Diagnostics {
    pub fn new(node: &mut Node) -> r2r::Result<Self> {
        Ok(Self { topic: node.create_publisher(TOPIC, QosProfile::default())? })
    }

    /// Works until the node has ended.
    pub async fn run(self, core: Arc<Core>, manager: Arc<Manager>) {
        let mut ticks = tokio::time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut notes = Throttle::new(WARNING_PERIOD);
        loop {
            ticks.tick().await;
            let statuses = report::report(&core, manager.machine().state());
            let published = self.topic.publish(&message(&core, statuses));
            if let Err(error) = published
                && notes.pass().is_some()
            {
                warn!("the diagnostics could not be published: {error}");
            }
        }
    }
}

fn message(core: &Core, statuses: Vec<Status>) -> DiagnosticArray {
    let hardware_id = core.configured().map(|shared| shared.embodiment.tag.clone());
    let hardware_id = hardware_id.unwrap_or_default();
    let status = |status: Status| DiagnosticStatus {
        level: status.level as u8,
        name: status.name,
        message: status.message,
        hardware_id: hardware_id.clone(),
        values: status.values.into_iter().map(|(key, value)| KeyValue { key, value }).collect(),
    };
    DiagnosticArray {
        header: Header { stamp: time_message(core.clock.now().ros_ns), frame_id: String::new() },
        status: statuses.into_iter().map(status).collect(),
    }
}
