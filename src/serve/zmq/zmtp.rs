//! ZMTP 3.0 as a REP socket speaks it to REQ and DEALER sockets, without security: rfc.zeromq.org/spec/23.
//!
//! Nothing is allocated by a length that the other side announces; memory grows with the bytes that arrive.

use std::io::{self, Read, Write};

/// Bytes of one message, all its parts together: more than four frames of 1920x1080 take, as RGB.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// Parts of one message; a REQ socket sends two, and each router on the way adds one.
pub const MAX_PARTS: usize = 16;

/// Bytes of one command.
const MAX_COMMAND_BYTES: usize = 4096;

const SIGNATURE: [u8; 10] = [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F];
const GREETING_BYTES: usize = 64;
const MAJOR: u8 = 3;
const MECHANISM: std::ops::Range<usize> = 12..32;

const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Sockets that a REP socket talks to.
const PEERS: [&str; 2] = ["REQ", "DEALER"];

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
    #[error("a frame of {length} bytes is announced where at most {limit} are accepted")]
    TooLarge { length: u64, limit: usize },
    #[error("a message has more than {MAX_PARTS} parts")]
    TooManyParts,
}

/// What a peer sends once both have greeted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// The parts of a message.
    Message(Vec<Vec<u8>>),
    /// A sign of life is asked for, with bytes that it must carry.
    Ping(Vec<u8>),
    /// A command that needs no answer.
    Other,
}

/// Both sides say who they are.
pub(super) fn greet(stream: &mut (impl Read + Write)) -> Result<(), ZmtpError> {
    let mut greeting = [0; GREETING_BYTES];
    greeting[..SIGNATURE.len()].copy_from_slice(&SIGNATURE);
    greeting[SIGNATURE.len()] = MAJOR;
    greeting[MECHANISM][..4].copy_from_slice(b"NULL");
    stream.write_all(&greeting)?;

    let mut theirs = [0; GREETING_BYTES];
    // Older versions and other protocols send less than a greeting, so its start is looked at first.
    let (start, rest) = theirs.split_at_mut(SIGNATURE.len() + 1);
    stream.read_exact(start)?;
    if start[0] != SIGNATURE[0] || start[9] & 1 == 0 {
        return Err(ZmtpError::Signature);
    }
    if start[10] < MAJOR {
        return Err(ZmtpError::Version { major: start[10] });
    }
    stream.read_exact(rest)?;
    let mechanism = String::from_utf8_lossy(&theirs[MECHANISM]).trim_end_matches('\0').to_owned();
    if mechanism != "NULL" {
        return Err(ZmtpError::Mechanism(mechanism));
    }

    let mut ready = vec![];
    property(&mut ready, "Socket-Type", b"REP");
    stream.write_all(&command("READY", &ready))?;
    let [flags] = chunk(stream)?;
    if flags & COMMAND == 0 {
        return Err(ZmtpError::Command("READY"));
    }
    let theirs = body(stream, flags, MAX_COMMAND_BYTES)?;
    let (name, properties) = split_command(&theirs).ok_or(ZmtpError::Command("READY"))?;
    if name != b"READY" {
        return Err(ZmtpError::Command("READY"));
    }
    let peer = find(properties, "Socket-Type").ok_or(ZmtpError::Command("READY"))?;
    let peer = String::from_utf8_lossy(peer).into_owned();
    if PEERS.contains(&peer.as_str()) {
        return Ok(());
    }
    let reason = "this is a REP socket";
    let mut error = vec![reason.len() as u8];
    error.extend_from_slice(reason.as_bytes());
    stream.write_all(&command("ERROR", &error))?;
    Err(ZmtpError::Peer(peer))
}

/// The message or command that begins with the byte `first`.
pub(super) fn receive(first: u8, stream: &mut impl Read) -> Result<Received, ZmtpError> {
    if first & COMMAND != 0 {
        let command = body(stream, first, MAX_COMMAND_BYTES)?;
        let (name, data) = split_command(&command).ok_or(ZmtpError::Command("of the peer"))?;
        // Two bytes of the time to live stand before the context.
        let context = || data.get(2..).map(<[u8]>::to_vec);
        return match name {
            b"PING" => context().map(Received::Ping).ok_or(ZmtpError::Command("PING")),
            _ => Ok(Received::Other),
        };
    }
    let (mut flags, mut parts, mut left) = (first, vec![], MAX_MESSAGE_BYTES);
    loop {
        if flags & COMMAND != 0 {
            return Err(ZmtpError::Flags(flags));
        }
        if parts.len() == MAX_PARTS {
            return Err(ZmtpError::TooManyParts);
        }
        let part = body(stream, flags, left)?;
        left -= part.len();
        parts.push(part);
        if flags & MORE == 0 {
            return Ok(Received::Message(parts));
        }
        [flags] = chunk(stream)?;
    }
}

/// The bytes of a message.
pub(super) fn message(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![];
    for (index, part) in parts.iter().enumerate() {
        let more = if index + 1 < parts.len() { MORE } else { 0 };
        frame(&mut bytes, more, part);
    }
    bytes
}

