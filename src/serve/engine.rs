//! The thread that owns the policy, and the queue in front of it.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};
use tracing::{error, info};

use super::model::Model;
use super::times::Times;
use crate::contract::{ActionChunk, CancelToken, Noise, Observation, PredictOptions};
use crate::policy::{Policy, PolicyError};
use crate::program::Layout;

/// How many requests wait, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests that wait for the one that is computed.
    pub queue: usize,
    /// From the place in the queue to the answer.
    pub deadline: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { queue: 8, deadline: Duration::from_secs(60) }
    }
}

/// One answer of the policy.
#[derive(Clone, Debug)]
pub struct Prediction {
    pub chunk: ActionChunk,
    /// Tokens and pictures of the observation.
    pub layout: Layout,
}

/// What the engine asks: a [`Policy`], or what a test puts in its place.
pub trait Predict: Send {
    /// # Errors
    /// As [`Policy::predict`].
    fn predict(
        &mut self,
        observation: &Observation,
        options: &PredictOptions,
    ) -> Result<Prediction, PolicyError>;
}

impl Predict for Policy {
    fn predict(
        &mut self,
        observation: &Observation,
        options: &PredictOptions,
    ) -> Result<Prediction, PolicyError> {
        let chunk = Policy::predict(self, observation, options)?;
        let layout = self.last_layout().expect("an observation was encoded for this chunk");
        Ok(Prediction { chunk, layout })
    }
}

/// Where the engine stands.
#[derive(Clone)]
pub enum Stage {
    /// The policy is being loaded and looked at.
    Starting,
    Ready(Arc<Model>),
    /// The policy could not be loaded, or its thread has ended.
    Stopped,
}

/// Why there is no chunk.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    #[error("the policy is starting; try again when GET /health says ok")]
    Starting,
    #[error("the policy has stopped; see the server's log")]
    Stopped,
    #[error("{queue} requests wait already; send fewer at a time, or try again later")]
    Full { queue: usize },
    #[error("there was no answer within {:.1} s; {waiting} requests wait", deadline.as_secs_f64())]
    Deadline { deadline: Duration, waiting: usize },
    #[error(transparent)]
    Policy(Box<PolicyError>),
}

impl From<PolicyError> for EngineError {
    fn from(error: PolicyError) -> Self {
        EngineError::Policy(Box::new(error))
    }
}

struct Job {
    observation: Observation,
    options: PredictOptions,
    answer: oneshot::Sender<Result<Prediction, PolicyError>>,
}

/// The way to the policy, for any number of servers.
#[derive(Clone)]
pub struct Engine {
    jobs: mpsc::Sender<Job>,
    stage: watch::Receiver<Stage>,
    limits: Limits,
    times: Times,
}

/// Tells how the engine's thread ended; an error means that no policy was loaded.
pub type Ended<E> = oneshot::Receiver<Result<(), E>>;

