//! The socket: connections side by side, predictions one after the other.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tracing::debug;

use super::handler::Handler;
use super::{Limits, connection};
use crate::serve::accept::{self, Connections, stopped};
use crate::serve::room::Room;

/// A REP socket of ZeroMQ over TCP.
pub struct Server {
    listener: TcpListener,
    handler: Handler,
    limits: Limits,
}

/// Why a server has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It was told to stop.
    Stopped,
    /// A client that may has ended it.
    Killed,
}

impl Server {
    /// Takes the address; a port of 0 is any free one.
    ///
    /// # Errors
    /// What the system reports.
    pub async fn bind(address: SocketAddr, handler: Handler, limits: Limits) -> io::Result<Self> {
        Ok(Self { listener: accept::listen(address)?, handler, limits })
    }

    /// # Errors
    /// What the system reports.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` becomes true or a client ends the server; requests that have arrived are answered first.
    ///
    /// Clients that come while the policy is being loaded wait for their greeting, as they would for a server that is not
    /// there yet: an answer, even to a ping, means that the policy is ready.
    pub async fn run(self, mut stop: watch::Receiver<bool>) -> End {
        let Self { listener, handler, limits } = self;
        tokio::select! {
            () = handler.started() => {}
            () = stopped(&mut stop) => return End::Stopped,
        }
        let room = Room::new(limits.held_bytes);
        let connections = Connections { limit: limits.connections, drain: limits.drain };
        let (end, ended) = watch::channel(false);
        let serving = accept::serve(listener, connections, ended, |stream, seat, stop| {
            let (handler, room) = (handler.clone(), room.clone());
            async move {
                match connection::serve(stream, &handler, limits, room, seat, stop).await {
                    Ok(()) => debug!("a client leaves"),
                    Err(error) => debug!("a client is disconnected: {error}"),
                }
            }
        });
        let told = async {
            let why = tokio::select! {
                () = stopped(&mut stop) => End::Stopped,
                () = handler.killed() => End::Killed,
            };
            end.send_replace(true);
            why
        };
        tokio::join!(serving, told).1
    }
}
