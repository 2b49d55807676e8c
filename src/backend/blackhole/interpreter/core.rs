//! A core and what belongs to it.

use std::collections::VecDeque;

use half::bf16;

use super::fault::Fault;
use super::memory::{Memory, Unwritten};
use super::place::At;
use super::report::Counters;
use super::tiles::{Part, Tiles, decode, encode};
use crate::backend::blackhole::grid::L1_ALIGNMENT;
use crate::backend::blackhole::lowered::{
    BlockFormat, CoreProgram, PACKET_BYTES, PacketRing, Region,
};
use crate::backend::blackhole::numerics::tile::SIDE;

/// A core while its program runs.
pub struct CoreState<'a> {
    pub program: &'a CoreProgram,
    pub l1: Memory,
    pub semaphores: Vec<u32>,
    pub ring: Option<Ring>,
    pub counters: Counters,
}

/// The packets of a consumer.
pub struct Ring {
    pub spec: PacketRing,
    /// The slot for the next packet.
    next_slot: u32,
    /// Those that nobody has begun, the oldest first.
    pub waiting: VecDeque<Packet>,
    pub at_hand: Option<Packet>,
}

/// A packet in its slot.
#[derive(Clone, Copy)]
pub struct Packet {
    pub address: usize,
    pub bytes: u32,
    /// Where its next tile begins.
    pub next: u32,
}

impl<'a> CoreState<'a> {
    pub fn new(program: &'a CoreProgram) -> Self {
        let end = program.map.regions.iter().map(Region::end).max().unwrap_or(0);
        let ring =
            |spec: PacketRing| Ring { spec, next_slot: 0, waiting: VecDeque::new(), at_hand: None };
        Self {
            program,
            l1: Memory::new(end.next_multiple_of(L1_ALIGNMENT) as usize),
            semaphores: program.semaphores.iter().map(|semaphore| semaphore.initial).collect(),
            ring: program.ring.map(ring),
            counters: Counters::default(),
        }
    }

    /// Name of the region with this address.
    pub fn region_at(&self, address: usize) -> String {
        let region = u32::try_from(address).ok().and_then(|at| self.program.map.holding(at, 1));
        region.map_or(String::new(), |region| region.name.clone())
    }

    /// That these bytes lie in one region, from a place on where engines may begin.
    pub fn check(&self, at: At<'_>, address: u64, bytes: u64) -> Result<usize, Fault> {
        if !address.is_multiple_of(u64::from(L1_ALIGNMENT)) {
            let (place, alignment) = (at.place(), L1_ALIGNMENT);
            return Err(Fault::Misaligned { place, address, alignment });
        }
        self.check_region(at, address, bytes)
    }

    fn check_region(&self, at: At<'_>, address: u64, bytes: u64) -> Result<usize, Fault> {
        let holding = || {
            let (address, bytes) = (u32::try_from(address).ok()?, u32::try_from(bytes).ok()?);
            self.program.map.holding(address, bytes)
        };
        if holding().is_some_and(|region| !region.is_of_kernels()) {
            return Ok(address as usize);
        }
        let first = u32::try_from(address).ok().and_then(|at| self.program.map.holding(at, 1));
        Err(Fault::OutsideRegion {
            place: at.place(),
            core: self.program.core,
            address,
            bytes,
            nearest: first.map(|region| region.name.clone()),
        })
    }

    /// A block of which `part` is used; all of its tiles down to `row_tiles` have to be in one region.
    pub fn block(
        &self,
        at: At<'_>,
        address: u32,
        format: BlockFormat,
        row_tiles: u32,
        part: Part,
    ) -> Result<Tiles, Fault> {
        let (rows, columns) = ((part.row + part.rows) as u64, (part.column + part.columns) as u64);
        let side = SIDE as u64;
        if rows > u64::from(row_tiles) * side {
            return Err(Fault::OutsideBlock { place: at.place(), rows, columns, row_tiles });
        }
        let tiles = u64::from(row_tiles) * columns.div_ceil(side);
        let first = self.check(at, address.into(), tiles * u64::from(format.tile_bytes()))?;
        Ok(Tiles::block(first, format, row_tiles as usize))
    }

