//! ZMTP 3.0 as a REP socket speaks it to REQ and DEALER sockets, without security: rfc.zeromq.org/spec/23.
//!
//! Little is allocated by a length that the other side announces; memory grows with the bytes that arrive.

mod frames;
mod greeting;
mod receive;

use std::io;
use std::time::Duration;

pub(super) use frames::{message, pong};
pub(super) use greeting::greet;
pub(super) use receive::{Intake, Received, Request, receive};

/// Parts of one message; a REQ socket sends two, and each router on the way adds one.
pub const MAX_PARTS: usize = 16;

/// Bytes of one command.
const MAX_COMMAND_BYTES: usize = 4096;

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum ZmtpError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the other side does not speak ZeroMQ")]
    Signature,
    #[error(
        "the other side speaks version {major} of ZeroMQ's protocol; libzmq 4.0 and later speak 3"
    )]
    Version { major: u8 },
    #[error("the other side wants the security mechanism '{0}'; only NULL is known")]
    Mechanism(String),
    #[error("the other side is no REQ or DEALER socket, but '{0}'")]
    Peer(String),
    #[error("the command {0} is not understood")]
    Command(&'static str),
    #[error("a frame begins with flags {0:#04x}, which do not exist")]
    Flags(u8),
    #[error(
        "a command of {length} bytes is announced where at most {MAX_COMMAND_BYTES} are accepted"
    )]
    LongCommand { length: u64 },
    #[error("a message has more than {MAX_PARTS} parts")]
    TooManyParts,
    #[error("a greeting or message was not there within {:.1} s", .0.as_secs_f64())]
    Slow(Duration),
    #[error("nothing has come for {:.0} s", .0.as_secs_f64())]
    Silent(Duration),
    #[error(
        "all connections are taken, and nothing has come from this one for longer than from any other"
    )]
    Dismissed,
}