/// The bytes of the answer to a [`Received::Ping`].
pub(super) fn pong(context: &[u8]) -> Vec<u8> {
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

fn command(name: &str, data: &[u8]) -> Vec<u8> {
    let body = [&[name.len() as u8], name.as_bytes(), data].concat();
    let mut bytes = vec![];
    frame(&mut bytes, COMMAND, &body);
    bytes
}

fn split_command(body: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = body.split_first()?;
    rest.split_at_checked((*length).into())
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

fn chunk<const BYTES: usize>(stream: &mut impl Read) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The body of a frame of at most `limit` bytes whose flags have been read.
fn body(stream: &mut impl Read, flags: u8, limit: usize) -> Result<Vec<u8>, ZmtpError> {
    if flags & !(MORE | LONG | COMMAND) != 0 {
        return Err(ZmtpError::Flags(flags));
    }
    let length = if flags & LONG != 0 {
        u64::from_be_bytes(chunk(stream)?)
    } else {
        let [length] = chunk(stream)?;
        length.into()
    };
    if length > limit as u64 {
        return Err(ZmtpError::TooLarge { length, limit });
    }
    let mut body = vec![];
    stream.take(length).read_to_end(&mut body)?;
    if (body.len() as u64) < length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What another side sends, and what it is sent.
    struct Peer<'a> {
        sends: &'a [u8],
        got: Vec<u8>,
    }

    impl Read for Peer<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.sends.read(buffer)
        }
    }

    impl Write for Peer<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.got.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

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

    fn greeted(sends: &[u8]) -> (Result<(), ZmtpError>, Vec<u8>) {
        let mut peer = Peer { sends, got: vec![] };
        (greet(&mut peer), peer.got)
    }

    fn refused(sends: &[u8]) -> String {
        greeted(sends).0.expect_err("a refusal").to_string()
    }

    fn received(bytes: &[u8]) -> Result<Received, ZmtpError> {
        receive(bytes[0], &mut &bytes[1..])
    }

    #[test]
    fn a_req_socket_is_greeted() {
        for socket in PEERS {
            let (result, got) = greeted(&greeting("NULL", socket));
            result.unwrap();
            assert_eq!(&got[..12], b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\0");
            assert_eq!(&got[12..17], b"NULL\0");
            assert_eq!(&got[64..], b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03REP");
        }
    }

    #[test]
    fn others_are_sent_away() {
        assert!(refused(b"GET / HTTP/1.1\r\nHost: robot\r\n").contains("does not speak ZeroMQ"));
        let old = [SIGNATURE.as_slice(), &[1]].concat();
        assert!(refused(&old).contains("version 1"));
        assert!(refused(&greeting("CURVE", "REQ")).contains("'CURVE'"));
        let (result, got) = greeted(&greeting("NULL", "SUB"));
        assert!(result.unwrap_err().to_string().contains("'SUB'"));
        assert!(got.ends_with(b"\x05ERROR\x14this is a REP socket"));
        let whole = greeting("NULL", "REQ");
        for end in 0..whole.len() {
            assert!(matches!(greeted(&whole[..end]).0, Err(ZmtpError::Io(_))), "{end}");
        }
        let mut long = whole[..GREETING_BYTES].to_vec();
        long.extend_from_slice(b"\x06\0\0\0\0\0\0\x10\x01");
        assert!(refused(&long).contains("of 4097 bytes is announced where at most 4096"));
    }

    #[test]
    fn messages_of_every_length_go_through() {
        for length in [0, 1, 255, 256, 100_000] {
            let body = vec![7; length];
            let bytes = message(&[b"", &body]);
            assert_eq!(received(&bytes).unwrap(), Received::Message(vec![vec![], body]));
        }
    }

    #[test]
    fn announced_lengths_are_not_believed() {
        let long = |length: u64| [&[LONG][..], &length.to_be_bytes()].concat();
        assert!(matches!(received(&long(u64::MAX)), Err(ZmtpError::TooLarge { .. })));
        assert!(matches!(received(&long(1 << 50)), Err(ZmtpError::TooLarge { .. })));
        // Within the limit, but it does not come.
        assert!(matches!(received(&long(MAX_MESSAGE_BYTES as u64)), Err(ZmtpError::Io(_))));
        let first = [&[MORE, 1, 7][..], &long(MAX_MESSAGE_BYTES as u64)].concat();
        assert!(matches!(received(&first), Err(ZmtpError::TooLarge { .. })));
        let many = [&[MORE, 0].repeat(MAX_PARTS)[..], &[0, 0]].concat();
        assert!(matches!(received(&many), Err(ZmtpError::TooManyParts)));
        assert!(matches!(received(&[8, 0]), Err(ZmtpError::Flags(8))));
        assert!(matches!(received(&[MORE, 0, COMMAND, 0]), Err(ZmtpError::Flags(COMMAND))));
    }

    #[test]
    fn pings_are_told_from_other_commands() {
        let ping = command("PING", b"\0\x64abc");
        assert_eq!(received(&ping).unwrap(), Received::Ping(b"abc".to_vec()));
        assert_eq!(pong(b"abc"), b"\x04\x08\x04PONGabc");
        assert_eq!(received(&command("SUBSCRIBE", b"x")).unwrap(), Received::Other);
        assert!(matches!(received(&command("PING", b"")), Err(ZmtpError::Command("PING"))));
        assert!(matches!(received(b"\x04\x02\x09x"), Err(ZmtpError::Command(_))));
    }
}
