//! The servers of one process: started together, ended together.

use std::net::SocketAddr;

use anyhow::{Context, anyhow};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing::{info, warn};

use super::engine::{self, Ended, Engine};
use super::http::{self, App, Identity, Server, Token};
use super::model::{Model, ModelError, ModelOptions};

/// What to serve, and how.
#[derive(Debug)]
pub struct Options {
    pub model: ModelOptions,
    pub engine: engine::Limits,
    pub http: Http,
}

/// The HTTP server.
#[derive(Debug)]
pub struct Http {
    /// A port of 0 is any free one.
    pub address: SocketAddr,
    pub identity: Identity,
    pub limits: http::Limits,
    pub token: Option<Token>,
}

/// Serves until SIGTERM or SIGINT, and then ends what is under way; a second signal ends it at once. `listening` is told
/// the address, at which GET /health answers while the policy is still being loaded.
///
/// # Errors
/// The address cannot be taken, or the policy cannot be loaded.
pub fn run(
    options: Options,
    listening: impl FnOnce(SocketAddr) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(serve(options, listening));
    // A picture that is still being decoded is not waited for.
    runtime.shutdown_background();
    result
}

async fn serve(
    options: Options,
    listening: impl FnOnce(SocketAddr) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let Options { model, engine: limits, http } = options;
    let (engine, ended) = Engine::start(limits, move || Model::load(&model))?;
    let app = App::new(engine.clone(), http.identity, http.limits, http.token);
    let server = Server::bind(http.address, app)
        .await
        .with_context(|| format!("cannot listen on {}", http.address))?;
    let address = server.address()?;
    if !address.ip().is_loopback() {
        warn!("{address} can be reached from other machines; without a token, by anyone there");
    }
    listening(address)?;
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(server.run(stopped));
    let told = tokio::spawn(async move {
        engine.started().await;
        if engine.model().is_ok() {
            info!("Application startup complete: http://{address} answers");
        }
    });
    let outcome = tokio::select! {
        outcome = failed(ended) => outcome,
        () = signals.next() => {
            info!("told to stop: no more connections are accepted");
            Ok(())
        }
    };
    told.abort();
    stop.send_replace(true);
    tokio::select! {
        ended = serving => ended.context("the HTTP server panicked")?,
        () = signals.next() => warn!("told to stop again: requests under way are broken off"),
    }
    outcome
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
