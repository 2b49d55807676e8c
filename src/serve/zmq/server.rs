//! Connections and the queue of their requests: clients are served side by side, predictions one after the other.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use tracing::{debug, info, warn};

use super::connection;
use super::handler::{Handler, Predict, error_answer};
use crate::contract::CancelToken;

/// Clients that are connected at the same time; further ones are disconnected at once, and try again by themselves.
pub const MAX_CLIENTS: usize = 32;

/// Requests that wait for the policy.
pub const MAX_WAITING: usize = 8;

/// How long a request may wait for its answer, prediction included.
pub const ANSWER_TIME: Duration = Duration::from_secs(30);

/// How often it is looked for new clients.
const ACCEPT_TIME: Duration = Duration::from_millis(10);

/// How long nobody is accepted after that has failed.
const RETRY_TIME: Duration = Duration::from_secs(1);

/// What a client hears when nothing answers requests any more.
const GONE: &str = "the server ends";

/// Why a server cannot start, or ends.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(
        "cannot listen on {address}: {error}; is another server there, or is it no address of this machine?"
    )]
    Bind { address: SocketAddr, error: io::Error },
    #[error("cannot start the thread that predicts: {0}")]
    Thread(io::Error),
}

/// A REP socket of ZeroMQ over TCP.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

/// A request on its way to the policy.
struct Job {
    request: Vec<u8>,
    /// Nobody waits for the answer any more from here on.
    deadline: Instant,
    answer: SyncSender<Vec<u8>>,
}

impl Server {
    /// Listens on an address; port 0 is any that is free.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let bound = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        });
        bound.map_err(|error| ServeError::Bind { address, error })
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is raised, which a client that ends the server does too. Requests that have arrived are
    /// answered first.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn run<P: Predict + Send>(
        self,
        mut handler: Handler<P>,
        stop: &CancelToken,
    ) -> Result<(), ServeError> {
        info!("ZeroMQ server on tcp://{}", self.address);
        if !self.address.ip().is_loopback() && !handler.has_token() {
            warn!("other machines reach this server, and no token is asked for");
        }
        let (jobs, queue) = sync_channel(MAX_WAITING);
        let clients = AtomicUsize::new(0);
        thread::scope(|scope| {
            thread::Builder::new()
                .name("zmq predict".to_owned())
                .spawn_scoped(scope, || predict(&mut handler, queue, stop))
                .map_err(ServeError::Thread)?;
            while !stop.is_cancelled() {
                let Some(stream) = self.accept() else { continue };
                let place = Place::take(&clients);
                let jobs = jobs.clone();
                let spawned = place.map(|place| {
                    thread::Builder::new().name("zmq client".to_owned()).spawn_scoped(
                        scope,
                        move || {
                            serve(&stream, stop, &jobs);
                            drop(place);
                        },
                    )
                });
                match spawned {
                    Some(Ok(_)) => {}
                    Some(Err(error)) => {
                        warn!("a client is disconnected, for want of a thread: {error}")
                    }
                    None => debug!("a client is disconnected: there are {MAX_CLIENTS}"),
                }
            }
            // The queue ends when all who can add to it are gone.
            drop(jobs);
            Ok(())
        })
    }

    /// The next client; `None` if there is none for now.
    fn accept(&self) -> Option<TcpStream> {
        match self.listener.accept() {
            Ok((stream, _)) => Some(stream),
            Err(error) => {
                if error.kind() == io::ErrorKind::WouldBlock {
                    thread::sleep(ACCEPT_TIME);
                } else {
                    // Too many open files, or a client that is gone already: neither ends the server.
                    warn!("cannot accept a connection: {error}");
                    thread::sleep(RETRY_TIME);
                }
                None
            }
        }
    }
}

/// A place among the [`MAX_CLIENTS`].
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(clients: &'a AtomicUsize) -> Option<Self> {
        let place = Place(clients);
        // The place is given back where there are too many, too.
        (clients.fetch_add(1, Ordering::Relaxed) < MAX_CLIENTS).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers the queue's requests, in their order, until nobody can add to it.
fn predict<P: Predict>(handler: &mut Handler<P>, queue: Receiver<Job>, stop: &CancelToken) {
    for job in queue {
        if Instant::now() >= job.deadline {
            continue;
        }
        // A client that has gone away meanwhile does not want it.
        let _ = job.answer.send(handler.handle(&job.request));
        if handler.is_killed() {
            stop.cancel();
        }
    }
}

/// Serves one client to its end.
fn serve(stream: &TcpStream, stop: &CancelToken, jobs: &SyncSender<Job>) {
    let peer = stream.peer_addr().map_or("a client".to_owned(), |address| address.to_string());
    debug!("{peer} connects");
    // A stream of a listener that does not block does not block on some systems.
    let served = stream
        .set_nonblocking(false)
        .map_err(Into::into)
        .and_then(|()| connection::serve(stream, stop, |request| ask(request, jobs)));
    match served {
        Ok(()) => debug!("{peer} leaves"),
        Err(error) => debug!("{peer} is disconnected: {error}"),
    }
}

/// The answer to a request, at the latest after [`ANSWER_TIME`].
fn ask(request: Vec<u8>, jobs: &SyncSender<Job>) -> Vec<u8> {
    let (answer, answered) = sync_channel(1);
    let job = Job { request, deadline: Instant::now() + ANSWER_TIME, answer };
    if let Err(error) = jobs.try_send(job) {
        return error_answer(match error {
            TrySendError::Full(_) => {
                format!("busy: {MAX_WAITING} requests wait already; ask again later")
            }
            TrySendError::Disconnected(_) => GONE.to_owned(),
        });
    }
    answered.recv_timeout(ANSWER_TIME).unwrap_or_else(|error| {
        error_answer(match error {
            RecvTimeoutError::Timeout => {
                format!("busy: no answer within {} s; ask again later", ANSWER_TIME.as_secs())
            }
            RecvTimeoutError::Disconnected => GONE.to_owned(),
        })
    })
}
