//! What movers move.

use super::Machine;
use super::core::CoreState;
use super::fault::Fault;
use super::memory::{Memory, Piece};
use super::place::At;
use crate::backend::blackhole::grid::{Core, DRAM_READ_ALIGNMENT};
use crate::backend::blackhole::lowered::Instruction;

/// Pieces of equal length, equally far apart.
#[derive(Clone, Copy)]
struct Pieces {
    first: u64,
    step: u64,
    count: u32,
    bytes: u32,
}

/// Which tiles of a buffer, and which part of each.
#[derive(Clone, Copy)]
struct BufferTiles {
    buffer: u32,
    tile: u32,
    step: u32,
    offset: u32,
}

impl Pieces {
    fn new(first: u32, step: u32, count: u32, bytes: u32) -> Self {
        Self { first: first.into(), step: step.into(), count, bytes }
    }

    fn addresses(self) -> impl Iterator<Item = u64> {
        (0..u64::from(self.count)).map(move |piece| self.first + piece * self.step)
    }

    fn total(self) -> u64 {
        u64::from(self.count) * u64::from(self.bytes)
    }

    /// That all of them lie in one region of a core and begin where transfers may begin.
    fn check(self, at: At<'_>, core: &CoreState<'_>) -> Result<(), Fault> {
        let last = self.addresses().last().unwrap_or(self.first);
        core.check(at, self.first, last - self.first + u64::from(self.bytes))?;
        core.check(at, self.addresses().nth(1).unwrap_or(self.first), self.bytes.into())?;
        Ok(())
    }
}

impl At<'_> {
    /// That DRAM may be read at `dram` to `l1`.
    pub fn check_dram_read(self, dram: u64, l1: u64) -> Result<(), Fault> {
        if (dram ^ l1).is_multiple_of(u64::from(DRAM_READ_ALIGNMENT)) {
            return Ok(());
        }
        Err(Fault::DramMisaligned { place: self.place(), dram, l1 })
    }
}