impl Engine {
    /// Starts the thread, which first loads. The engine can be asked at once and says that it is starting.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start<P, E>(
        limits: Limits,
        load: impl FnOnce() -> Result<(P, Model), E> + Send + 'static,
    ) -> std::io::Result<(Self, Ended<E>)>
    where
        P: Predict + 'static,
        E: Send + std::fmt::Display + 'static,
    {
        let (jobs, queue) = mpsc::channel(limits.queue);
        let (stage, seen) = watch::channel(Stage::Starting);
        let (ended, end) = oneshot::channel();
        thread::Builder::new().name("policy".to_owned()).spawn(move || {
            // However the thread ends, nobody is left to wait for it.
            let stage = StoppedOnDrop(stage);
            let result = load().map(|(policy, model)| {
                stage.0.send_replace(Stage::Ready(Arc::new(model)));
                answer_all(policy, queue);
            });
            if let Err(error) = &result {
                error!("{error}");
            }
            // Nobody listens once the server is gone.
            let _ = ended.send(result);
        })?;
        Ok((Self { jobs, stage: seen, limits, times: Times::default() }, end))
    }

    pub fn stage(&self) -> Stage {
        self.stage.borrow().clone()
    }

    /// The policy's facts.
    ///
    /// # Errors
    /// It is not ready.
    pub fn model(&self) -> Result<Arc<Model>, EngineError> {
        match self.stage() {
            Stage::Starting => Err(EngineError::Starting),
            Stage::Ready(model) => Ok(model),
            Stage::Stopped => Err(EngineError::Stopped),
        }
    }

    /// Waits until the policy is loaded, or could not be.
    pub async fn started(&self) {
        let mut stage = self.stage.clone();
        // An error means that the thread has ended, which is no longer starting either.
        let _ = stage.wait_for(|stage| !matches!(stage, Stage::Starting)).await;
    }

    /// Waits for the end of the policy's thread.
    async fn stopped(&self) {
        let mut stage = self.stage.clone();
        // An error means that the thread has ended, too.
        let _ = stage.wait_for(|stage| matches!(stage, Stage::Stopped)).await;
    }

    /// Requests that have a place in the queue.
    pub fn waiting(&self) -> usize {
        self.jobs.max_capacity() - self.jobs.capacity()
    }

    /// Where servers note how long their predictions took.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// Takes a place in the queue, before the work of reading an observation is done in vain.
    ///
    /// # Errors
    /// The queue is full, or there is no policy.
    pub fn reserve(&self) -> Result<Place, EngineError> {
        self.model()?;
        let deadline = Instant::now() + self.limits.deadline;
        match self.jobs.clone().try_reserve_owned() {
            Ok(permit) => Ok(Place { permit, deadline, engine: self.clone() }),
            Err(mpsc::error::TrySendError::Full(_)) => {
                Err(EngineError::Full { queue: self.limits.queue })
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Err(EngineError::Stopped),
        }
    }
}

/// A place in the queue.
pub struct Place {
    permit: mpsc::OwnedPermit<Job>,
    deadline: Instant,
    engine: Engine,
}

impl Place {
    /// One chunk. A caller that stops waiting ends the prediction.
    ///
    /// # Errors
    /// The deadline has passed, or what the policy reports.
    pub async fn predict(
        self,
        observation: Observation,
        noise: Noise,
    ) -> Result<Prediction, EngineError> {
        let cancel = CancelToken::default();
        let options =
            PredictOptions { noise: Some(noise), cancel: cancel.clone(), ..Default::default() };
        let _cancelled = CancelOnDrop(cancel);
        let (answer, answered) = oneshot::channel();
        self.permit.send(Job { observation, options, answer });
        tokio::select! {
            biased;
            answered = timeout_at(self.deadline, answered) => match answered {
                Ok(Ok(result)) => Ok(result?),
                Ok(Err(_)) => Err(EngineError::Stopped),
                Err(_) => Err(EngineError::Deadline {
                    deadline: self.engine.limits.deadline,
                    waiting: self.engine.waiting(),
                }),
            },
            // A place that was taken before the end leads to a queue that nobody looks at any more.
            () = self.engine.stopped() => Err(EngineError::Stopped),
        }
    }
}

/// Ends a prediction that nobody waits for.
struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

struct StoppedOnDrop(watch::Sender<Stage>);

impl Drop for StoppedOnDrop {
    fn drop(&mut self) {
        self.0.send_replace(Stage::Stopped);
    }
}

fn answer_all(mut policy: impl Predict, mut queue: mpsc::Receiver<Job>) {
    while let Some(Job { observation, options, answer }) = queue.blocking_recv() {
        // Whoever asked may have left while the request waited.
        if answer.is_closed() {
            continue;
        }
        // Whoever asked may have left meanwhile.
        let _ = answer.send(policy.predict(&observation, &options));
    }
    info!("the policy is no longer asked");
}
