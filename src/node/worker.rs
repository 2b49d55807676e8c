//! The thread that owns the policy. Everything else goes on while it predicts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tracing::warn;

use super::publish::Publishers;
use super::runtime::{Shared, Throttle};
use crate::backend::BackendError;
use crate::contract::{CancelToken, Noise, PredictOptions};
use crate::history::Sighting;
use crate::policy::{Policy, PolicyError};

/// Failing predictions are warned about this often.
const WARNING_PERIOD: Duration = Duration::from_secs(2);
/// How often a thread that is to end is looked at.
const POLL: Duration = Duration::from_millis(5);

/// One prediction to make.
pub struct Job {
    pub sighting: Sighting,
    pub seed: u64,
    /// When the observation was put together, node clock.
    pub begin_ns: i64,
}

/// A handle on the thread.
pub struct Worker {
    jobs: SyncSender<Job>,
    busy: Arc<AtomicBool>,
    cancel: CancelToken,
    thread: JoinHandle<()>,
}

impl Worker {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        policy: Policy,
        shared: Arc<Shared>,
        publishers: Publishers,
    ) -> std::io::Result<Self> {
        let (jobs, receiver) = sync_channel(1);
        let busy = Arc::new(AtomicBool::new(false));
        let cancel = CancelToken::default();
        let task = Task { policy, shared, publishers, busy: busy.clone(), cancel: cancel.clone() };
        let thread = std::thread::Builder::new()
            .name("inference".to_owned())
            .spawn(|| task.run(receiver))?;
        Ok(Self { jobs, busy, cancel, thread })
    }

    /// Whether a prediction is running.
    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Acquire)
    }

    /// Hands over a job; `false` if the thread is busy or has ended.
    pub fn submit(&self, job: Job) -> bool {
        if self.busy.swap(true, Ordering::AcqRel) {
            return false;
        }
        self.jobs.try_send(job).is_ok()
    }

    /// Cancels what runs and waits for the thread, at most this long.
    pub fn stop(self, limit: Duration) -> bool {
        let Self { jobs, cancel, thread, .. } = self;
        cancel.cancel();
        drop(jobs);
        let start = Instant::now();
        while !thread.is_finished() && start.elapsed() < limit {
            std::thread::sleep(POLL);
        }
        thread.is_finished()
    }
}

struct Task {
    policy: Policy,
    shared: Arc<Shared>,
    publishers: Publishers,
    busy: Arc<AtomicBool>,
    cancel: CancelToken,
}

impl Task {
    fn run(mut self, jobs: Receiver<Job>) {
        let mut warnings = Throttle::new(WARNING_PERIOD);
        while let Ok(job) = jobs.recv() {
            let options =
                PredictOptions { noise: Some(Noise::Seed(job.seed)), cancel: self.cancel.clone() };
            match self.policy.predict(&job.sighting.observation, &options) {
                Ok(chunk) => self.publishers.publish(&self.shared, &job, &chunk),
                Err(PolicyError::Backend(BackendError::Cancelled { .. })) => {}
                Err(error) => {
                    self.shared.counters.failed_predictions.fetch_add(1, Ordering::Relaxed);
                    if warnings.pass().is_some() {
                        warn!("no chunk: {error}");
                    }
                }
            }
            self.busy.store(false, Ordering::Release);
        }
    }
}
