//! From the bytes of a request to the bytes of its answer.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::{Semaphore, watch};
use tracing::warn;

use super::error::RequestError;
use super::reply;
use super::request::{Action, Asked, Desk, What};
use crate::serve::Token;
use crate::serve::accept::stopped;
use crate::serve::arrays::{Dialect, Value, encode};
use crate::serve::engine::Engine;
use crate::serve::times::Server;
use crate::throttle::Warnings;
use crate::words::brief;

/// What clients may do.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// What every request must carry as `api_token`; `None`: nothing.
    pub token: Option<Token>,
    /// Whether a client may end the server.
    pub allow_kill: bool,
}

/// Answers requests; clones answer the same.
#[derive(Clone)]
pub struct Handler(Arc<Shared>);

struct Shared {
    desk: Arc<Desk>,
    /// Requests that are read at a time.
    readers: Arc<Semaphore>,
    killed: watch::Sender<bool>,
    warnings: Warnings,
}

impl Handler {
    pub fn new(engine: Engine, settings: Settings) -> Self {
        let Settings { token, allow_kill } = settings;
        let readers = std::thread::available_parallelism().map_or(1, usize::from);
        Self(Arc::new(Shared {
            desk: Arc::new(Desk { engine, token, allow_kill }),
            readers: Arc::new(Semaphore::new(readers)),
            killed: watch::Sender::new(false),
            warnings: Warnings::default(),
        }))
    }

    /// Waits until the policy is loaded, or could not be.
    pub(super) async fn started(&self) {
        self.0.desk.engine.started().await;
    }

    /// Whether a client has ended the server.
    pub fn is_killed(&self) -> bool {
        *self.0.killed.borrow()
    }

    /// Waits until a client ends the server.
    pub(super) async fn killed(&self) {
        stopped(&mut self.0.killed.subscribe()).await;
    }

    /// Answers one request. Whatever is wrong with it, the answer says so. A caller that stops waiting ends the prediction.
    pub async fn handle(&self, request: impl Into<Bytes>) -> Vec<u8> {
        let start = Instant::now();
        let Asked { dialect, what } = self.read(request.into()).await;
        let answer = match what {
            Ok(what) => self.answer(what, start).await,
            Err(error) => Err(error),
        };
        let value = answer.unwrap_or_else(|error| {
            let text = brief(&error.to_string());
            if let Some(more) = self.0.warnings.pass() {
                warn!("request refused: {text}{more}");
            }
            reply::error(text)
        });
        encode(&value, dialect)
    }

    /// Reads a request beside the connections: large ones take their time. The turn is given back when it has been read, also
    /// if the client has left meanwhile.
    async fn read(&self, request: Bytes) -> Asked {
        let desk = self.0.desk.clone();
        // The semaphore is never closed.
        let turn = self.0.readers.clone().acquire_owned().await;
        let read = tokio::task::spawn_blocking(move || {
            let asked = desk.read(&request);
            drop(turn);
            asked
        });
        let read = read.await;
        read.unwrap_or_else(|error| {
            let what = Err(RequestError::Reader { reason: error.to_string() });
            Asked { dialect: Dialect::DEFAULT, what }
        })
    }

    async fn answer(&self, what: What, start: Instant) -> Result<Value<'static>, RequestError> {
        match what {
            What::Known(value) => Ok(value),
            What::Kill => {
                self.0.killed.send_replace(true);
                Ok(reply::status("Server is ending"))
            }
            What::Action(action) => {
                let Action { place, observation, noise, style } = *action;
                let prediction = place.predict(observation, noise).await?;
                let times = self.0.desk.engine.times();
                times.answered(Server::Zmq, start.elapsed(), &prediction.chunk.timings);
                reply::actions(&prediction.chunk, style)
            }
        }
    }
}

/// The answer to a request that does not get as far as a handler.
pub(super) fn error_answer(text: String) -> Vec<u8> {
    encode(&reply::error(text), Dialect::DEFAULT)
}
