//! MCAP is a sequence of records: an opcode, a length of eight bytes, and so many bytes.

use std::borrow::Cow;

use mcap::records::{Channel, MessageHeader, Record, op};

/// Opcode and length.
pub(super) const HEAD_LEN: usize = 9;
/// Bytes of a chunk's header before the name of its compression, and of a message's before its data.
const CHUNK_FIXED_LEN: usize = 32;
const MESSAGE_HEADER_LEN: usize = 22;

/// One record in memory.
pub(super) struct Raw<'a> {
    pub opcode: u8,
    pub body: &'a [u8],
    /// Where it begins.
    pub offset: usize,
}

/// The records of a stretch of bytes, up to the first that is not whole.
pub(super) struct Records<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Records<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// Where the next record begins; at the end of the bytes unless one is not whole.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Raw<'a>;

    fn next(&mut self) -> Option<Raw<'a>> {
        let rest = &self.bytes[self.offset..];
        let (opcode, length) = head(rest)?;
        let body = rest[HEAD_LEN..].get(..usize::try_from(length).ok()?)?;
        let offset = self.offset;
        self.offset += HEAD_LEN + body.len();
        Some(Raw { opcode, body, offset })
    }
}

/// Opcode and length of the body of the record that `bytes` begin with. No record has opcode 0.
pub(super) fn head(bytes: &[u8]) -> Option<(u8, u64)> {
    let (opcode, rest) = bytes.split_first()?;
    let length = u64::from_le_bytes(*rest.first_chunk::<8>()?);
    (*opcode != 0).then_some((*opcode, length))
}

/// What a reader of messages looks at.
pub(super) enum Parsed<'a> {
    Schema { id: u16, name: String, encoding: String, data: Cow<'a, [u8]> },
    Channel(Channel),
    Message { header: MessageHeader, data: Cow<'a, [u8]> },
    Other,
}

/// Takes a record of the data section or of a chunk apart.
///
/// # Errors
/// A body that does not fit its opcode.
pub(super) fn parse<'a>(raw: &Raw<'a>) -> Result<Parsed<'a>, String> {
    if !matches!(raw.opcode, op::SCHEMA | op::CHANNEL | op::MESSAGE) {
        return Ok(Parsed::Other);
    }
    let parsed = mcap::parse_record(raw.opcode, raw.body).map_err(|error| text(&error))?;
    Ok(match parsed {
        Record::Schema { header, data } => {
            Parsed::Schema { id: header.id, name: header.name, encoding: header.encoding, data }
        }
        Record::Channel(channel) => Parsed::Channel(channel),
        Record::Message { header, data } => Parsed::Message { header, data },
        _ => Parsed::Other,
    })
}

/// What stands before the data of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChunkHead {
    /// Times of the first and the last message, nanoseconds.
    pub start_ns: u64,
    pub end_ns: u64,
    pub unpacked_len: u64,
    /// CRC-32 of the unpacked data; 0: none was computed.
    pub crc: u32,
    pub compression: String,
    pub packed_len: u64,
    /// Bytes of the header itself.
    pub len: u64,
}

impl ChunkHead {
    /// Reads the header that `body` begins with; `None` if it is not whole.
    pub fn read(body: &[u8]) -> Option<Self> {
        let word = |at: usize| body.get(at..).and_then(|rest| rest.first_chunk::<8>());
        let half = |at: usize| body.get(at..).and_then(|rest| rest.first_chunk::<4>());
        let name_len = u32::from_le_bytes(*half(28)?) as usize;
        let name = body.get(CHUNK_FIXED_LEN..)?.get(..name_len)?;
        let name_end = CHUNK_FIXED_LEN + name_len;
        Some(Self {
            start_ns: u64::from_le_bytes(*word(0)?),
            end_ns: u64::from_le_bytes(*word(8)?),
            unpacked_len: u64::from_le_bytes(*word(16)?),
            crc: u32::from_le_bytes(*half(24)?),
            compression: String::from_utf8_lossy(name).into_owned(),
            packed_len: u64::from_le_bytes(*word(name_end)?),
            len: (name_end + 8) as u64,
        })
    }
}

/// Time of the message whose record has this `body`, of which its header suffices.
pub(super) fn message_time(body: &[u8]) -> Option<u64> {
    let header = body.first_chunk::<MESSAGE_HEADER_LEN>()?;
    header[6..].first_chunk::<8>().map(|time| u64::from_le_bytes(*time))
}

/// An error of the crate with its cause, on one line.
pub(super) fn text(error: &mcap::McapError) -> String {
    let cause = std::error::Error::source(error);
    let whole = cause.map_or(error.to_string(), |cause| format!("{error}: {cause}"));
    whole.split_whitespace().collect::<Vec<_>>().join(" ")
}
