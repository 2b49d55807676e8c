//! The HTTP server: routes, limits and answers of the serving documents.

mod answer;
mod body;
mod connection;
mod demo;
mod error;
mod info;
mod metrics;
mod numbers;
mod observation;
mod openapi;
mod request;
mod routes;
mod token;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

pub use error::ApiError;
pub use observation::Asked;
pub use routes::{App, Identity};

use super::Model;
use super::accept::{self, Connections};

/// What the server takes from clients, and for how long it waits for them.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time; for one more, the one that has been silent longest is ended.
    pub connections: usize,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// Bytes of all bodies that are held at a time.
    pub held_bytes: usize,
    /// For the head of a request, from the first byte that is waited for; ends idle connections too.
    pub head: Duration,
    /// For a whole body.
    pub body: Duration,
    /// For a client to take any part of an answer.
    pub write: Duration,
    /// For the requests that are under way when the server is told to stop.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            body_bytes: 64 << 20,
            held_bytes: 256 << 20,
            head: Duration::from_secs(20),
            body: Duration::from_secs(30),
            write: Duration::from_secs(20),
            drain: Duration::from_secs(30),
        }
    }
}

/// Reads the body of a `POST /predict`.
///
/// # Errors
/// What is wrong with it; none is the server's fault.
pub fn read(body: &[u8], model: &Model) -> Result<Asked, ApiError> {
    observation::asked(&request::parse(body)?, model)
}

/// A server that has its socket.
pub struct Server {
    listener: TcpListener,
    app: Arc<App>,
}

impl Server {
    /// Takes the address; a port of 0 is any free one.
    ///
    /// # Errors
    /// What the system reports.
    pub async fn bind(address: SocketAddr, app: App) -> std::io::Result<Self> {
        Ok(Self { listener: accept::listen(address)?, app: Arc::new(app) })
    }

    /// # Errors
    /// What the system reports.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` becomes true, then ends what is under way.
    pub async fn run(self, stop: watch::Receiver<bool>) {
        let limits = self.app.limits();
        let app = routes::router(self.app);
        let connections = Connections { limit: limits.connections, drain: limits.drain };
        accept::serve(self.listener, connections, stop, |stream, seat, stop| {
            connection::serve(stream, app.clone(), limits, seat, stop)
        })
        .await;
    }
}
