//! `gr00t_blackhole play`: a bag onto live topics, stamped as if it happened now.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use r2r::{Context, Node, PublisherUntyped, QosProfile};
use tokio::time::{Instant, sleep, sleep_until};
use tracing::{info, warn};

use super::session::until_interrupted;
use crate::bag::{Bag, Topic, is_latched};
use crate::recording::playback::Playback;

const NODE_NAME: &str = "recording_player";
/// How often the player looks for subscribers.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// Longest wait and slowest rate that are taken: a day, and a thousandth.
const MAX_WAIT_S: f64 = 86_400.0;
const RATES: std::ops::RangeInclusive<f64> = 0.001..=1000.0;

/// Play a recording onto its topics, stamped as if it happened now.
///
/// Header stamps are moved to now for message types that begin with a header (by the schema in the bag) and for
/// transforms; all other bytes are sent as recorded.
#[derive(Debug, clap::Args)]
pub struct PlayArgs {
    /// Bag directory, or a single bag file.
    #[arg(long)]
    recording: PathBuf,
    /// Recorded seconds per second.
    #[arg(long, default_value_t = 1.0, value_parser = rate)]
    rate: f64,
    /// Begin again after the last message.
    #[arg(long = "loop")]
    again: bool,
    /// Wait this many seconds for a subscriber on every topic; 0 begins at once.
    #[arg(long, default_value_t = 30.0, value_parser = wait)]
    wait: f64,
}

/// A rate of playing.
///
/// # Errors
/// It is not in the range.
pub fn rate(text: &str) -> Result<f64, String> {
    within(text, RATES)
}

/// Seconds to wait.
///
/// # Errors
/// They are not in the range.
pub fn wait(text: &str) -> Result<f64, String> {
    within(text, 0.0..=MAX_WAIT_S)
}

fn within(text: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| range.contains(value));
    value.ok_or_else(|| format!("a number from {} to {} is needed", range.start(), range.end()))
}

/// Plays the recording to its end, or until SIGINT or SIGTERM.
///
/// # Errors
/// A bag that cannot be read, a message type that this build does not know, or no subscriber in time.
pub fn run(args: &PlayArgs) -> Result<()> {
    let bag = Bag::read(&args.recording)?;
    for note in &bag.notes {
        warn!("{note}");
    }
    if bag.messages.is_empty() {
        bail!("{} holds no message", args.recording.display());
    }
    let context = Context::create().context("cannot start ROS 2")?;
    let mut node = Node::create(context, NODE_NAME, "").context("cannot make a ROS 2 node")?;
    let publishers = publishers(&mut node, &bag.topics)?;
    let played = until_interrupted(async {
        if args.wait > 0.0 {
            wait_for_subscribers(&bag.topics, &publishers, Duration::from_secs_f64(args.wait))
                .await?;
        }
        play(&bag, &publishers, args).await
    })?;
    if played.is_none() {
        info!("interrupted");
    }
    Ok(())
}

/// A publisher for every topic.
///
/// # Errors
/// A message type that this build does not know.
pub fn publishers(node: &mut Node, topics: &[Topic]) -> Result<Vec<PublisherUntyped>> {
    let publisher = |topic: &Topic| {
        let qos = if is_latched(&topic.name) {
            QosProfile::default().transient_local()
        } else {
            QosProfile::default()
        };
        node.create_publisher_untyped(&topic.name, &topic.message_type, qos).with_context(|| {
            let (name, message_type) = (&topic.name, &topic.message_type);
            format!("cannot publish {name}: this build knows no type {message_type}")
        })
    };
    topics.iter().map(publisher).collect()
}

/// Waits until every topic has a subscriber. After `limit` one topic with a subscriber is enough.
///
/// # Errors
/// There is not even one.
pub async fn wait_for_subscribers(
    topics: &[Topic],
    publishers: &[PublisherUntyped],
    limit: Duration,
) -> Result<()> {
    let start = Instant::now();
    let mut told = false;
    loop {
        let mut without = Vec::new();
        for (topic, publisher) in topics.iter().zip(publishers) {
            if publisher.get_inter_process_subscription_count()? == 0 {
                without.push(topic.name.as_str());
            }
        }
        if without.is_empty() {
            return Ok(());
        }
        let names = without.join(", ");
        if start.elapsed() >= limit {
            let seconds = limit.as_secs_f64();
            if without.len() == publishers.len() {
                bail!(
                    "nobody has subscribed to {names} within {seconds} s: is the node running in this ROS domain?"
                );
            }
            warn!("playing without a subscriber on {names} after {seconds} s");
            return Ok(());
        }
        if !told {
            info!("waiting for subscribers on {names}");
            told = true;
        }
        sleep(LOOK_INTERVAL).await;
    }
}

async fn play(bag: &Bag, publishers: &[PublisherUntyped], args: &PlayArgs) -> Result<()> {
    let seconds = bag.duration().as_secs_f64();
    info!("playing {} messages, {seconds:.1} s, at rate {}", bag.messages.len(), args.rate);
    loop {
        let start = Instant::now();
        let start_ns = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        let playback = Playback::new(bag, i64::try_from(start_ns)?, args.rate);
        for message in &bag.messages {
            sleep_until(start + playback.due(message)).await;
            let topic = &bag.topics[message.topic].name;
            match playback.restamped(bag, message) {
                Ok(data) => publishers[message.topic].publish_raw(&data)?,
                Err(error) => warn!("a message of {topic} is left out: {error}"),
            }
        }
        if !args.again {
            info!("played to the end");
            return Ok(());
        }
        sleep_until(start + playback.period(bag)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_waits_outside_of_their_range_are_refused() {
        assert_eq!(rate("0.5"), Ok(0.5));
        for text in ["0", "-1", "nan", "inf", "fast", "1e9"] {
            assert!(rate(text).unwrap_err().contains("0.001 to 1000"), "{text}");
        }
        assert_eq!(wait("0"), Ok(0.0));
        assert!(wait("-0.1").is_err());
    }
}
