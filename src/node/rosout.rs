//! The node's log on `/rosout`, where rqt_console and others look for it; the log on standard error stays.
//!
//! Who logs something never waits: lines go through a bounded queue to a task that publishes them, and what finds it
//! full is counted and told later. The task itself logs nothing, or its lines would come back to it.

use std::fmt::{Debug, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use r2r::rcl_interfaces::msg::Log;
use r2r::{Node, Publisher, QosProfile};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::param_services::Task;
use super::qos::Profile;
use super::runtime::time_message;
use crate::log::OWN_TARGET;

const TOPIC: &str = "/rosout";
/// Messages that a late subscriber gets at most, and for how long: rcl's own choice for this topic.
const KEPT: usize = 1000;
const LIFESPAN: Duration = Duration::from_secs(10);
/// Lines that can wait to be published.
const WAITING: usize = 1000;

/// Where lines go once there is a node.
static QUEUE: OnceLock<Sender<Log>> = OnceLock::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Copies the lines of this program into the queue.
pub struct Copies;

impl<S: Subscriber> Layer<S> for Copies {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Some(queue) = QUEUE.get() else { return };
        if !event.metadata().target().starts_with(OWN_TARGET) {
            return;
        }
        if queue.try_send(line(event)).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Publishes the log from now on, under the name of the node of this full name.
///
/// # Errors
/// What rcl reports.
pub fn publish(node: &mut Node, full_name: &str) -> r2r::Result<Task> {
    let qos = QosProfile::from(&Profile::latched(KEPT)).lifespan(LIFESPAN);
    let publisher = node.create_publisher(TOPIC, qos)?;
    let (queue, lines) = channel(WAITING);
    // There is one node in a process.
    let _ = QUEUE.set(queue);
    Ok(Box::pin(pass_on(lines, publisher, logger_name(full_name))))
}

async fn pass_on(mut lines: Receiver<Log>, publisher: Publisher<Log>, name: String) {
    while let Some(line) = lines.recv().await {
        let dropped = DROPPED.swap(0, Ordering::Relaxed);
        let told = (dropped > 0).then(|| dropped_lines(dropped));
        for line in told.into_iter().chain([line]) {
            // Nobody is left to tell.
            let _ = publisher.publish(&Log { name: name.clone(), ..line });
        }
    }
}

/// The name that rcl gives the logger of a node: `left.policy` for `/left/policy`.
fn logger_name(full_name: &str) -> String {
    full_name.trim_start_matches('/').replace('/', ".")
}

fn line(event: &Event<'_>) -> Log {
    let metadata = event.metadata();
    let mut text = Text::default();
    event.record(&mut text);
    Log {
        stamp: time_message(now_ns()),
        level: number(*metadata.level()),
        msg: format!("{}{}", text.message, text.fields),
        file: metadata.file().unwrap_or_default().to_owned(),
        function: metadata.module_path().unwrap_or_default().to_owned(),
        line: metadata.line().unwrap_or_default(),
        ..Default::default()
    }
}

fn dropped_lines(count: u64) -> Log {
    Log {
        stamp: time_message(now_ns()),
        level: Log::WARN as u8,
        msg: format!(
            "{count} lines of the log are not here, they came too fast; they are on standard error"
        ),
        file: file!().to_owned(),
        function: module_path!().to_owned(),
        line: line!(),
        ..Default::default()
    }
}

fn number(level: Level) -> u8 {
    match level {
        Level::ERROR => Log::ERROR as u8,
        Level::WARN => Log::WARN as u8,
        Level::INFO => Log::INFO as u8,
        _ => Log::DEBUG as u8,
    }
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// The message of an event, and what else it holds.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[test]
    fn loggers_are_named_as_rcl_does() {
        assert_eq!(logger_name("/policy"), "policy");
        assert_eq!(logger_name("/left/arm/policy"), "left.arm.policy");
    }

    #[test]
    fn own_lines_are_copied_and_never_wait() {
        let (queue, mut lines) = channel(2);
        QUEUE.set(queue).expect("the only queue of this process");
        let subscriber = tracing_subscriber::registry().with(Copies);
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(count = 3, "a {}", "word");
            tracing::info!(target: "elsewhere", "not ours");
            tracing::debug!("small");
            tracing::error!("one too many");
        });
        let first = lines.try_recv().expect("a line");
        assert_eq!((first.level, first.msg.as_str()), (Log::WARN as u8, "a word count=3"));
        assert_eq!(first.file, file!());
        assert!(first.line > 0 && first.stamp.sec > 0);
        assert_eq!(lines.try_recv().expect("a line").level, Log::DEBUG as u8);
        assert!(lines.try_recv().is_err());
        assert_eq!(DROPPED.load(Ordering::Relaxed), 1);
    }
}
