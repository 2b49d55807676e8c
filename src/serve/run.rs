//! The servers of one process: started together, ended together.

use std::net::SocketAddr;

use anyhow::{Context, anyhow};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::engine::{self, Ended, Engine};
use super::http::{self, App, Identity};
use super::model::{Model, ModelError, ModelOptions};
use super::{Token, zmq};
use crate::notify;

/// What to serve, and how. All servers ask one policy through one queue.
#[derive(Debug)]
pub struct Options {
    pub model: ModelOptions,
    pub engine: engine::Limits,
    /// What clients of every server have to show.
    pub token: Option<Token>,
    pub http: Option<Http>,
    pub zmq: Option<Zmq>,
}

/// The HTTP server.
#[derive(Debug)]
pub struct Http {
    /// A port of 0 is any free one.
    pub address: SocketAddr,
    pub identity: Identity,
    pub limits: http::Limits,
}

/// The server of GR00T's own clients.
#[derive(Debug)]
pub struct Zmq {
    /// A port of 0 is any free one.
    pub address: SocketAddr,
    /// Whether a client may end the process.
    pub allow_kill: bool,
    pub limits: zmq::Limits,
}

/// Serves until SIGTERM, SIGINT or a client that may end the servers, and then ends what is under way; a second signal
/// ends it at once. `listening` is told each server's URL, at which HTTP's GET /health answers while the policy is still being
/// loaded.
///
/// # Errors
/// An address cannot be taken, or the policy cannot be loaded.
pub fn run(
    options: Options,
    listening: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(serve(options, listening));
    // A picture that is still being decoded is not waited for.
    runtime.shutdown_background();
    result
}

async fn serve(
    options: Options,
    mut listening: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let Options { model, engine: limits, token, http, zmq } = options;
    let (engine, ended) = Engine::start(limits, move || Model::load(&model))?;
    let (stop, stopped) = watch::channel(false);
    let mut servers = JoinSet::new();
    let mut urls = Vec::new();
    if let Some(Http { address, identity, limits }) = http {
        let app = App::new(engine.clone(), identity, limits, token.clone());
        let server = http::Server::bind(address, app).await.with_context(|| taken(address))?;
        urls.push(url("http", server.address()?, token.is_some()));
        servers.spawn(server.run(stopped.clone()));
    }
    if let Some(Zmq { address, allow_kill, limits }) = zmq {
        let has_token = token.is_some();
        let handler = zmq::Handler::new(engine.clone(), zmq::Settings { token, allow_kill });
        let server =
            zmq::Server::bind(address, handler, limits).await.with_context(|| taken(address))?;
        urls.push(url("tcp", server.address()?, has_token));
        servers.spawn(async move {
            let end = server.run(stopped).await;
            if end == zmq::End::Killed {
                info!("a client has told the server to end");
            }
        });
    }
    for url in &urls {
        listening(url)?;
    }
    let told = tokio::spawn(async move {
        engine.started().await;
        if engine.model().is_ok() {
            info!("Application startup complete: {} answers", urls.join(" and "));
            notify::ready();
        }
    });
    // That this task runs shows that those of the connections do.
    let living = tokio::spawn(notify::keep_alive(|| std::future::ready(true)));
    let outcome = tokio::select! {
        outcome = failed(ended) => outcome,
        () = signals.next() => {
            info!("told to stop: no more connections are accepted");
            Ok(())
        }
        Some(end) = servers.join_next() => {
            // Nobody else has told the servers to stop.
            end.context(PANICKED)
        }
    };
    told.abort();
    living.abort();
    notify::stopping();
    stop.send_replace(true);
    loop {
        tokio::select! {
            end = servers.join_next() => match end {
                Some(end) => end.context(PANICKED)?,
                None => return outcome,
            },
            () = signals.next() => {
                warn!("told to stop again: requests under way are broken off");
                return outcome;
            }
        };
    }
}

const PANICKED: &str = "a server panicked";

fn taken(address: SocketAddr) -> String {
    format!(
        "cannot listen on {address}; is another server there, or is it no address of this machine?"
    )
}

/// Where a server is reached, with a warning if that is from everywhere.
fn url(scheme: &str, address: SocketAddr, has_token: bool) -> String {
    if !address.ip().is_loopback() && !has_token {
        warn!("{address} can be reached from other machines, and no token is asked for");
    }
    format!("{scheme}://{address}")
}

/// Waits for the end of the policy's thread, which is an error while the server runs.
async fn failed(ended: Ended<ModelError>) -> anyhow::Result<()> {
    match ended.await {
        Ok(Err(error)) => Err(error.into()),
        Ok(Ok(())) | Err(_) => Err(anyhow!("the policy's thread has ended; see the log above")),
    }
}

/// What asks a process to end.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
