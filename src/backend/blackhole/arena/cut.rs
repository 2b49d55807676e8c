//! Streams to packets.

use super::plan::PlannedShard;
use super::{ALIGNMENT, PACKET_BYTES};

/// Consecutive tiles of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileRun {
    /// Number of the shard in its stream.
    pub shard: usize,
    /// Number of the first tile in the shard.
    pub first: usize,
    pub tiles: usize,
    /// Where the first tile begins, in bytes from the start of the packet.
    pub at: u64,
}

/// What the reader core of a bank reads at once, all for one consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number of the stream in its part.
    pub stream: usize,
    /// Number of the packet in its stream.
    pub number: usize,
    pub bank: u8,
    /// Bytes from the start of the bank.
    pub offset: u64,
    /// A multiple of [`ALIGNMENT`]; what the tiles leave of it is zero.
    pub bytes: u64,
    /// Bytes of tiles, from the start of the packet.
    pub payload: u64,
    /// Number of the instruction that uses the first tile.
    pub order: u32,
    pub runs: Vec<TileRun>,
}

impl Packet {
    pub fn tiles(&self) -> usize {
        self.runs.iter().map(|run| run.tiles).sum()
    }
}

/// The packets of a stream, which do not yet lie anywhere: their offsets are zero.
pub(super) fn cut(
    stream: usize,
    bank: u8,
    shards: &[PlannedShard],
    short_last: bool,
) -> Vec<Packet> {
    let mut packets: Vec<Packet> = Vec::new();
    for (shard, about) in shards.iter().enumerate() {
        let tile_bytes = about.format.tile_bytes() as u64;
        let mut first = 0;
        while first < about.tiles {
            let room = packets.last().map_or(0, |packet| PACKET_BYTES - packet.payload);
            if room < tile_bytes {
                packets.push(Packet {
                    stream,
                    number: packets.len(),
                    bank,
                    offset: 0,
                    bytes: PACKET_BYTES,
                    payload: 0,
                    order: about.order,
                    runs: Vec::new(),
                });
                continue;
            }
            let tiles = (about.tiles - first).min((room / tile_bytes) as usize);
            if let Some(packet) = packets.last_mut() {
                packet.runs.push(TileRun { shard, first, tiles, at: packet.payload });
                packet.payload += tiles as u64 * tile_bytes;
            }
            first += tiles;
        }
    }
    if let Some(last) = packets.last_mut().filter(|_| short_last) {
        last.bytes = last.payload.next_multiple_of(ALIGNMENT);
    }
    packets
}
