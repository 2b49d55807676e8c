//! The start of a connection: both sides say who they are.

use std::ops::Range;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::ZmtpError;
use super::frames::{COMMAND, command, command_body, split_command};

const SIGNATURE: [u8; 10] = [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F];
const GREETING_BYTES: usize = 64;
const MAJOR: u8 = 3;
const MECHANISM: Range<usize> = 12..32;

/// Sockets that a REP socket talks to.
const PEERS: [&str; 2] = ["REQ", "DEALER"];

/// Exchanges greetings and READY commands.
///
/// # Errors
/// The other side speaks something else, or is a socket of another kind.
pub async fn greet(
    reader: &mut (impl AsyncRead + Unpin),
    writer: &mut (impl AsyncWrite + Unpin),
) -> Result<(), ZmtpError> {
    let mut greeting = [0; GREETING_BYTES];
    greeting[..SIGNATURE.len()].copy_from_slice(&SIGNATURE);
    greeting[SIGNATURE.len()] = MAJOR;
    greeting[MECHANISM][..4].copy_from_slice(b"NULL");
    writer.write_all(&greeting).await?;

    let mut theirs = [0; GREETING_BYTES];
    // Older versions and other protocols send less than a greeting, so its start is looked at first.
    let (start, rest) = theirs.split_at_mut(SIGNATURE.len() + 1);
    reader.read_exact(start).await?;
    if start[0] != SIGNATURE[0] || start[9] & 1 == 0 {
        return Err(ZmtpError::Signature);
    }
    if start[10] < MAJOR {
        return Err(ZmtpError::Version { major: start[10] });
    }
    reader.read_exact(rest).await?;
    let mechanism = String::from_utf8_lossy(&theirs[MECHANISM]).trim_end_matches('\0').to_owned();
    if mechanism != "NULL" {
        return Err(ZmtpError::Mechanism(mechanism));
    }

    let mut ready = vec![];
    property(&mut ready, "Socket-Type", b"REP");
    writer.write_all(&command("READY", &ready)).await?;
    let peer = peer(reader).await?;
    if PEERS.contains(&peer.as_str()) {
        return Ok(());
    }
    let reason = "this is a REP socket";
    let error = [&[reason.len() as u8], reason.as_bytes()].concat();
    writer.write_all(&command("ERROR", &error)).await?;
    Err(ZmtpError::Peer(peer))
}

/// The kind of the other side's socket, from its READY command.
async fn peer(reader: &mut (impl AsyncRead + Unpin)) -> Result<String, ZmtpError> {
    let wrong = || ZmtpError::Command("READY");
    let flags = reader.read_u8().await?;
    if flags & COMMAND == 0 {
        return Err(wrong());
    }
    let body = command_body(reader, flags).await?;
    let (name, properties) = split_command(&body).ok_or_else(wrong)?;
    if name != b"READY" {
        return Err(wrong());
    }
    let peer = find(properties, "Socket-Type").ok_or_else(wrong)?;
    Ok(String::from_utf8_lossy(peer).into_owned())
}

fn property(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.push(name.len() as u8);
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(value);
}

/// The value of a property, whose name may be written in either case.
fn find<'p>(mut properties: &'p [u8], wanted: &str) -> Option<&'p [u8]> {
    loop {
        let (name, rest) = split_command(properties)?;
        let (length, rest) = rest.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        if name.eq_ignore_ascii_case(wanted.as_bytes()) {
            return Some(value);
        }
        properties = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(mechanism: &str, socket: &str) -> Vec<u8> {
        let mut bytes = [SIGNATURE.as_slice(), &[3, 1]].concat();
        bytes.extend_from_slice(mechanism.as_bytes());
        bytes.resize(GREETING_BYTES, 0);
        let mut properties = vec![];
        property(&mut properties, "Identity", b"");
        property(&mut properties, "socket-type", socket.as_bytes());
        bytes.extend(command("READY", &properties));
        bytes
    }

    async fn greeted(sends: &[u8]) -> (Result<(), ZmtpError>, Vec<u8>) {
        let (mut reader, mut got) = (sends, vec![]);
        (greet(&mut reader, &mut got).await, got)
    }

    async fn refused(sends: &[u8]) -> String {
        greeted(sends).await.0.expect_err("a refusal").to_string()
    }

    #[tokio::test]
    async fn a_req_socket_is_greeted() {
        for socket in PEERS {
            let (result, got) = greeted(&greeting("NULL", socket)).await;
            result.unwrap();
            assert_eq!(&got[..12], b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0");
            assert_eq!(&got[12..17], b"NULL\0");
            assert_eq!(&got[64..], b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03REP");
        }
    }

    #[tokio::test]
    async fn others_are_sent_away() {
        let http = refused(b"GET / HTTP/1.1\r\nHost: robot\r\n").await;
        assert!(http.contains("does not speak ZeroMQ"));
        let old = [SIGNATURE.as_slice(), &[1]].concat();
        assert!(refused(&old).await.contains("version 1"));
        assert!(refused(&greeting("CURVE", "REQ")).await.contains("'CURVE'"));
        let (result, got) = greeted(&greeting("NULL", "SUB")).await;
        assert!(result.unwrap_err().to_string().contains("'SUB'"));
        assert!(got.ends_with(b"\x05ERROR\x14this is a REP socket"));
        let whole = greeting("NULL", "REQ");
        for end in 0..whole.len() {
            assert!(matches!(greeted(&whole[..end]).await.0, Err(ZmtpError::Io(_))), "{end}");
        }
        let long = [&whole[..GREETING_BYTES], b"\x06\0\0\0\0\0\0\x10\x01"].concat();
        assert!(refused(&long).await.contains("of 4097 bytes is announced where at most 4096"));
    }
}
