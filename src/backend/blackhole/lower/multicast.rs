//! What every core of an audience needs: gathered by the hubs, then multicast.

use std::ops::Range;

use super::LowerError;
use super::chip::{Index, compute, hub};
use super::memory::{Audience, FACE};
use super::writer::Writer;
use crate::backend::blackhole::grid::{Core, Noc, Rectangle};
use crate::backend::blackhole::lowered::{BlockFormat, Engine, Instruction};

/// What was multicast and is still needed.
#[derive(Clone, Copy, Debug)]
pub struct Live {
    /// Signals that tell a core that all of it has come.
    parts: u32,
    /// Products that still read it, and whether the first of them has waited for it.
    readers: usize,
    awaited: bool,
}

/// The cores of an audience, and what they are told by.
struct Reach {
    cores: Range<Index>,
    rectangles: Vec<Rectangle>,
    /// Semaphores of the cores: something has come, compute needs it no longer.
    ready: u32,
    done: u32,
    /// Semaphore of the first hub: a core needs it no longer.
    free: u32,
    /// Where it goes.
    target: u32,
}

/// Bytes of 16 x 16 values of bf16.
pub const FACE_BYTES: u32 = (2 * FACE * FACE) as u32;

/// Where the 16 columns stand in their column of tiles.
pub fn face_offset(face: usize) -> u32 {
    (face % 2) as u32 * FACE_BYTES
}

