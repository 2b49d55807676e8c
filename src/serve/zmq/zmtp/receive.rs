//! What a peer sends once both sides have greeted.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::frames::{COMMAND, MORE, command_body, exactly, length, split_command};
use super::{MAX_PARTS, ZmtpError};
use crate::serve::room::{AHEAD_BYTES, NoRoom, Room, Share};

/// Bytes of a part that tells a router where the answer goes; identities of ZeroMQ have at most these.
const MAX_ADDRESS_BYTES: u64 = 255;

/// What is taken of a message.
pub struct Intake {
    /// Bytes of a request.
    pub limit: usize,
    /// Where requests are held.
    pub room: Room,
}

/// What a peer sends.
pub enum Received {
    Request(Request),
    /// A sign of life is asked for, with bytes that it must carry.
    Ping(Vec<u8>),
    /// Something that needs no answer.
    Other,
}

/// A request and where its answer goes.
pub struct Request {
    /// The parts before the answer: addresses, and the empty part that ends them.
    pub route: Vec<Vec<u8>>,
    pub content: Result<Content, Refusal>,
}

/// The bytes of a request, and their share of what the server holds.
pub struct Content {
    pub bytes: Vec<u8>,
    _share: Share,
}

impl AsRef<[u8]> for Content {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl From<Content> for Bytes {
    /// The share is given back with the last part of the bytes that is in use.
    fn from(content: Content) -> Self {
        Bytes::from_owner(content)
    }
}

/// Why the bytes of a request were not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the request has {length} bytes; at most {limit} are accepted")]
    TooLarge { length: u64, limit: usize },
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
}

/// The message or command that begins with the byte `first`. A request that is not kept is read to its end, so that it
/// can be answered.
///
/// # Errors
/// The other side breaks the protocol, or off.
pub async fn receive(
    first: u8,
    stream: &mut (impl AsyncRead + Unpin),
    intake: &Intake,
) -> Result<Received, ZmtpError> {
    if first & COMMAND != 0 {
        return command(first, stream).await;
    }
    let (mut flags, mut route, mut content) = (first, vec![], None);
    let (mut is_addressed, mut is_request) = (true, false);
    for _ in 0..MAX_PARTS {
        if flags & COMMAND != 0 {
            return Err(ZmtpError::Flags(flags));
        }
        let length = length(stream, flags).await?;
        if is_request {
            // Nobody reads more than the first part of a request.
            match content {
                None => content = Some(keep(length, stream, intake).await?),
                Some(_) => skip(length, stream).await?,
            }
        } else if length <= MAX_ADDRESS_BYTES {
            let part = exactly(stream, length as usize).await?;
            is_request = part.is_empty();
            route.push(part);
        } else {
            is_addressed = false;
            skip(length, stream).await?;
        }
        if flags & MORE == 0 {
            // As ZeroMQ's own sockets do, this one drops a message without the empty part that tells addresses from
            // content.
            if !(is_request && is_addressed) {
                return Ok(Received::Other);
            }
            // A request without content is refused like any other garbage.
            let nothing = || Ok(Content { bytes: vec![], _share: Share::default() });
            return Ok(Received::Request(Request {
                route,
                content: content.unwrap_or_else(nothing),
            }));
        }
        flags = stream.read_u8().await?;
    }
    Err(ZmtpError::TooManyParts)
}

async fn command(flags: u8, stream: &mut (impl AsyncRead + Unpin)) -> Result<Received, ZmtpError> {
    let body = command_body(stream, flags).await?;
    let (name, data) = split_command(&body).ok_or(ZmtpError::Command("of the peer"))?;
    if name != b"PING" {
        return Ok(Received::Other);
    }
    // Two bytes of the time to live stand before the context.
    let context = data.get(2..).ok_or(ZmtpError::Command("PING"))?;
    Ok(Received::Ping(context.to_vec()))
}

/// The content of a request, if there is room for it; it is read to its end in any case.
async fn keep(
    length: u64,
    stream: &mut (impl AsyncRead + Unpin),
    intake: &Intake,
) -> Result<Result<Content, Refusal>, ZmtpError> {
    let limit = intake.limit;
    if length > limit as u64 {
        skip(length, stream).await?;
        return Ok(Err(Refusal::TooLarge { length, limit }));
    }
    let length = length as usize;
    let (mut bytes, mut share) = (Vec::new(), Share::default());
    while bytes.len() < length {
        let left = length - bytes.len();
        if bytes.len() == bytes.capacity() {
            bytes.reserve(left.min(bytes.len().max(AHEAD_BYTES)));
        }
        let read = (&mut *stream).take(left as u64).read_buf(&mut bytes).await?;
        if read == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        if let Err(full) = share.grow(&intake.room, read) {
            skip((left - read) as u64, stream).await?;
            return Ok(Err(full.into()));
        }
    }
    Ok(Ok(Content { bytes, _share: share }))
}

