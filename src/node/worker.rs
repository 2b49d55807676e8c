//! The thread that owns the policy; nothing that receives messages ever waits for it.
//!
//! There is no queue: a prediction begins when none is running, or not at all, so that no chunk is made from an old
//! observation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::contract::{ActionChunk, CancelToken, Observation, PredictOptions};
use crate::locked::locked;

/// How often what computes is looked after.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// What the thread needs of a policy.
pub trait Predict {
    type Error: std::error::Error;

    /// See [`Policy::predict`](crate::policy::Policy::predict).
    ///
    /// # Errors
    /// There is no chunk.
    fn predict(
        &mut self,
        observation: &Observation,
        options: &PredictOptions,
    ) -> Result<ActionChunk, Self::Error>;

    /// See [`Policy::look`](crate::policy::Policy::look). A prediction that is to begin meanwhile waits for its end.
    fn look(&mut self) -> bool {
        false
    }

    /// See [`Policy::recover`](crate::policy::Policy::recover). No prediction begins meanwhile.
    fn recover(&mut self) {}
}

impl Predict for crate::policy::Policy {
    type Error = crate::policy::PolicyError;

    fn predict(
        &mut self,
        observation: &Observation,
        options: &PredictOptions,
    ) -> Result<ActionChunk, Self::Error> {
        self.predict(observation, options)
    }

    fn look(&mut self) -> bool {
        self.look()
    }

    fn recover(&mut self) {
        self.recover();
    }
}

/// One prediction to be made; `ticket` comes back with its outcome.
struct Job<T> {
    observation: Arc<Observation>,
    options: PredictOptions,
    ticket: T,
}

/// Why there is no chunk.
#[derive(Debug, thiserror::Error)]
pub enum Failure<E: std::error::Error> {
    #[error(transparent)]
    Policy(E),
    #[error("the prediction was cancelled")]
    Cancelled,
    #[error("the backend panicked: {0}")]
    Panic(String),
}

/// Why a prediction cannot begin now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Occupied {
    #[error("a prediction is running")]
    Predicting,
    #[error("the backend was lost and is being started again")]
    Recovering,
    #[error("the policy has ended")]
    Ended,
}

/// When a prediction was worked on.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub began: Instant,
    pub ended: Instant,
}

/// Handle of the thread.
pub struct Worker<T> {
    shared: Arc<Shared>,
    jobs: SyncSender<Job<T>>,
    thread: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    busy: AtomicBool,
    /// While it is busy: with what computes, and with no prediction.
    recovering: AtomicBool,
    stopping: AtomicBool,
    /// Of the running prediction.
    cancel: Mutex<CancelToken>,
}

impl Shared {
    fn cancel_token(&self) -> CancelToken {
        locked(&self.cancel).clone()
    }
}

