//! The policy server of GR00T's own clients: requests and answers in MessagePack over ZeroMQ.
//!
//! [`Handler`] answers one request with bytes and needs no socket; [`Server`] brings it requests over TCP.

mod connection;
mod error;
mod handler;
mod modality;
mod observation;
mod reply;
mod request;
mod server;
mod zmtp;

use std::time::Duration;

pub use error::{ObservationError, RequestError};
pub use handler::{Handler, Settings};
pub use observation::Style;
pub use server::{End, Server};
pub use zmtp::MAX_PARTS;

/// What the server takes from clients, and for how long it waits for them.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time; for one more, the one that has been silent longest is ended.
    pub connections: usize,
    /// Bytes of a request: more than ten frames of 1920x1080 take, as RGB.
    pub message_bytes: usize,
    /// Bytes of all requests that are held at a time.
    pub held_bytes: usize,
    /// For a greeting, and for a whole message from its first byte on.
    pub message: Duration,
    /// Between two requests; a client's socket connects again by itself when it has more to say.
    pub idle: Duration,
    /// For a client to take any part of an answer.
    pub write: Duration,
    /// For the requests that are under way when the server is told to stop.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            message_bytes: 64 << 20,
            held_bytes: 256 << 20,
            message: Duration::from_secs(30),
            idle: Duration::from_secs(600),
            write: Duration::from_secs(20),
            drain: Duration::from_secs(30),
        }
    }
}
