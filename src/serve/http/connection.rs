//! One connection: its limits, and how it ends.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
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
use crate::serve::seats::Seat;

/// Bytes and number of the headers of a request.
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_HEADERS: usize = 64;
/// For an answer to be sent, when the connection is to end.
const LAST_ANSWER: Duration = Duration::from_secs(2);

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
    let (begin, under_way) = watch::channel(false);
    let app = TowerToHyperService::new(app);
    let of_requests = seat.clone();
    let service = service_fn(move |request| {
        begin.send_replace(true);
        let (answer, end, busy) = (app.call(request), begin.clone(), of_requests.begin());
        async move {
            let answer = answer.await;
            end.send_replace(false);
            drop(busy);
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
            let has_asked = under_way.has_changed().unwrap_or(false);
            if has_asked { None } else { Some(Ok(())) }
        }
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = idle(under_way) => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        debug!("a connection has ended: {error}");
    }
}

/// Waits until no request has been under way for a moment: its answer is then sent, and half a head does not count.
async fn idle(mut under_way: watch::Receiver<bool>) {
    loop {
        // The sender lives as long as the connection, which ends first otherwise.
        let _ = under_way.wait_for(|under_way| !under_way).await;
        if timeout(LAST_ANSWER, under_way.changed()).await.is_err() {
            return;
        }
    }
}
