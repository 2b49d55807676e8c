//! `gr00t_blackhole watch`: chunks from a live topic as tables, and all of them as one picture.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, bail};
use futures::{FutureExt, Stream, StreamExt};
use r2r::gr00t_blackhole::msg::ActionChunk;
use r2r::sensor_msgs::msg::JointState;
use r2r::{Context, Node, QosProfile};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::session::until_interrupted;
use super::view::{chunk_view, observed};
use crate::plot::{ChunkView, Observed, save_png, table};

const NODE_NAME: &str = "chunk_watcher";
/// How often the topics are looked at; adds at most this much to the ages that are shown.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);
/// While no chunk comes, the watcher says so this often.
const REMINDER: Duration = Duration::from_secs(10);
/// Joint states kept for the picture: at 1 kHz, those of ten minutes.
const MAX_OBSERVED: usize = 600_000;
const MAX_TIMEOUT_S: f64 = 86_400.0;

/// Show action chunks as they arrive, and draw them.
///
/// A table for each chunk, and at the end a picture of every dimension over time.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    /// Topic of gr00t_blackhole/msg/ActionChunk.
    #[arg(long, default_value = "/policy/action_chunk")]
    topic: String,
    /// Topic of sensor_msgs/msg/JointState that is drawn beside the chunks; empty for none.
    #[arg(long, default_value = "/joint_states")]
    joint_states: String,
    /// End after this many chunks.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    count: u32,
    /// Give up when the chunks have not come after this many seconds.
    #[arg(long, default_value_t = 60.0, value_parser = timeout)]
    timeout: f64,
    /// Write the picture here, as PNG.
    #[arg(long)]
    plot: Option<PathBuf>,
}

fn timeout(text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value| *value > 0.0 && *value <= MAX_TIMEOUT_S);
    value.ok_or_else(|| format!("a number above 0 and up to {MAX_TIMEOUT_S} is needed"))
}

/// What has been seen.
#[derive(Default)]
struct Seen {
    chunks: Vec<ChunkView>,
    observed: Vec<Observed>,
}

/// Shows chunks until there are enough, the time is over, or SIGINT or SIGTERM; then draws them.
///
/// # Errors
/// Fewer chunks than asked for in time (those that came are drawn all the same), or a picture that cannot be written.
pub fn run(args: &WatchArgs) -> Result<()> {
    let context = Context::create().context("cannot start ROS 2")?;
    let mut node = Node::create(context, NODE_NAME, "").context("cannot make a ROS 2 node")?;
    let mut seen = Seen::default();
    let watched = until_interrupted(watch(&mut node, args, &mut seen))?;
    if !seen.chunks.is_empty() {
        say(&summary(&seen.chunks))?;
        if let Some(path) = &args.plot {
            save_png(&seen.chunks, &seen.observed, path)?;
            say(&format!("plot: {}", path.display()))?;
        }
    }
    let (found, wanted) = (seen.chunks.len(), args.count);
    if watched.is_none() {
        info!("interrupted after {found} of {wanted} chunks");
    } else if found < wanted as usize {
        let (topic, seconds) = (&args.topic, args.timeout);
        bail!(
            "{found} of {wanted} chunks have come on {topic} within {seconds} s; the node's log says what it waits for"
        );
    }
    Ok(())
}

async fn watch(node: &mut Node, args: &WatchArgs, seen: &mut Seen) -> Result<()> {
    // As the node publishes: a late watcher gets the newest chunk at once.
    let latched = QosProfile::default().reliable().transient_local();
    let mut chunks = node
        .subscribe::<ActionChunk>(&args.topic, latched)
        .with_context(|| format!("cannot subscribe to {}", args.topic))?;
    let mut states: Box<dyn Stream<Item = JointState> + Unpin> = match args.joint_states.as_str() {
        "" => Box::new(futures::stream::pending()),
        topic => Box::new(
            node.subscribe::<JointState>(topic, QosProfile::sensor_data())
                .with_context(|| format!("cannot subscribe to {topic}"))?,
        ),
    };
    let start = Instant::now();
    let mut reminder = REMINDER;
    info!("waiting for chunks on {}", args.topic);
    while seen.chunks.len() < args.count as usize && start.elapsed().as_secs_f64() < args.timeout {
        node.spin_once(Duration::ZERO);
        while let Some(Some(state)) = states.next().now_or_never() {
            if seen.observed.len() < MAX_OBSERVED {
                seen.observed.extend(observed(&state));
            }
        }
        while let Some(Some(message)) = chunks.next().now_or_never() {
            if seen.chunks.len() < args.count as usize {
                show(&message, &mut seen.chunks)?;
            }
        }
        if seen.chunks.is_empty() && start.elapsed() > reminder {
            info!("no chunk yet after {} s", reminder.as_secs());
            reminder += REMINDER;
        }
        sleep(LOOK_INTERVAL).await;
    }
    Ok(())
}

/// A line on standard output, whose reader may have left.
fn say(text: &str) -> Result<()> {
    writeln!(std::io::stdout(), "{text}").context("cannot write to standard output")
}

fn show(message: &ActionChunk, chunks: &mut Vec<ChunkView>) -> Result<()> {
    match chunk_view(message, now_ns()) {
        Ok(view) => {
            let start_ns = chunks.first().map_or(view.stamp_ns, |first| first.stamp_ns);
            say(&table(&view, chunks.len() + 1, start_ns))?;
            chunks.push(view);
        }
        Err(error) => warn!("a chunk is left out: {error}"),
    }
    Ok(())
}

fn now_ns() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX)
}

fn summary(chunks: &[ChunkView]) -> String {
    let count = chunks.len();
    let mut ages: Vec<_> = chunks.iter().filter_map(|chunk| chunk.age).collect();
    ages.sort();
    let milliseconds = |age: &Duration| age.as_secs_f64() * 1e3;
    let mut parts = vec![format!("{count} chunk{}", if count == 1 { "" } else { "s" })];
    if let (Some(first), Some(last), 2..) = (chunks.first(), chunks.last(), count) {
        let span = last.stamp_ns.saturating_sub(first.stamp_ns) as f64 * 1e-9;
        parts.push(format!("one observation every {:.3} s", span / (count - 1) as f64));
    }
    if let (Some(middle), Some(last)) = (ages.get(ages.len() / 2), ages.last()) {
        parts.push(format!(
            "from observation to arrival {:.0} ms (median), {:.0} ms (longest)",
            milliseconds(middle),
            milliseconds(last)
        ));
    }
    parts.join(", ")
}