impl Machine<'_> {
    pub(super) fn transfer(
        &mut self,
        at: At<'_>,
        core: usize,
        instruction: &Instruction,
    ) -> Result<(), Fault> {
        match *instruction {
            Instruction::ReadTiles {
                buffer,
                tile,
                tile_step: step,
                count,
                offset,
                bytes,
                address,
                address_step,
            } => {
                let tiles = BufferTiles { buffer, tile, step, offset };
                self.read_tiles(at, core, tiles, Pieces::new(address, address_step, count, bytes))
            }
            Instruction::WriteTiles {
                buffer,
                tile,
                tile_step: step,
                count,
                offset,
                bytes,
                address,
                address_step,
            } => {
                let tiles = BufferTiles { buffer, tile, step, offset };
                self.write_tiles(at, core, tiles, Pieces::new(address, address_step, count, bytes))
            }
            Instruction::ReadArena { bank, offset, bytes, address } => {
                let address = self.cores[core].check(at, address.into(), bytes.into())?;
                at.check_dram_read(offset.into(), address as u64)?;
                let Some(found) = self.banks.bytes(bank, offset, bytes) else {
                    return Err(Fault::OutsideBank { place: at.place(), bank, offset, bytes });
                };
                self.cores[core].l1.put(address, &Piece::of_values(found));
                self.cores[core].counters.arena += u64::from(bytes);
                Ok(())
            }
            Instruction::Send { address, step, count, bytes, core: to, target, target_step } => {
                let from = Pieces::new(address, step, count, bytes);
                self.send(at, core, from, to, Pieces::new(target, target_step, count, bytes))
            }
            Instruction::Multicast { address, bytes, rectangle, noc, target } => {
                let pieces = self.take(at, core, Pieces::new(address, 0, 1, bytes))?;
                for to in rectangle.cores() {
                    let to = self.core_number(at, to)?;
                    self.put(at, to, Pieces::new(target, 0, 1, bytes), &pieces)?;
                    self.cores[to].counters.received += u64::from(bytes);
                }
                self.cores[core].counters.multicast[noc as usize] += u64::from(bytes);
                Ok(())
            }
            Instruction::Zero { address, bytes } => {
                let address = self.cores[core].check(at, address.into(), bytes.into())?;
                self.cores[core].l1.zero(address, bytes as usize);
                Ok(())
            }
            _ => Err(Fault::WrongEngine { place: at.place() }),
        }
    }

    fn read_tiles(
        &mut self,
        at: At<'_>,
        core: usize,
        tiles: BufferTiles,
        to: Pieces,
    ) -> Result<(), Fault> {
        let spec = &self.program.buffers[tiles.buffer as usize];
        let buffer = &mut self.dram.buffers[tiles.buffer as usize];
        let mut pieces = Vec::new();
        for (address, target) in
            tiles.addresses(spec.format.tile_bytes(), to.count).zip(to.addresses())
        {
            at.check_dram_read(address as u64, target)?;
            pieces.push(buffer.take(address, to.bytes as usize));
        }
        if to.total() > 0 && !pieces.iter().any(Piece::has_values) {
            let (place, region) = (at.place(), spec.name.clone());
            let address = tiles.addresses(spec.format.tile_bytes(), 1).next().unwrap_or(0);
            return Err(Fault::ReadBeforeWrite { place, address, region, zeroed: false });
        }
        self.put(at, core, to, &pieces)?;
        self.cores[core].counters.dram_read += to.total();
        Ok(())
    }

    fn write_tiles(
        &mut self,
        at: At<'_>,
        core: usize,
        tiles: BufferTiles,
        from: Pieces,
    ) -> Result<(), Fault> {
        let pieces = self.take(at, core, from)?;
        let tile_bytes = self.program.buffers[tiles.buffer as usize].format.tile_bytes();
        let buffer = &mut self.dram.buffers[tiles.buffer as usize];
        for (address, piece) in tiles.addresses(tile_bytes, from.count).zip(&pieces) {
            buffer.put(address, piece);
        }
        self.cores[core].counters.dram_written += from.total();
        Ok(())
    }

    fn send(
        &mut self,
        at: At<'_>,
        core: usize,
        from: Pieces,
        to: Core,
        target: Pieces,
    ) -> Result<(), Fault> {
        let receiver = self.core_number(at, to)?;
        let pieces = self.take(at, core, from)?;
        if receiver == core {
            return self.put(at, core, target, &pieces);
        }
        self.check_lost(at, receiver, target, &pieces)?;
        self.put(at, receiver, target, &pieces)?;
        let state = &mut self.cores[receiver];
        for address in target.addresses() {
            state.l1.mark_unread(address as usize, target.bytes as usize);
        }
        state.counters.received += target.total();
        self.cores[core].counters.sent += target.total();
        Ok(())
    }

    /// That a transfer does not take the place of an earlier one of which nothing has been read.
    ///
    /// Only whole transfers are looked at: of one that is used, what fills up its tiles is never read either.
    fn check_lost(
        &self,
        at: At<'_>,
        receiver: usize,
        target: Pieces,
        pieces: &[Piece],
    ) -> Result<(), Fault> {
        let state = &self.cores[receiver];
        target.check(at, state)?;
        let unread = |l1: &Memory| {
            target
                .addresses()
                .zip(pieces)
                .all(|(address, piece)| l1.is_unread_below(address as usize, piece))
        };
        if target.total() == 0 || !unread(&state.l1) {
            return Ok(());
        }
        let address = target.first as usize;
        Err(Fault::Overwritten {
            place: at.place(),
            core: state.program.core,
            address,
            region: state.region_at(address),
        })
    }

    /// Takes pieces out of a core's L1. Not all that is in them has to be written, but something.
    fn take(&mut self, at: At<'_>, core: usize, from: Pieces) -> Result<Vec<Piece>, Fault> {
        let state = &mut self.cores[core];
        from.check(at, state)?;
        let take = |address| state.l1.take(address as usize, from.bytes as usize);
        let pieces: Vec<Piece> = from.addresses().map(take).collect();
        if pieces.iter().any(Piece::has_values) || from.total() == 0 {
            return Ok(pieces);
        }
        let address = from.first as usize;
        let region = state.region_at(address);
        let zeroed = state.l1.filled(address, from.bytes as usize).is_ok();
        Err(Fault::ReadBeforeWrite { place: at.place(), address, region, zeroed })
    }

    fn put(&mut self, at: At<'_>, core: usize, to: Pieces, pieces: &[Piece]) -> Result<(), Fault> {
        let state = &mut self.cores[core];
        to.check(at, state)?;
        for (address, piece) in to.addresses().zip(pieces) {
            state.l1.put(address as usize, piece);
        }
        Ok(())
    }
}

impl BufferTiles {
    /// Addresses in the buffer.
    fn addresses(self, tile_bytes: u32, count: u32) -> impl Iterator<Item = usize> {
        let tile = move |index: u32| self.tile as usize + index as usize * self.step as usize;
        (0..count).map(move |index| tile(index) * tile_bytes as usize + self.offset as usize)
    }
}
