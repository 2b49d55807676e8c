//! Where everything lies.

use std::collections::HashSet;
use std::ops::Range;

use super::cut::{Packet, cut};
use super::hoist::HoistRules;
use super::spec::{Blob, PartSpec, StreamSpec};
use super::{ALIGNMENT, ArenaError, BANK_BYTES, BANKS, PACKET_BYTES};
use crate::backend::blackhole::numerics::{DtypePolicy, TileFormat, tile};
use crate::program::{WeightId, WeightSpec};

/// The geometry of an arena: the same for the same specification, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArenaPlan {
    pub(super) policy: DtypePolicy,
    /// Those of the program; not all of them need lie in the arena.
    pub(super) weights: Vec<WeightSpec>,
    parts: Vec<PlannedPart>,
    blobs: Vec<PlannedBlob>,
    banks: [u64; BANKS],
}

/// Streams that are used together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPart {
    pub name: String,
    pub short_last: bool,
    pub streams: Vec<PlannedStream>,
    banks: Vec<PartBank>,
}

/// What of a part lies in one bank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PartBank {
    offset: u64,
    bytes: u64,
    packets: Vec<Packet>,
}

/// What one core reads in one pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedStream {
    pub consumer: u32,
    pub bank: u8,
    pub shards: Vec<PlannedShard>,
    /// Places of its packets among those of its part in its bank.
    packets: Vec<usize>,
}

/// A column of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedShard {
    /// Number of the instruction that uses it.
    pub order: u32,
    pub weight: WeightId,
    pub column_tile: usize,
    pub format: TileFormat,
    /// One for each 32 inputs.
    pub tiles: usize,
}

impl PlannedShard {
    fn bytes(&self) -> u64 {
        (self.tiles as u64).saturating_mul(self.format.tile_bytes() as u64)
    }
}

/// A blob and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedBlob {
    pub name: String,
    pub bank: u8,
    /// Bytes from the start of the bank.
    pub offset: u64,
    pub bytes: Vec<u8>,
}

impl ArenaPlan {
    /// Lays out the given parts, then the blobs, one after the other in each bank. Packets of a part begin at a
    /// multiple of [`PACKET_BYTES`], blobs at one of [`ALIGNMENT`].
    ///
    /// # Errors
    /// A weight, column of tiles or bank that does not exist; a stream out of order; something empty, or two things
    /// of one name; a part that holds what `hoisted` says that is computed less often; more than a bank can hold.
    pub fn new(
        weights: &[WeightSpec],
        policy: DtypePolicy,
        parts: &[PartSpec],
        blobs: Vec<Blob>,
        hoisted: &HoistRules,
    ) -> Result<Self, ArenaError> {
        let parts = parts.iter().map(|part| resolve(part, weights, policy, hoisted));
        let parts: Vec<PlannedPart> = parts.collect::<Result<_, _>>()?;
        check_whole(&parts, &blobs)?;
        let weights = weights.to_vec();
        let mut plan = Self { policy, weights, parts, blobs: Vec::new(), banks: [0; BANKS] };
        plan.place_parts();
        plan.place_blobs(blobs);
        for (bank, bytes) in plan.banks.iter().enumerate() {
            check_bank(bank, *bytes)?;
        }
        Ok(plan)
    }

    pub fn parts(&self) -> &[PlannedPart] {
        &self.parts
    }

    /// The part of this name.
    pub fn part(&self, name: &str) -> Option<&PlannedPart> {
        self.parts.iter().find(|part| part.name == name)
    }

    pub fn blobs(&self) -> &[PlannedBlob] {
        &self.blobs
    }

    /// Bytes that are used of a bank, a multiple of [`ALIGNMENT`].
    pub fn bank_bytes(&self, bank: u8) -> u64 {
        self.banks[usize::from(bank)]
    }

    /// Bytes of all banks.
    pub fn bytes(&self) -> u64 {
        self.banks.iter().sum()
    }

    fn place_parts(&mut self) {
        for part in &mut self.parts {
            for (used, bank) in self.banks.iter_mut().zip(&mut part.banks) {
                if bank.packets.is_empty() {
                    bank.offset = *used;
                    continue;
                }
                bank.offset = used.next_multiple_of(PACKET_BYTES);
                let mut end = bank.offset;
                for packet in &mut bank.packets {
                    packet.offset = end;
                    end += packet.bytes;
                }
                bank.bytes = end - bank.offset;
                *used = end;
            }
        }
    }

    fn place_blobs(&mut self, blobs: Vec<Blob>) {
        for Blob { name, bank, bytes } in blobs {
            let used = &mut self.banks[usize::from(bank)];
            let offset = *used;
            *used = (offset + bytes.len() as u64).next_multiple_of(ALIGNMENT);
            self.blobs.push(PlannedBlob { name, bank, offset, bytes });
        }
    }
}

impl PlannedPart {
    /// Where the part lies in a bank, in bytes from the bank's start.
    pub fn range(&self, bank: u8) -> Range<u64> {
        let PartBank { offset, bytes, .. } = &self.banks[usize::from(bank)];
        *offset..offset + bytes
    }

    /// The packets in a bank, in the order in which they lie and are read.
    pub fn packets(&self, bank: u8) -> &[Packet] {
        &self.banks[usize::from(bank)].packets
    }

    /// The packets of a stream, in the order of its tiles.
    pub fn stream_packets(&self, stream: usize) -> impl Iterator<Item = &Packet> {
        let PlannedStream { bank, packets, .. } = &self.streams[stream];
        packets.iter().map(|place| &self.packets(*bank)[*place])
    }

    /// Those of all banks.
    pub(super) fn all_packets(&self) -> impl Iterator<Item = &Packet> {
        self.banks.iter().flat_map(|bank| &bank.packets)
    }

