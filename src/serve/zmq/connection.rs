//! One client's connection: its requests, one after the other, and their answers.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutWriter;

use super::Limits;
use super::handler::{Handler, error_answer};
use super::zmtp::{self, Intake, Received, Request, ZmtpError};
use crate::serve::accept::stopped;
use crate::serve::room::Room;
use crate::serve::seats::{Busy, Seat};

/// The side of a connection that answers go to. A client that takes nothing of them is left.
type Writer = Pin<Box<TimeoutWriter<OwnedWriteHalf>>>;

/// What has come, and its mark, which is kept until it is answered.
type Marked = (Received, Busy);

/// Serves a client until it leaves, breaks the protocol, or is idle when the server ends or its seat is needed. What is
/// computed for a client ends with its connection.
pub async fn serve(
    stream: TcpStream,
    handler: &Handler,
    limits: Limits,
    room: Room,
    seat: Arc<Seat>,
    stop: watch::Receiver<bool>,
) -> Result<(), ZmtpError> {
    stream.set_nodelay(true)?;
    let (reader, writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let mut writer = TimeoutWriter::new(writer);
    writer.set_timeout(Some(limits.write));
    let mut writer = Box::pin(writer);
    let mut stopping = stop.clone();
    tokio::select! {
        greeted = in_time(limits.message, zmtp::greet(&mut reader, &mut writer)) => greeted?,
        // Who has not said anything yet waits for nothing.
        () = stopped(&mut stopping) => return Ok(()),
        () = seat.dismissed() => return Err(ZmtpError::Dismissed),
    }
    let intake = Intake { limit: limits.message_bytes, room };
    let (sender, received) = mpsc::channel(1);
    // Reading goes on while an answer is awaited: the client may leave, or ask for a sign of life.
    tokio::select! {
        ended = read(reader, &intake, limits.message, &seat, sender) => ended,
        ended = answer(received, writer, handler, limits.idle, &seat, stop) => ended,
    }
}

async fn in_time<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, ZmtpError>>,
) -> Result<T, ZmtpError> {
    timeout(limit, work).await.unwrap_or(Err(ZmtpError::Slow(limit)))
}

/// Hands on what the client sends, until it leaves. Each message must be there within `limit` of its first byte.
async fn read(
    mut reader: BufReader<OwnedReadHalf>,
    intake: &Intake,
    limit: Duration,
    seat: &Arc<Seat>,
    sender: mpsc::Sender<Marked>,
) -> Result<(), ZmtpError> {
    loop {
        let first = match reader.read_u8().await {
            Ok(first) => first,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        seat.touch();
        let received = in_time(limit, zmtp::receive(first, &mut reader, intake)).await?;
        if sender.send((received, seat.begin())).await.is_err() {
            return Ok(());
        }
    }
}

/// Answers until the client is silent for `idle` or while its seat is needed, or the server ends.
async fn answer(
    mut received: mpsc::Receiver<Marked>,
    mut writer: Writer,
    handler: &Handler,
    idle: Duration,
    seat: &Seat,
    mut stop: watch::Receiver<bool>,
) -> Result<(), ZmtpError> {
    let mut next = None;
    loop {
        let (now, _busy) = match next.take() {
            Some(now) => now,
            None => tokio::select! {
                biased;
                come = timeout(idle, received.recv()) => match come {
                    Ok(Some(now)) => now,
                    Ok(None) => return Ok(()),
                    Err(_) => return Err(ZmtpError::Silent(idle)),
                },
                () = stopped(&mut stop) => return Ok(()),
                () = seat.dismissed() => return Err(ZmtpError::Dismissed),
            },
        };
        match now {
            Received::Request(request) => {
                next = respond(request, &mut received, &mut writer, handler).await?;
            }
            Received::Ping(context) => writer.write_all(&zmtp::pong(&context)).await?,
            Received::Other => {}
        }
    }
}

/// Answers one request, and pings meanwhile; returns what else has come.
async fn respond(
    request: Request,
    received: &mut mpsc::Receiver<Marked>,
    writer: &mut Writer,
    handler: &Handler,
) -> Result<Option<Marked>, ZmtpError> {
    let Request { route, content } = request;
    let mut next = None;
    let answer = match content {
        Err(refusal) => error_answer(refusal.to_string()),
        Ok(content) => {
            let mut answering = pin!(handler.handle(content));
            loop {
                tokio::select! {
                    answer = &mut answering => break answer,
                    Some((come, busy)) = received.recv(), if next.is_none() => match come {
                        Received::Ping(context) => writer.write_all(&zmtp::pong(&context)).await?,
                        other => next = Some((other, busy)),
                    },
                }
            }
        }
    };
    let parts: Vec<&[u8]> = route.iter().chain([&answer]).map(Vec::as_slice).collect();
    writer.write_all(&zmtp::message(&parts)).await?;
    Ok(next)
}
