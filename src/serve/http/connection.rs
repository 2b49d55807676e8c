//! One connection: its limits, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;
use tracing::debug;

use super::Limits;
use crate::serve::accept::stopped;
use crate::serve::seats::{Busy, Seat};

/// Bytes and number of the headers of a request.
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_HEADERS: usize = 64;
/// For an answer to be sent, when the connection is to end.
const LAST_ANSWER: Duration = Duration::from_secs(2);

/// Where the latest request of a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing was asked yet.
    None,
    /// Its head is there.
    Arriving,
    /// All of it is there.
    Answering,
    Answered,
}

/// The requests of a connection; handlers find it among the extensions of theirs.
#[derive(Clone)]
pub struct Requests {
    seat: Arc<Seat>,
    stage: watch::Sender<Stage>,
}

impl Requests {
    fn arrive(&self) {
        self.seat.touch();
        self.stage.send_replace(Stage::Arriving);
    }

    /// The whole request is there, and is answered while what is returned lives. Until then, nobody waits for its connection.
    pub fn begin(&self) -> Busy {
        self.stage.send_replace(Stage::Answering);
        self.seat.begin()
    }

    fn end(&self) {
        self.stage.send_replace(Stage::Answered);
    }
}

/// Serves a connection to its end; when `stop` becomes true, or its seat is needed, it may end its request.
pub async fn serve(
    stream: TcpStream,
    app: Router,
    limits: Limits,
    seat: Arc<Seat>,
    mut stop: watch::Receiver<bool>,
) {
    // Answers are small and waited for.
    if let Err(error) = stream.set_nodelay(true) {
        debug!("a connection cannot be told not to delay: {error}");
    }
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.write));
    let (stage, stages) = watch::channel(Stage::None);
    let requests = Requests { seat: seat.clone(), stage };
    let app = TowerToHyperService::new(app);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let requests = requests.clone();
        requests.arrive();
        request.extensions_mut().insert(requests.clone());
        let answer = app.call(request);
        async move {
            let answer = answer.await;
            requests.end();
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stopped(&mut stop) => None,
        () = seat.dismissed() => {
            debug!("a silent connection gives way to another one");
            match *stages.borrow() {
                Stage::None | Stage::Arriving => Some(Ok(())),
                Stage::Answering | Stage::Answered => None,
            }
        }
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = idle(stages) => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        debug!("a connection has ended: {error}");
    }
}

/// Waits until no request has been answered for a moment: its answer is then sent, and half a request does not count.
async fn idle(mut stages: watch::Receiver<Stage>) {
    loop {
        // The sender lives as long as the connection, which ends first otherwise.
        let _ = stages.wait_for(|stage| *stage != Stage::Answering).await;
        if timeout(LAST_ANSWER, stages.changed()).await.is_err() {
            return;
        }
    }
}
