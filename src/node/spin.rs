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

/// What the thread is asked for.
pub enum Work {
    /// To be done to the node, once.
    Do(Box<dyn FnOnce(&mut Node) + Send>),
    /// See [`NodeHandle::after_every_take`].
    Repeat(Box<dyn FnMut() -> bool + Send>),
}

/// Asks the thread that owns the node to do something to it.
#[derive(Clone)]
pub struct NodeHandle {
    work: Sender<Work>,
}

/// A handle, and what [`Spinner::spawn`] needs to hear of it.
pub fn handle() -> (NodeHandle, Receiver<Work>) {
    let (work, asked) = channel();
    (NodeHandle { work }, asked)
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
        self.work.send(Work::Do(work)).map_err(|_| NodeEnded)?;
        answered.await.map_err(|_| NodeEnded)
    }

    /// Does `look` each time that messages were taken, of which one take brings at most one for each topic and service;
    /// until it gives back `false`. It has to be quick.
    pub fn after_every_take(&self, look: impl FnMut() -> bool + Send + 'static) {
        // Where the node has ended, nothing is taken.
        let _ = self.work.send(Work::Repeat(Box::new(look)));
    }
}

/// The thread; it ends when every handle is gone.
pub struct Spinner {
    thread: JoinHandle<()>,
}

impl Spinner {
    /// Starts the thread, which does what its handles ask for. `fault` hears if it ends before them.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn spawn(
        node: Node,
        asked: Receiver<Work>,
        fault: UnboundedSender<String>,
    ) -> std::io::Result<Self> {
        let thread = std::thread::Builder::new().name("ros-spin".to_owned()).spawn(move || {
            if catch_unwind(AssertUnwindSafe(|| spin(node, &asked))).is_err() {
                // Nobody listens when the node ends anyway.
                let _ = fault.send("the thread that receives messages panicked".to_owned());
            }
        })?;
        Ok(Self { thread })
    }

    /// Waits for the end, which comes once the last handle is dropped.
    pub fn join(self) {
        // A spinner that panicked has nothing left to end.
        let _ = self.thread.join();
    }
}

fn spin(mut node: Node, asked: &Receiver<Work>) {
    let mut looks = Vec::new();
    loop {
        match asked.try_recv() {
            Ok(Work::Do(work)) => work(&mut node),
            Ok(Work::Repeat(look)) => looks.push(look),
            Err(TryRecvError::Empty) => {
                node.spin_once(SPIN);
                looks.retain_mut(|look| look());
            }
            Err(TryRecvError::Disconnected) => return,
        }
    }
}
