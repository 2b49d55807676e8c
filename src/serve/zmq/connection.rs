//! One client's connection: its requests, one after the other, and their answers.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use tracing::debug;

use super::zmtp::{self, Received, ZmtpError};
use crate::contract::CancelToken;

/// How long a client may be silent between two requests; its socket connects again by itself when it has more to say.
pub const IDLE_TIME: Duration = Duration::from_secs(600);

/// How long a client may take to send a greeting or a request, once it has begun, and to take in some of an answer.
pub const MESSAGE_TIME: Duration = Duration::from_secs(10);

/// How long it takes at most to notice that the server ends.
const LOOK_TIME: Duration = Duration::from_millis(100);

/// Serves a client until it leaves, breaks the protocol or the server ends; `answer` gives the answer to a request.
pub(super) fn serve(
    stream: &TcpStream,
    stop: &CancelToken,
    answer: impl Fn(Vec<u8>) -> Vec<u8>,
) -> Result<(), ZmtpError> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LOOK_TIME))?;
    stream.set_write_timeout(Some(MESSAGE_TIME))?;
    let mut clocked = Clocked { stream, stop, deadline: Instant::now() + MESSAGE_TIME };
    zmtp::greet(&mut clocked)?;
    let mut reader = BufReader::new(clocked);
    loop {
        reader.get_mut().deadline = Instant::now() + IDLE_TIME;
        let mut first = [0];
        if reader.read(&mut first)? == 0 {
            return Ok(());
        }
        reader.get_mut().deadline = Instant::now() + MESSAGE_TIME;
        let bytes = match zmtp::receive(first[0], &mut reader)? {
            Received::Message(parts) => match respond(parts, &answer) {
                Some(bytes) => bytes,
                None => continue,
            },
            Received::Ping(context) => zmtp::pong(&context),
            Received::Other => continue,
        };
        reader.get_mut().write_all(&bytes)?;
    }
}

/// The bytes that answer a message. As ZeroMQ's own sockets do, it drops one without the empty part that tells addresses
/// from content.
fn respond(mut parts: Vec<Vec<u8>>, answer: impl Fn(Vec<u8>) -> Vec<u8>) -> Option<Vec<u8>> {
    let Some(delimiter) = parts.iter().position(Vec::is_empty) else {
        debug!("a message of {} parts without an empty one is dropped", parts.len());
        return None;
    };
    let content = parts.split_off(delimiter + 1);
    // Nobody reads more than the first part of a request, and a request without one is refused like any other garbage.
    let answer = answer(content.into_iter().next().unwrap_or_default());
    let parts: Vec<&[u8]> = parts.iter().chain([&answer]).map(Vec::as_slice).collect();
    Some(zmtp::message(&parts))
}

/// A stream whose reads end at a deadline, or when the server does.
struct Clocked<'a> {
    stream: &'a TcpStream,
    stop: &'a CancelToken,
    deadline: Instant,
}

impl Read for Clocked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.stop.is_cancelled() {
                return Err(io::Error::other("the server ends"));
            }
            if Instant::now() >= self.deadline {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the client was silent too long",
                ));
            }
            match self.stream.read(buffer) {
                Err(error) if is_pause(&error) => {}
                other => return other,
            }
        }
    }
}

/// Whether nothing has arrived within [`LOOK_TIME`].
fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

impl Write for Clocked<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
