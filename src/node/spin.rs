//! The thread that owns the ROS node: it waits for messages, and in between does to the node what others ask for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use r2r::Node;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// How long one wait for messages lasts, and thus how long a request can wait.
const SPIN: Duration = Duration::from_millis(20);

type Work = Box<dyn FnOnce(&mut Node) + Send>;

/// Asks the thread that owns the node to do something to it.
#[derive(Clone)]
pub struct NodeHandle {
    work: Sender<Work>,
}

/// The node is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the ROS node has ended")]
pub struct NodeEnded;

impl NodeHandle {
    /// Does `work` between two waits for messages, and gives back what it returns.
    ///
    /// # Errors
    /// The node has ended.
    pub async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Node) -> T + Send + 'static,
    ) -> Result<T, NodeEnded> {
        let (answer, answered) = oneshot::channel();
        // Who no longer waits for the answer needs none.
        let work = Box::new(move |node: &mut Node| drop(answer.send(work(node))));
        self.work.send(work).map_err(|_| NodeEnded)?;
        answered.await.map_err(|_| NodeEnded)
    }
}

/// The thread; it ends when every handle is gone.
pub struct Spinner {
    thread: JoinHandle<()>,
}

impl Spinner {
    /// Starts the thread. `fault` hears if it ends before its handles do.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn spawn(
        node: Node,
        fault: UnboundedSender<String>,
    ) -> std::io::Result<(Self, NodeHandle)> {
        let (work, requests) = channel();
        let thread = std::thread::Builder::new().name("ros-spin".to_owned()).spawn(move || {
            if catch_unwind(AssertUnwindSafe(|| spin(node, &requests))).is_err() {
                // Nobody listens when the node ends anyway.
                let _ = fault.send("the thread that receives messages panicked".to_owned());
            }
        })?;
        Ok((Self { thread }, NodeHandle { work }))
    }

    /// Waits for the end, which comes once the last handle is dropped.
    pub fn join(self) {
        // A spinner that panicked has nothing left to end.
        let _ = self.thread.join();
    }
}

fn spin(mut node: Node, requests: &Receiver<Work>) {
    loop {
        match requests.try_recv() {
            Ok(work) => work(&mut node),
            Err(TryRecvError::Empty) => node.spin_once(SPIN),
            Err(TryRecvError::Disconnected) => return,
        }
    }
}