impl Writer<'_> {
    /// The hub that gathers a column of tiles, and its place there.
    fn hub_of(&self, tiles: usize, tile: usize) -> (usize, u32) {
        let each = tiles.div_ceil(self.chip.hubs());
        (tile / each, (tile % each) as u32)
    }

    /// The mover of `core` sends a column of tiles to its hub.
    pub fn send_to_hub(&mut self, core: Index, address: u32, tiles: usize, tile: usize) {
        let (number, place) = self.hub_of(tiles, tile);
        let bytes = self.memory.column_bytes(BlockFormat::Bf16);
        let hub = self.chip.hub(number);
        let send = Instruction::Send {
            address,
            step: 0,
            count: 1,
            bytes,
            core: self.chip.at(hub),
            target: self.memory.staging + place * bytes,
            target_step: 0,
        };
        self.chip.mover(core, send);
        self.chip.signal(core, Engine::Mover, hub, hub::GATHERED);
        self.expect_piece(number);
    }

    /// As [`Self::send_to_hub`], for 16 columns: `face` counts them over the whole matrix, `address` is that of the first
    /// of them in their column of tiles.
    pub fn send_face_to_hub(&mut self, core: Index, address: u32, tiles: usize, face: usize) {
        let (number, place) = self.hub_of(tiles, face / 2);
        let hub = self.chip.hub(number);
        let column = self.memory.staging + place * self.memory.column_bytes(BlockFormat::Bf16);
        let send = self.face(address, self.chip.at(hub), column + face_offset(face));
        self.chip.mover(core, send);
        self.chip.signal(core, Engine::Mover, hub, hub::GATHERED);
        self.expect_piece(number);
    }

    /// Sends 16 columns of a column of tiles to the same 16 or the other ones of another.
    pub fn face(&self, address: u32, core: Core, target: u32) -> Instruction {
        // Two rows of faces make a row of tiles.
        let step = BlockFormat::Bf16.tile_bytes() / 2;
        Instruction::Send {
            address,
            step,
            count: 2 * self.memory.row_tiles,
            bytes: FACE_BYTES,
            core,
            target,
            target_step: step,
        }
    }

    /// Another piece is on its way to a hub, or put together there.
    pub fn expect_piece(&mut self, hub: usize) {
        self.gathered[hub] += 1;
    }

    fn reach(&self, audience: Audience) -> Reach {
        match audience {
            Audience::Everyone => Reach {
                cores: 0..self.chip.compute_cores(),
                rectangles: self.chip.map.to_compute(Noc::Noc0),
                ready: compute::X_READY,
                done: compute::X_DONE,
                free: hub::X_FREE,
                target: self.memory.x,
            },
            Audience::Owners => Reach {
                cores: 0..self.chip.owners(),
                rectangles: self.chip.map.to_owners(Noc::Noc0),
                ready: compute::WIDE_READY,
                done: compute::WIDE_DONE,
                free: hub::WIDE_FREE,
                target: self.memory.wide,
            },
        }
    }

    /// The hubs multicast what they have gathered, as soon as nobody needs what was multicast to this audience before.
    /// `readers` products will read it.
    pub fn multicast(&mut self, audience: Audience, tiles: usize, readers: usize) {
        let Reach { cores, rectangles, ready, free, target, .. } = self.reach(audience);
        let bytes = self.memory.column_bytes(BlockFormat::Bf16);
        let each = tiles.div_ceil(self.chip.hubs());
        let active = tiles.div_ceil(each);
        self.chip.wait(self.chip.hub(0), Engine::Mover, free, cores.len() as u32);
        for number in 1..active {
            self.chip.signal(self.chip.hub(0), Engine::Mover, self.chip.hub(number), hub::GO);
        }
        for number in 0..active {
            let hub = self.chip.hub(number);
            if number > 0 {
                self.chip.wait(hub, Engine::Mover, hub::GO, 1);
            }
            let pieces = std::mem::take(&mut self.gathered[number]);
            if pieces > 0 {
                self.chip.wait(hub, Engine::Mover, hub::GATHERED, pieces);
            }
            let first = number * each;
            let columns = (tiles - first).min(each) as u32;
            for rectangle in &rectangles {
                let multicast = Instruction::Multicast {
                    address: self.memory.staging,
                    bytes: columns * bytes,
                    rectangle: *rectangle,
                    noc: Noc::Noc0,
                    target: target + first as u32 * bytes,
                };
                self.chip.mover(hub, multicast);
            }
            // Only now: whoever is told may send what comes next to the place that the others' share is still read from.
            for rectangle in &rectangles {
                let tell = Instruction::SignalAll {
                    rectangle: *rectangle,
                    noc: Noc::Noc0,
                    semaphore: ready,
                    value: 1,
                };
                self.chip.mover(hub, tell);
            }
        }
        let live = Live { parts: active as u32, readers, awaited: false };
        self.live.insert(audience, live);
    }

    /// Everyone of the audience waits for what was multicast to it, unless it has.
    pub fn await_multicast(&mut self, audience: Audience) -> Result<(), LowerError> {
        let Reach { cores, ready, .. } = self.reach(audience);
        let Some(live) = self.live.get_mut(&audience) else {
            return Err(LowerError::NotWritten { op: self.chip.op });
        };
        if !std::mem::replace(&mut live.awaited, true) {
            let parts = live.parts;
            for core in cores {
                self.chip.wait(core, Engine::Compute, ready, parts);
            }
        }
        Ok(())
    }

    /// One product has read it; after the last one the hubs are told.
    pub fn has_read(&mut self, audience: Audience) {
        let Reach { cores, done, free, .. } = self.reach(audience);
        let Some(live) = self.live.get_mut(&audience) else { return };
        live.readers = live.readers.saturating_sub(1);
        if live.readers > 0 {
            return;
        }
        self.live.remove(&audience);
        for core in cores {
            self.chip.signal(core, Engine::Compute, core, done);
            self.chip.wait(core, Engine::Mover, done, 1);
            self.chip.signal(core, Engine::Mover, self.chip.hub(0), free);
        }
    }

    /// Waits for what was multicast and is read no more: the stage ends early.
    pub fn drain(&mut self) -> Result<(), LowerError> {
        for audience in [Audience::Everyone, Audience::Owners] {
            if let Some(live) = self.live.get_mut(&audience) {
                live.readers = 1;
                self.await_multicast(audience)?;
                self.has_read(audience);
            }
        }
        for number in 0..self.chip.heads() {
            let pieces = std::mem::take(&mut self.head_pieces[number]);
            if pieces > 0 {
                let core = self.chip.head(number);
                self.chip.wait(core, Engine::Compute, compute::HEAD_INPUT, pieces);
            }
        }
        Ok(())
    }
}
