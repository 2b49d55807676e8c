//! Services and topics of which nothing is lost when much comes at once.
//!
//! The middleware keeps ten requests until they are taken, and r2r ten more until they are looked at, as it does with the
//! messages of a topic; either loses what is beyond, without a word to whoever sent it. So the middleware is asked to
//! keep more, and the thread that takes them empties r2r's queue after every take.

use futures::channel::mpsc::{Receiver, channel};
use futures::{FutureExt, Stream, StreamExt};
use r2r::{Node, QosProfile, ServiceRequest, WrappedServiceTypeSupport};
use tracing::warn;

use super::runtime::{Throttle, WARNING_PERIOD, and_more};
use super::spin::NodeHandle;

/// Requests or messages that may wait until they are worked on.
const WAITING: usize = 1000;

/// The requests of a service, a stream.
pub type Requests<S> = Receiver<ServiceRequest<S>>;

/// Creates a service.
///
/// # Errors
/// What rcl reports.
pub fn service<S>(node: &mut Node, spinner: &NodeHandle, name: &str) -> r2r::Result<Requests<S>>
where
    S: WrappedServiceTypeSupport + 'static,
{
    let qos = QosProfile::services_default().keep_last(WAITING);
    let taken = node.create_service::<S>(name, qos)?;
    Ok(queued(taken, spinner, name))
}

/// What r2r has taken from `source`, in a queue that is long enough for a burst.
pub fn queued<T: Send + 'static>(
    mut source: impl Stream<Item = T> + Unpin + Send + 'static,
    spinner: &NodeHandle,
    name: &str,
) -> Receiver<T> {
    let (mut queue, items) = channel(WAITING);
    let name = name.to_owned();
    let mut notes = Throttle::new(WARNING_PERIOD);
    spinner.after_every_take(move || {
        while let Some(taken) = source.next().now_or_never() {
            // The service, the topic or its reader is gone.
            let Some(item) = taken else { return false };
            match queue.try_send(item) {
                Err(error) if error.is_disconnected() => return false,
                Err(_) => {
                    if let Some(held_back) = notes.pass() {
                        let more = and_more(held_back);
                        warn!("{name}: what came is lost, since {WAITING} wait already{more}");
                    }
                }
                Ok(()) => {}
            }
        }
        !queue.is_closed()
    });
    items
}