impl<T: Send + 'static> Worker<T> {
    /// Starts the thread. It calls `done` on every outcome; when the policy has panicked, it calls `ended` with the
    /// reason and is over.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn spawn<P: Predict + Send + 'static>(
        policy: P,
        done: impl FnMut(T, Span, Result<ActionChunk, Failure<P::Error>>) + Send + 'static,
        ended: impl FnOnce(String) + Send + 'static,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (jobs, queue) = sync_channel(1);
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("inference".to_owned())
            .spawn(move || work(policy, done, ended, queue, &of_thread))?;
        Ok(Self { shared, jobs, thread })
    }

    /// Whether a prediction is running.
    #[cfg(test)]
    pub fn is_busy(&self) -> bool {
        self.shared.busy.load(Ordering::Acquire)
    }

    /// Begins a prediction; never waits.
    ///
    /// # Errors
    /// It cannot begin now.
    pub fn begin(
        &self,
        observation: Arc<Observation>,
        options: PredictOptions,
        ticket: T,
    ) -> Result<(), Occupied> {
        if self.shared.busy.swap(true, Ordering::AcqRel) {
            return Err(match self.shared.recovering.load(Ordering::Acquire) {
                true => Occupied::Recovering,
                false => Occupied::Predicting,
            });
        }
        *locked(&self.shared.cancel) = options.cancel.clone();
        self.jobs.try_send(Job { observation, options, ticket }).map_err(|_| Occupied::Ended)
    }

    /// Cancels the running prediction and ends the thread. Returns false if it has not ended after `patience`; then it
    /// is left to itself.
    pub fn stop(self, patience: Duration) -> bool {
        let Self { shared, jobs, thread } = self;
        shared.stopping.store(true, Ordering::Release);
        shared.cancel_token().cancel();
        drop(jobs);
        let start = Instant::now();
        while !thread.is_finished() {
            if start.elapsed() > patience {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        thread.join().is_ok()
    }
}

fn work<T, P: Predict>(
    mut policy: P,
    mut done: impl FnMut(T, Span, Result<ActionChunk, Failure<P::Error>>),
    ended: impl FnOnce(String),
    queue: Receiver<Job<T>>,
    shared: &Shared,
) {
    let mut looked = Instant::now();
    loop {
        let job = match queue.recv_timeout(LOOK_PERIOD.saturating_sub(looked.elapsed())) {
            Ok(job) => job,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                looked = Instant::now();
                match catch_unwind(AssertUnwindSafe(|| look_after(&mut policy, shared))) {
                    Ok(()) => continue,
                    Err(panic) => return ended(panicked(&panic_text(&*panic))),
                }
            }
        };
        let Job { observation, options, ticket } = job;
        let began = Instant::now();
        if shared.stopping.load(Ordering::Acquire) {
            return done(ticket, Span { began, ended: began }, Err(Failure::Cancelled));
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| policy.predict(&observation, &options)));
        let span = Span { began, ended: Instant::now() };
        let panic = outcome.as_ref().err().map(|panic| panic_text(&**panic));
        let outcome = match outcome {
            _ if options.cancel.is_cancelled() => Err(Failure::Cancelled),
            Ok(outcome) => outcome.map_err(Failure::Policy),
            Err(_) => Err(Failure::Panic(panic.clone().unwrap_or_default())),
        };
        // Whoever hears of the end may begin the next one at once; after a panic, what the policy holds is not known.
        if panic.is_none() {
            shared.busy.store(false, Ordering::Release);
        }
        done(ticket, span, outcome);
        if let Some(text) = panic {
            return ended(panicked(&text));
        }
    }
}

/// Looks after what computes, and brings it back if it is lost, unless a prediction has begun that will do so.
fn look_after(policy: &mut impl Predict, shared: &Shared) {
    if !policy.look() || shared.busy.swap(true, Ordering::AcqRel) {
        return;
    }
    shared.recovering.store(true, Ordering::Release);
    policy.recover();
    shared.recovering.store(false, Ordering::Release);
    shared.busy.store(false, Ordering::Release);
}