    /// A block one tile wide.
    pub fn column_block(
        &self,
        at: At<'_>,
        address: u32,
        format: BlockFormat,
        row_tiles: u32,
        part: Part,
    ) -> Result<Tiles, Fault> {
        if part.columns > SIDE {
            let (rows, columns) = ((part.row + part.rows) as u64, part.columns as u64);
            return Err(Fault::OutsideBlock { place: at.place(), rows, columns, row_tiles });
        }
        self.block(at, address, format, row_tiles, part)
    }

    pub fn read(&mut self, at: At<'_>, block: Tiles, part: Part) -> Result<Vec<f32>, Fault> {
        block.read(&mut self.l1, part).map_err(|unwritten| self.unwritten(at, unwritten))
    }

    /// The values of a block as they are stored.
    pub fn bytes(&mut self, at: At<'_>, block: Tiles, part: Part) -> Result<Vec<u8>, Fault> {
        block.bytes(&mut self.l1, part).map_err(|unwritten| self.unwritten(at, unwritten))
    }

    pub fn write(&mut self, block: Tiles, part: Part, values: &[f32]) {
        block.write(&mut self.l1, part, values);
    }

    /// A vector of bf16 for the pass at hand.
    pub fn vector(
        &mut self,
        at: At<'_>,
        address: u32,
        step: u32,
        columns: u32,
    ) -> Result<Vec<bf16>, Fault> {
        let address = u64::from(address) + u64::from(step) * u64::from(at.pass);
        let bytes = u64::from(columns) * 2;
        let address = self.check(at, address, bytes)?;
        match self.l1.values(address, bytes as usize) {
            Ok(bytes) => {
                Ok(bytes.as_chunks().0.iter().map(|bytes| bf16::from_le_bytes(*bytes)).collect())
            }
            Err(unwritten) => Err(self.unwritten(at, unwritten)),
        }
    }

    /// Pairs of f32, one for each row.
    pub fn pairs(&mut self, at: At<'_>, address: u64, rows: u32) -> Result<Vec<[f32; 2]>, Fault> {
        let bytes = u64::from(rows) * 8;
        let address = self.check(at, address, bytes)?;
        match self.l1.values(address, bytes as usize) {
            Ok(bytes) => Ok(decode(BlockFormat::F32, bytes).as_chunks().0.to_vec()),
            Err(unwritten) => Err(self.unwritten(at, unwritten)),
        }
    }

    pub fn set_pairs(&mut self, at: At<'_>, address: u32, pairs: &[[f32; 2]]) -> Result<(), Fault> {
        let mut bytes = Vec::new();
        encode(BlockFormat::F32, pairs.as_flattened(), &mut bytes);
        let address = self.check(at, address.into(), bytes.len() as u64)?;
        self.l1.set_values(address, &bytes);
        Ok(())
    }

    /// What fills up the tiles of a block is multiplied too: it may not be rubbish that happens to be no number.
    pub fn check_filled(&self, at: At<'_>, block: Tiles, part: Part) -> Result<(), Fault> {
        match block.find(&self.l1, part, |found| found.is_err()) {
            Some(address) => Err(self.padding(at, address, "unwritten")),
            None => Ok(()),
        }
    }

    /// As [`Self::check_filled`], where both operands may be something there, so that it has to be zero.
    pub fn check_zero(&self, at: At<'_>, block: Tiles, part: Part) -> Result<(), Fault> {
        self.check_filled(at, block, part)?;
        let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        match block.find(&self.l1, part, |found| !found.is_ok_and(is_zero)) {
            Some(address) => Err(self.padding(at, address, "not zero")),
            None => Ok(()),
        }
    }

    fn padding(&self, at: At<'_>, address: usize, found: &'static str) -> Fault {
        Fault::Padding { place: at.place(), address, region: self.region_at(address), found }
    }

    pub fn unwritten(&self, at: At<'_>, unwritten: Unwritten) -> Fault {
        let Unwritten { address, zeroed } = unwritten;
        let region = self.region_at(address);
        Fault::ReadBeforeWrite { place: at.place(), address, region, zeroed }
    }
}

impl Ring {
    /// The slot for the next packet, unless all are taken.
    pub fn free_slot(&self) -> Option<u32> {
        let taken = self.waiting.len() + usize::from(self.at_hand.is_some());
        let address = self.spec.address + self.next_slot * PACKET_BYTES;
        (taken < self.spec.slots as usize).then_some(address)
    }

    pub fn add(&mut self, address: usize, bytes: u32) {
        self.waiting.push_back(Packet { address, bytes, next: 0 });
        self.next_slot = (self.next_slot + 1) % self.spec.slots;
    }
}
