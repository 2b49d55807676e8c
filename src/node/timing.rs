//! `~/timing`: the times of every chunk, and what is measured of a chunk when it is published.

use std::time::{Duration, Instant};

use r2r::gr00t_blackhole::msg::Timing as TimingMessage;
use r2r::std_msgs::msg::Header;
use r2r::{Node, Publisher, QosProfile};
use tracing::warn;

use super::publish::Ticket;
use super::runtime::{Shared, time_message};
use super::stats::{ChunkTimes, Commands};
use super::worker::Span;
use crate::contract::ActionChunk;

const MS_PER_S: f64 = 1e3;
const NS_PER_MS: f64 = 1e6;

/// See the module.
pub struct Timing {
    topic: Publisher<TimingMessage>,
}

impl Timing {
    pub fn new(node: &mut Node) -> r2r::Result<Self> {
        Ok(Self { topic: node.create_publisher("~/timing", QosProfile::default())? })
    }

    /// Measures a chunk that has been published this moment, and tells its times.
    pub fn published(&self, shared: &Shared, ticket: &Ticket, span: Span, chunk: &ActionChunk) {
        let times = times(shared, ticket, span, chunk);
        if let Err(error) = self.topic.publish(&message(chunk, &times)) {
            warn!("the times of a chunk could not be published: {error}");
        }
        let settings = &shared.settings;
        let commands =
            Commands::new(chunk, &settings.action_joints, &settings.poses, settings.dt_ns);
        let now = shared.clock.now();
        let mut stats = shared.monitor.engine();
        stats.chunk(&times, now.steady_ns);
        let seam = commands.and_then(|new| stats.seams.follow(ticket.goal, new, now.ros_ns));
        if seam.is_some_and(|seam| seam.stall_ns > 0) {
            stats.stalled(now.steady_ns);
        }
    }

    /// Takes the topic off the graph.
    pub fn destroy(self, node: &mut Node) {
        node.destroy_publisher(self.topic);
    }
}

/// The node's own part: taking in the newest frame, beginning, and publishing.
fn times(shared: &Shared, ticket: &Ticket, span: Span, chunk: &ActionChunk) -> ChunkTimes {
    let intake = shared.monitor.intake_of_newest_frame(&ticket.readings, &shared.settings);
    let begun_ns = shared.clock.steady_ns(span.began) - ticket.begin.steady_ns;
    let begin = Duration::from_nanos(u64::try_from(begun_ns).unwrap_or(0));
    let publication = Instant::now().saturating_duration_since(span.ended);
    ChunkTimes {
        stages: chunk.timings,
        node: intake.unwrap_or_default() + begin + publication,
        latency_ns: shared.clock.now().ros_ns.saturating_sub(chunk.stamp_ns),
    }
}

fn message(chunk: &ActionChunk, times: &ChunkTimes) -> TimingMessage {
    let ms = |time: Duration| time.as_secs_f64() * MS_PER_S;
    let stages = &times.stages;
    TimingMessage {
        header: Header { stamp: time_message(chunk.stamp_ns), frame_id: String::new() },
        encode_ms: ms(stages.encode),
        vision_ms: ms(stages.vision),
        llm_ms: ms(stages.llm),
        adapter_ms: ms(stages.adapter),
        denoise_ms: ms(stages.denoise),
        decode_ms: ms(stages.decode),
        predict_ms: ms(stages.total()),
        node_ms: ms(times.node),
        latency_ms: times.latency_ns as f64 / NS_PER_MS,
    }
}