    /// The shard that a run of tiles belongs to.
    pub(super) fn shard_of(&self, packet: &Packet, shard: usize) -> &PlannedShard {
        &self.streams[packet.stream].shards[shard]
    }
}

/// A part whose packets are cut and in order, but do not yet lie anywhere.
fn resolve(
    part: &PartSpec,
    weights: &[WeightSpec],
    policy: DtypePolicy,
    hoisted: &HoistRules,
) -> Result<PlannedPart, ArenaError> {
    if part.streams.is_empty() {
        return Err(ArenaError::Empty { what: format!("part '{}'", part.name) });
    }
    let stream = |spec| resolve_stream(&part.name, spec, weights, policy);
    let mut streams: Vec<PlannedStream> =
        part.streams.iter().map(stream).collect::<Result<_, _>>()?;
    let shards = streams.iter().flat_map(|stream| &stream.shards);
    let used: HashSet<WeightId> = shards.map(|shard| shard.weight).collect();
    for weight in weights_in_order(weights, &used) {
        hoisted.check(&part.name, weight)?;
    }
    check_tiles(&streams)?;

    let mut banks: Vec<PartBank> = (0..BANKS).map(|_| PartBank::default()).collect();
    for (number, stream) in streams.iter().enumerate() {
        let packets = cut(number, stream.bank, &stream.shards, part.short_last);
        banks[usize::from(stream.bank)].packets.extend(packets);
    }
    for bank in &mut banks {
        bank.packets.sort_by_key(|packet| {
            (packet.order, packet.number, streams[packet.stream].consumer, packet.stream)
        });
        // A stream's packets come in their order, since that of its shards never descends.
        for (place, packet) in bank.packets.iter().enumerate() {
            streams[packet.stream].packets.push(place);
        }
    }
    Ok(PlannedPart { name: part.name.clone(), short_last: part.short_last, streams, banks })
}

fn weights_in_order<'a>(
    weights: &'a [WeightSpec],
    used: &HashSet<WeightId>,
) -> impl Iterator<Item = &'a WeightSpec> {
    let numbered = weights.iter().enumerate();
    numbered.filter(|(id, _)| used.contains(&WeightId(*id))).map(|(_, weight)| weight)
}

fn resolve_stream(
    part: &str,
    spec: &StreamSpec,
    weights: &[WeightSpec],
    policy: DtypePolicy,
) -> Result<PlannedStream, ArenaError> {
    let StreamSpec { consumer, bank, shards } = spec;
    let (consumer, bank) = (*consumer, *bank);
    let what = || format!("part '{part}', consumer {consumer}");
    if usize::from(bank) >= BANKS {
        return Err(ArenaError::Bank { what: what(), bank });
    }
    if shards.is_empty() {
        return Err(ArenaError::Empty { what: format!("{}: its stream", what()) });
    }
    let mut resolved = Vec::with_capacity(shards.len());
    let mut before = 0;
    for (order, shard) in shards {
        let (part, order) = (part.to_owned(), *order);
        if order < before {
            return Err(ArenaError::Order { part, consumer, before, order });
        }
        before = order;
        let id = shard.weight.0;
        let Some(weight) = weights.get(id) else {
            return Err(ArenaError::Weight { part, consumer, id, weights: weights.len() });
        };
        let columns = weight.outputs().div_ceil(tile::SIDE);
        let (tensor, column_tile) = (weight.tensor.clone(), shard.column_tile);
        if weight.inputs() == 0 || columns == 0 {
            return Err(ArenaError::Empty { what: format!("{}: '{tensor}'", what()) });
        }
        if column_tile >= columns {
            return Err(ArenaError::Column { part, consumer, tensor, column_tile, columns });
        }
        resolved.push(PlannedShard {
            order,
            weight: shard.weight,
            column_tile,
            format: policy.format(&weight.tensor),
            tiles: weight.inputs().div_ceil(tile::SIDE),
        });
    }
    Ok(PlannedStream { consumer, bank, shards: resolved, packets: Vec::new() })
}

/// That the tiles alone fit, before packets are made of them.
fn check_tiles(streams: &[PlannedStream]) -> Result<(), ArenaError> {
    for bank in 0..BANKS {
        let here = streams.iter().filter(|stream| usize::from(stream.bank) == bank);
        let tiles = here.flat_map(|stream| &stream.shards).map(PlannedShard::bytes);
        check_bank(bank, tiles.fold(0, u64::saturating_add))?;
    }
    Ok(())
}

fn check_bank(bank: usize, bytes: u64) -> Result<(), ArenaError> {
    if bytes > BANK_BYTES {
        return Err(ArenaError::TooLarge { bank: bank as u8, bytes });
    }
    Ok(())
}

/// What concerns parts and blobs together.
fn check_whole(parts: &[PlannedPart], blobs: &[Blob]) -> Result<(), ArenaError> {
    if parts.is_empty() && blobs.is_empty() {
        return Err(ArenaError::Empty { what: "the arena".to_owned() });
    }
    for blob in blobs {
        let what = || format!("blob '{}'", blob.name);
        if usize::from(blob.bank) >= BANKS {
            return Err(ArenaError::Bank { what: what(), bank: blob.bank });
        }
        if blob.bytes.is_empty() {
            return Err(ArenaError::Empty { what: what() });
        }
    }
    let parts = parts.iter().map(|part| format!("part '{}'", part.name));
    let blobs = blobs.iter().map(|blob| format!("blob '{}'", blob.name));
    let mut names = HashSet::new();
    for what in parts.chain(blobs) {
        if names.contains(&what) {
            return Err(ArenaError::SameName { what });
        }
        names.insert(what);
    }
    Ok(())
}
