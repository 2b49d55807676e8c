//! The policy server of GR00T's own clients: requests and answers in MessagePack over ZeroMQ.
//!
//! [`Handler`] answers one request with bytes and needs no socket; [`Server`] brings it requests over TCP.

mod connection;
mod error;
mod handler;
mod modality;
mod observation;
mod reply;
mod server;
mod zmtp;

use std::net::SocketAddr;

pub use connection::{IDLE_TIME, MESSAGE_TIME};
pub use error::{ObservationError, RequestError};
pub use handler::{Handler, Predict, Settings};
pub use observation::Style;
pub use server::{ANSWER_TIME, MAX_CLIENTS, MAX_WAITING, ServeError, Server};
pub use zmtp::{MAX_MESSAGE_BYTES, MAX_PARTS};

use crate::contract::CancelToken;

/// Serves a policy until `stop` is raised or a client ends the server; requests that have arrived are answered first.
///
/// # Errors
/// The address cannot be listened on.
pub fn run<P: Predict + Send>(
    policy: P,
    address: SocketAddr,
    settings: Settings,
    stop: &CancelToken,
) -> Result<(), ServeError> {
    Server::bind(address)?.run(Handler::new(policy, settings), stop)
}