/// Reads so many bytes and forgets them.
async fn skip(length: u64, stream: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let skipped = tokio::io::copy(&mut stream.take(length), &mut tokio::io::sink()).await?;
    if skipped < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::frames::{LONG, command as command_of, message, pong};
    use super::*;

    fn intake() -> Intake {
        Intake { limit: 1 << 20, room: Room::new(1 << 20) }
    }

    async fn received(mut bytes: &[u8]) -> Result<Received, ZmtpError> {
        let first = bytes.read_u8().await?;
        receive(first, &mut bytes, &intake()).await
    }

    async fn request(bytes: &[u8]) -> Request {
        match received(bytes).await {
            Ok(Received::Request(request)) => request,
            Ok(_) => panic!("no request"),
            Err(error) => panic!("{error}"),
        }
    }

    async fn error(bytes: &[u8]) -> ZmtpError {
        received(bytes).await.err().expect("an error")
    }

    fn long(flags: u8, length: u64) -> Vec<u8> {
        [&[flags | LONG][..], &length.to_be_bytes()].concat()
    }

    #[tokio::test]
    async fn requests_of_every_length_go_through() {
        for length in [0, 1, 255, 256, 100_000, 1 << 20] {
            let body = vec![7; length];
            let request = request(&message(&[b"robot", b"", &body, b"more"])).await;
            assert_eq!(request.route, [b"robot".to_vec(), vec![]]);
            assert!(request.content.unwrap().bytes == body, "{length}");
        }
        assert!(request(&message(&[b""])).await.content.unwrap().bytes.is_empty());
    }

    #[tokio::test]
    async fn what_has_no_address_is_dropped() {
        for parts in [&[&b"a"[..], b"b"][..], &[&[7; 256], b"", b"x"], &[b"x"]] {
            assert!(matches!(received(&message(parts)).await, Ok(Received::Other)));
        }
    }

    #[tokio::test]
    async fn a_request_that_is_too_large_is_read_to_its_end_and_refused() {
        let large = vec![7; (1 << 20) + 1];
        let bytes = message(&[b"", &large, b"more"]);
        let expected = Refusal::TooLarge { length: large.len() as u64, limit: 1 << 20 };
        assert_eq!(request(&bytes).await.content.err(), Some(expected));
        let full = Intake { limit: 1 << 20, room: Room::new(1000) };
        let bytes = message(&[b"", &large[1..]]);
        let mut rest = &bytes[1..];
        let received = receive(bytes[0], &mut rest, &full).await.unwrap();
        let Received::Request(request) = received else { panic!("no request") };
        assert_eq!(request.content.err(), Some(Refusal::NoRoom(NoRoom)));
        assert_eq!((rest.len(), full.room.held()), (0, 0));
    }

    #[tokio::test]
    async fn announced_lengths_are_not_believed() {
        let first = [&[MORE, 0][..], &long(0, u64::MAX), b"x"].concat();
        for bytes in [long(0, u64::MAX), long(0, 1 << 50), first] {
            assert!(matches!(error(&bytes).await, ZmtpError::Io(_)));
        }
        assert!(matches!(error(&long(COMMAND, 1 << 50)).await, ZmtpError::LongCommand { .. }));
        let many = [&[MORE, 0].repeat(MAX_PARTS)[..], &[0, 0]].concat();
        assert!(matches!(error(&many).await, ZmtpError::TooManyParts));
        assert!(matches!(error(&[8, 0]).await, ZmtpError::Flags(8)));
        assert!(matches!(error(&[MORE, 0, COMMAND, 0]).await, ZmtpError::Flags(COMMAND)));
    }

    #[tokio::test]
    async fn pings_are_told_from_other_commands() {
        let ping = command_of("PING", b"\0\x64abc");
        let Ok(Received::Ping(context)) = received(&ping).await else { panic!("no ping") };
        assert_eq!(pong(&context), b"\x04\x08\x04PONGabc");
        let other = received(&command_of("SUBSCRIBE", b"x")).await;
        assert!(matches!(other, Ok(Received::Other)));
        assert!(matches!(error(&command_of("PING", b"")).await, ZmtpError::Command("PING")));
        assert!(matches!(error(b"\x04\x02\x09x").await, ZmtpError::Command(_)));
    }

    proptest! {
        /// Whatever comes, reading ends, and gives back what it has taken of the room.
        #[test]
        fn any_bytes_are_read_or_refused(
            flags in prop::collection::vec(0u8..16, 1..6),
            bytes in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let intake = Intake { limit: 100, room: Room::new(50) };
            for flags in flags {
                let mut rest = bytes.as_slice();
                drop(runtime.block_on(receive(flags, &mut rest, &intake)));
                prop_assert_eq!(intake.room.held(), 0);
            }
        }
    }
}
