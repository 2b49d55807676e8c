//! Connections of a server: how many at a time, and how they end.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::seats::{Seat, Seats};
use crate::throttle::{Throttle, WARNING_PERIOD, and_more};

/// Before the next try where no connection can be accepted, as when all file descriptors are in use.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections that may wait to be accepted. The system drops more, whose clients try again after a second.
const BACKLOG: u32 = 1024;

/// What a server takes of connections.
#[derive(Clone, Copy, Debug)]
pub struct Connections {
    /// At a time. For one more, the one that has been silent longest is ended; it waits where none is silent.
    pub limit: usize,
    /// For the requests that are under way when the server is told to stop.
    pub drain: Duration,
}

/// Listens at an address; a port of 0 is any free one.
///
/// # Errors
/// What the system reports.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // The port is free again as soon as a server has ended.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `stop` becomes true or its sender is gone; then no connection is accepted, and those that are open may end
/// their request.
pub async fn serve<C>(
    listener: TcpListener,
    limits: Connections,
    mut stop: watch::Receiver<bool>,
    connection: impl Fn(TcpStream, Arc<Seat>, watch::Receiver<bool>) -> C,
) where
    C: Future<Output = ()> + Send + 'static,
{
    let seats = Seats::new(limits.limit);
    let mut connections = JoinSet::new();
    let mut warnings = Throttle::new(WARNING_PERIOD);
    // The one that has no seat yet.
    let mut newest: Option<TcpStream> = None;
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            // Finished tasks are forgotten as they end.
            Some(_) = connections.join_next() => {}
            seat = seats.take(), if newest.is_some() => {
                if let Some(stream) = newest.take() {
                    connections.spawn(connection(stream, seat, stop.clone()));
                }
            }
            accepted = accept(&listener, &seats, &mut warnings), if newest.is_none() => {
                newest = accepted;
            }
        }
    }
    drop(listener);
    let open = connections.len();
    if open > 0 {
        info!("waiting for {open} connections to end");
    }
    if timeout(limits.drain, async { while connections.join_next().await.is_some() {} })
        .await
        .is_err()
    {
        warn!("{} connections did not end in time and are closed", connections.len());
    }
}

/// Ends when the server is told to stop, or nobody is left who could tell it.
pub async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn accept(
    listener: &TcpListener,
    seats: &Seats,
    warnings: &mut Throttle,
) -> Option<TcpStream> {
    match listener.accept().await {
        Ok((stream, _)) => Some(stream),
        Err(error) => {
            if let Some(held_back) = warnings.pass() {
                warn!("no connection can be accepted: {error}{}", and_more(held_back));
            }
            // Fewer files may be allowed than there are seats.
            seats.dismiss_now();
            sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}
