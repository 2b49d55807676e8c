//! Frames, of which messages and commands are made.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::{MAX_COMMAND_BYTES, ZmtpError};

pub(super) const MORE: u8 = 1;
pub(super) const LONG: u8 = 2;
pub(super) const COMMAND: u8 = 4;

/// The bytes of a message.
pub fn message(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![];
    for (index, part) in parts.iter().enumerate() {
        let more = if index + 1 < parts.len() { MORE } else { 0 };
        frame(&mut bytes, more, part);
    }
    bytes
}

/// The bytes of the answer to a ping.
pub fn pong(context: &[u8]) -> Vec<u8> {
    command("PONG", context)
}

fn frame(out: &mut Vec<u8>, flags: u8, body: &[u8]) {
    match u8::try_from(body.len()) {
        Ok(length) => out.extend_from_slice(&[flags, length]),
        Err(_) => {
            out.push(flags | LONG);
            out.extend_from_slice(&(body.len() as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(body);
}

/// The bytes of a command.
pub(super) fn command(name: &str, data: &[u8]) -> Vec<u8> {
    let body = [&[name.len() as u8], name.as_bytes(), data].concat();
    let mut bytes = vec![];
    frame(&mut bytes, COMMAND, &body);
    bytes
}

/// Name and data of a command.
pub(super) fn split_command(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = body.split_first()?;
    rest.split_at_checked((*length).into())
}

/// The length of a frame whose flags have been read.
pub(super) async fn length(
    stream: &mut (impl AsyncRead + Unpin),
    flags: u8,
) -> Result<u64, ZmtpError> {
    if flags & !(MORE | LONG | COMMAND) != 0 {
        return Err(ZmtpError::Flags(flags));
    }
    Ok(if flags & LONG != 0 { stream.read_u64().await? } else { stream.read_u8().await?.into() })
}

/// The body of a command whose flags have been read.
pub(super) async fn command_body(
    stream: &mut (impl AsyncRead + Unpin),
    flags: u8,
) -> Result<Vec<u8>, ZmtpError> {
    let length = length(stream, flags).await?;
    match usize::try_from(length) {
        Ok(short) if short <= MAX_COMMAND_BYTES => Ok(exactly(stream, short).await?),
        _ => Err(ZmtpError::LongCommand { length }),
    }
}

/// So many bytes, which the caller has found to be few.
pub(super) async fn exactly(
    stream: &mut (impl AsyncRead + Unpin),
    length: usize,
) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}
