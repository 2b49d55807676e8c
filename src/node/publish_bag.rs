//! `gr00t_blackhole replay --publish`: a bag onto its topics as it was recorded, with its time on `/clock`.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use r2r::rosgraph_msgs::msg::Clock;
use r2r::{Context, Node, Publisher, QosProfile};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

use super::play::{publishers, wait_for_subscribers};
use super::runtime::time_message;
use super::session::until_interrupted;
use crate::bag::{BagReader, Topic};

const NODE_NAME: &str = "recording_publisher";
const CLOCK_TOPIC: &str = "/clock";
const CLOCK_TYPE: &str = "rosgraph_msgs/msg/Clock";
/// Longest time between two messages on `/clock`, on the wall clock.
const TICK: Duration = Duration::from_millis(10);

/// From the last message to the end.
const LINGER: Duration = Duration::from_millis(500);

/// How long is waited for subscribers, where nothing else is said.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// How a bag is published.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Recorded seconds per second.
    pub factor: f64,
    /// How long to wait for a subscriber on every topic; 0 begins at once.
    pub wait: Duration,
}

/// Publishes every message of the bag, byte for byte, and recorded time on `/clock`, unless the bag has a `/clock` of its
/// own; until its end, or until SIGINT or SIGTERM. Nodes that listen need `use_sim_time`.
///
/// # Errors
/// A bag that cannot be read, a message type that this build does not know, or no subscriber in time.
pub fn run(path: &Path, pace: Pace) -> Result<()> {
    let bag = BagReader::open(path)?;
    bag.notes().iter().for_each(|note| warn!("{note}"));
    let Some((first_ns, _)) = bag.span_ns() else { bail!("{} holds no message", path.display()) };
    let context = Context::create().context("cannot start ROS 2")?;
    let mut node = Node::create(context, NODE_NAME, "").context("cannot make a ROS 2 node")?;
    let publishers = publishers(&mut node, bag.topics())?;
    let has_clock = |topic: &Topic| topic.name == CLOCK_TOPIC && topic.message_type == CLOCK_TYPE;
    let clock = match bag.topics().iter().any(has_clock) {
        true => None,
        false => Some(node.create_publisher::<Clock>(CLOCK_TOPIC, QosProfile::default())?),
    };
    let published = until_interrupted(async {
        if !pace.wait.is_zero() {
            wait_for_subscribers(bag.topics(), &publishers, pace.wait).await?;
        }
        let seconds = bag.duration().as_secs_f64();
        info!("publishing {seconds:.1} s of recorded time, {} times as fast", pace.factor);
        let mut time =
            Time { clock, first_ns, start: Instant::now(), factor: pace.factor, told: None };
        let mut messages = bag.messages(|_| true)?;
        for message in messages.by_ref() {
            let message = message?;
            time.pass_until(message.log_time_ns).await?;
            publishers[message.topic].publish_raw(&message.data)?;
        }
        // What is on its way would be lost with its publisher.
        sleep(LINGER).await;
        messages.notes().iter().for_each(|note| warn!("{note}"));
        info!("published to the end");
        Ok(())
    })?;
    if published.is_none() {
        info!("interrupted");
    }
    Ok(())
}

/// Recorded time as it passes.
struct Time {
    /// `None` where the bag tells the time itself.
    clock: Option<Publisher<Clock>>,
    first_ns: u64,
    start: Instant,
    factor: f64,
    /// When the clock was told last.
    told: Option<Instant>,
}

impl Time {
    /// When recorded time `at_ns` comes.
    fn due(&self, at_ns: u64) -> Instant {
        let recorded = Duration::from_nanos(at_ns.saturating_sub(self.first_ns));
        self.start + recorded.div_f64(self.factor)
    }

    /// Waits until recorded time `at_ns` and tells it, and all the while the time that passes.
    async fn pass_until(&mut self, at_ns: u64) -> Result<()> {
        let due = self.due(at_ns);
        while let Some(tick) = self.told.map(|told| told + TICK).filter(|tick| *tick < due) {
            sleep_until(tick).await;
            let passed = (tick - self.start).mul_f64(self.factor);
            self.tell(self.first_ns + passed.as_nanos() as u64, tick)?;
        }
        sleep_until(due).await;
        self.tell(at_ns, due)
    }

    fn tell(&mut self, at_ns: u64, now: Instant) -> Result<()> {
        self.told = Some(now);
        if let Some(clock) = &self.clock {
            let at_ns = i64::try_from(at_ns).context("a time of after 2262")?;
            clock.publish(&Clock { clock: time_message(at_ns) })?;
        }
        Ok(())
    }
}