fn panicked(text: &str) -> String {
    format!("the backend panicked: {text}")
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{StageTimings, Version};
    use std::sync::mpsc;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct FakeError(&'static str);

    /// Answers after `steps` of 1 ms; looks at the cancel token at each.
    struct Fake {
        steps: u32,
        /// Told of a recovery; it ends when the other end has answered. Lost until then.
        recoveries: Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>,
    }

    impl Predict for Fake {
        type Error = FakeError;

        fn predict(
            &mut self,
            observation: &Observation,
            options: &PredictOptions,
        ) -> Result<ActionChunk, FakeError> {
            match observation.instruction.as_str() {
                "fail" => return Err(FakeError("refused")),
                "panic" => panic!("out of bounds"),
                _ => {}
            }
            for _ in 0..self.steps {
                if options.cancel.is_cancelled() {
                    return Err(FakeError("cancelled inside"));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(ActionChunk {
                version: Version::N16,
                embodiment: String::new(),
                instruction: observation.instruction.clone(),
                seed: None,
                stamp_ns: observation.stamp_ns,
                horizon: 0,
                groups: vec![],
                normalized: vec![],
                timings: StageTimings::default(),
            })
        }

        fn look(&mut self) -> bool {
            self.recoveries.is_some()
        }

        fn recover(&mut self) {
            if let Some((begun, end)) = self.recoveries.take() {
                begun.send(()).expect("a test that listens");
                end.recv().expect("a test that answers");
            }
        }
    }

    fn observation(instruction: &str) -> Arc<Observation> {
        Arc::new(Observation { instruction: instruction.to_owned(), ..Default::default() })
    }

    type Outcomes = mpsc::Receiver<(u32, Result<String, String>)>;

    fn spawn(steps: u32) -> (Worker<u32>, Outcomes, mpsc::Receiver<String>) {
        spawn_fake(Fake { steps, recoveries: None })
    }

    fn spawn_fake(fake: Fake) -> (Worker<u32>, Outcomes, mpsc::Receiver<String>) {
        let (outcome, outcomes) = mpsc::channel();
        let (end, ends) = mpsc::channel();
        let done = move |ticket, _, result: Result<ActionChunk, Failure<FakeError>>| {
            let result =
                result.map(|chunk| chunk.instruction).map_err(|failure| failure.to_string());
            let _ = outcome.send((ticket, result));
        };
        let worker = Worker::spawn(fake, done, move |text| drop(end.send(text))).expect("a thread");
        (worker, outcomes, ends)
    }

    fn wait_until_idle(worker: &Worker<u32>) {
        let start = Instant::now();
        while worker.is_busy() {
            assert!(start.elapsed() < Duration::from_secs(20), "still busy");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn begin(worker: &Worker<u32>, instruction: &str, ticket: u32) -> Result<(), Occupied> {
        worker.begin(observation(instruction), PredictOptions::default(), ticket)
    }

    #[test]
    fn one_prediction_at_a_time_and_no_queue() {
        let (worker, outcomes, _ends) = spawn(100);
        assert_eq!(begin(&worker, "first", 1), Ok(()));
        assert_eq!(begin(&worker, "second", 2), Err(Occupied::Predicting));
        assert_eq!(outcomes.recv(), Ok((1, Ok("first".to_owned()))));
        wait_until_idle(&worker);
        assert_eq!(begin(&worker, "fail", 3), Ok(()));
        assert_eq!(outcomes.recv(), Ok((3, Err("refused".to_owned()))));
        wait_until_idle(&worker);
        assert!(worker.stop(Duration::from_secs(20)));
        assert!(outcomes.recv().is_err());
    }

    #[test]
    fn stop_cancels_the_running_prediction() {
        let (worker, outcomes, _ends) = spawn(1_000_000);
        assert_eq!(begin(&worker, "long", 1), Ok(()));
        assert!(worker.stop(Duration::from_secs(20)));
        assert_eq!(outcomes.recv(), Ok((1, Err("the prediction was cancelled".to_owned()))));
    }

    #[test]
    fn what_is_lost_is_brought_back_and_nothing_begins_meanwhile() {
        let (begun, recovery) = mpsc::channel();
        let (end, ends) = mpsc::channel();
        let fake = Fake { steps: 0, recoveries: Some((begun, ends)) };
        let (worker, outcomes, _ends) = spawn_fake(fake);
        recovery.recv_timeout(LOOK_PERIOD * 20).expect("a recovery");
        assert_eq!(begin(&worker, "early", 1), Err(Occupied::Recovering));
        end.send(()).expect("a worker that waits");
        wait_until_idle(&worker);
        assert_eq!(begin(&worker, "late", 2), Ok(()));
        assert_eq!(outcomes.recv(), Ok((2, Ok("late".to_owned()))));
        assert!(worker.stop(Duration::from_secs(20)));
    }

    #[test]
    fn a_panic_ends_the_policy_and_nothing_else() {
        let (worker, outcomes, ends) = spawn(0);
        assert_eq!(begin(&worker, "panic", 1), Ok(()));
        assert_eq!(outcomes.recv(), Ok((1, Err("the backend panicked: out of bounds".to_owned()))));
        assert_eq!(ends.recv().as_deref(), Ok("the backend panicked: out of bounds"));
        assert!(begin(&worker, "next", 2).is_err());
        assert!(worker.stop(Duration::from_secs(20)));
    }
}
