//! `~/debug/image`: what the policy saw when it made the last chunk, for those who look.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use r2r::sensor_msgs::msg::Image;
use r2r::std_msgs::msg::Header;
use r2r::{Node, Publisher, QosProfile};
use tracing::warn;

use super::runtime::{Shared, time_message};
use crate::contract::Observation;
use crate::encode::{Seen, Viewer, side_by_side};

/// See the module.
pub struct DebugImages {
    topic: Publisher<Image>,
    viewer: Viewer,
    /// A picture is being made.
    busy: Arc<AtomicBool>,
}

impl DebugImages {
    pub fn new(node: &mut Node, viewer: Viewer) -> r2r::Result<Self> {
        let topic = node.create_publisher("~/debug/image", QosProfile::sensor_data())?;
        Ok(Self { topic, viewer, busy: Arc::default() })
    }

    /// Publishes the pictures of an observation that a chunk was made from, if somebody looks and the last ones are
    /// out. Another thread makes them; the caller does not wait.
    pub fn show(&self, shared: &Arc<Shared>, observation: &Arc<Observation>) {
        let somebody_looks = self.topic.get_inter_process_subscription_count().unwrap_or(0) > 0;
        if !somebody_looks || self.busy.swap(true, Ordering::AcqRel) {
            return;
        }
        let (shared, observation) = (shared.clone(), observation.clone());
        let (topic, viewer, busy) = (self.topic.clone(), self.viewer.clone(), self.busy.clone());
        tokio::task::spawn_blocking(move || {
            let made = viewer(&observation);
            match made.map(|pictures| side_by_side(&pictures)) {
                Ok(Some(picture)) => {
                    shared.monitor.debug_images.fetch_add(1, Ordering::Relaxed);
                    if let Err(error) = topic.publish(&message(picture, observation.stamp_ns)) {
                        warn!("what the policy sees could not be published: {error}");
                    }
                }
                Ok(None) => {}
                Err(error) => warn!("what the policy sees cannot be shown: {error}"),
            }
            busy.store(false, Ordering::Release);
        });
    }

    /// Takes the topic off the graph.
    pub fn destroy(self, node: &mut Node) {
        node.destroy_publisher(self.topic);
    }
}

fn message(picture: Seen, stamp_ns: i64) -> Image {
    let Seen { width, height, rgb, .. } = picture;
    Image {
        header: Header { stamp: time_message(stamp_ns), frame_id: String::new() },
        height: height as u32,
        width: width as u32,
        encoding: "rgb8".to_owned(),
        is_bigendian: 0,
        step: 3 * width as u32,
        data: rgb,
    }
}
