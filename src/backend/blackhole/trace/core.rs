//! The program of one core while it is being written.

use super::geometry::TileRange;
use crate::backend::blackhole::grid::Core;
use crate::backend::blackhole::lowered::{
    BlockFormat, DramBuffer, Engine, Instruction, PacketRing, Semaphore, Streams,
};

/// Semaphores of every core, by number.
pub mod semaphore {
    /// It is the turn of the mover, or of compute.
    pub const MOVER: u32 = 0;
    pub const COMPUTE: u32 = 1;
    /// Packets of weights that have come, and slots that have become free.
    pub const PACKETS: u32 = 2;
    pub const FREED: u32 = 3;
}

/// Packets of weights that a core can have in store.
pub const RING_SLOTS: u32 = 4;

pub fn semaphores() -> Vec<Semaphore> {
    let named = [("mover", 0), ("compute", 0), ("packets", 0), ("packets freed", RING_SLOTS)];
    named.map(|(name, initial)| Semaphore { name: name.to_owned(), initial }).to_vec()
}

pub fn ring(address: u32) -> PacketRing {
    use semaphore::{FREED, PACKETS};
    PacketRing { address, slots: RING_SLOTS, packets: PACKETS, freed: FREED }
}

/// A matrix of tiles in L1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub address: u32,
    pub format: BlockFormat,
    pub row_tiles: usize,
    pub column_tiles: usize,
}

impl Block {
    pub fn bytes(self) -> u32 {
        (self.row_tiles * self.column_tiles) as u32 * self.format.tile_bytes()
    }

    /// The same place with fewer tiles.
    pub fn of_tiles(self, row_tiles: usize, column_tiles: usize) -> Self {
        Self { row_tiles, column_tiles, ..self }
    }

    /// Address of a tile.
    pub fn tile(self, row: usize, column: usize) -> u32 {
        self.address + (column * self.row_tiles + row) as u32 * self.format.tile_bytes()
    }
}

/// Streams of a core whose mover and compute engine take turns: what was written first happens first. Only the feeder goes
/// ahead on its own; it brings weights.
pub struct CoreWriter {
    pub core: Core,
    op: u32,
    turn: Engine,
    pub streams: Streams,
}

impl CoreWriter {
    pub fn new(core: Core, op: u32) -> Self {
        Self { core, op, turn: Engine::Mover, streams: Streams::default() }
    }

    pub fn mover(&mut self, instruction: Instruction) {
        self.take_turn(Engine::Mover, semaphore::MOVER);
        self.streams.push(Engine::Mover, self.op, instruction);
    }

    pub fn compute(&mut self, instruction: Instruction) {
        self.take_turn(Engine::Compute, semaphore::COMPUTE);
        self.streams.push(Engine::Compute, self.op, instruction);
    }

    pub fn feeder(&mut self, instruction: Instruction) {
        self.streams.push(Engine::Feeder, self.op, instruction);
    }

    /// `engine` waits until the other one has done what was written before.
    fn take_turn(&mut self, engine: Engine, semaphore: u32) {
        if self.turn == engine {
            return;
        }
        let signal = Instruction::Signal { core: self.core, semaphore, value: 1 };
        self.streams.push(self.turn, self.op, signal);
        self.streams.push(engine, self.op, Instruction::Wait { semaphore, value: 1 });
        self.turn = engine;
    }

    pub fn zero(&mut self, block: Block) {
        self.mover(Instruction::Zero { address: block.address, bytes: block.bytes() });
    }

    /// Reads tiles of a DRAM buffer to a block of as many, which has its format.
    pub fn read(&mut self, number: u32, buffer: &DramBuffer, tiles: TileRange, block: Block) {
        for run in runs(buffer, tiles, block) {
            let Run { tile, tile_step, count, address, address_step } = run;
            self.mover(Instruction::ReadTiles {
                buffer: number,
                tile,
                tile_step,
                count,
                offset: 0,
                bytes: block.format.tile_bytes(),
                address,
                address_step,
            });
        }
    }

    /// The way back of [`Self::read`].
    pub fn write(&mut self, number: u32, buffer: &DramBuffer, tiles: TileRange, block: Block) {
        for run in runs(buffer, tiles, block) {
            let Run { tile, tile_step, count, address, address_step } = run;
            self.mover(Instruction::WriteTiles {
                buffer: number,
                tile,
                tile_step,
                count,
                offset: 0,
                bytes: block.format.tile_bytes(),
                address,
                address_step,
            });
        }
    }
}

/// Tiles of a DRAM buffer that are equally far apart there and in L1.
struct Run {
    tile: u32,
    tile_step: u32,
    count: u32,
    address: u32,
    address_step: u32,
}

/// Rows or columns of tiles, whichever are fewer.
fn runs(buffer: &DramBuffer, tiles: TileRange, block: Block) -> Vec<Run> {
    let across = buffer.column_tiles();
    let first = |row: usize, column: usize| {
        (
            (tiles.row + row) as u32 * across + (tiles.column + column) as u32,
            block.tile(row, column),
        )
    };
    let down = block.format.tile_bytes();
    if tiles.rows <= tiles.columns {
        let run = |row| {
            let (tile, address) = first(row, 0);
            let address_step = block.row_tiles as u32 * down;
            Run { tile, tile_step: 1, count: tiles.columns as u32, address, address_step }
        };
        (0..tiles.rows).map(run).collect()
    } else {
        let run = |column| {
            let (tile, address) = first(0, column);
            Run { tile, tile_step: across, count: tiles.rows as u32, address, address_step: down }
        };
        (0..tiles.columns).map(run).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_take_turns() {
        let core = Core::new(3, 4);
        let mut writer = CoreWriter::new(core, 7);
        let block = Block { address: 64, format: BlockFormat::Bf16, row_tiles: 1, column_tiles: 2 };
        writer.zero(block);
        writer.zero(block);
        writer.feeder(Instruction::LoadPacket { bank: 0, offset: 0, bytes: 64 });
        writer.compute(Instruction::EndStream {});
        writer.zero(block);
        let of = |engine| -> Vec<&'static str> {
            let steps = writer.streams.of(engine).iter();
            steps.map(|step| step.instruction.name()).collect()
        };
        assert_eq!(of(Engine::Mover), ["Zero", "Zero", "Signal", "Wait", "Zero"]);
        assert_eq!(of(Engine::Compute), ["Wait", "EndStream", "Signal"]);
        assert_eq!(of(Engine::Feeder), ["LoadPacket"]);
        let signal = Instruction::Signal { core, semaphore: semaphore::COMPUTE, value: 1 };
        assert_eq!(writer.streams.of(Engine::Mover)[2].instruction, signal);
    }

    #[test]
    fn tiles_move_in_the_fewest_runs() {
        let buffer =
            DramBuffer { name: String::new(), rows: 100, columns: 320, format: BlockFormat::F32 };
        let block = |row_tiles, column_tiles| Block {
            address: 128,
            format: BlockFormat::F32,
            row_tiles,
            column_tiles,
        };
        let wide = TileRange { row: 1, rows: 2, column: 3, columns: 5 };
        let found = runs(&buffer, wide, block(2, 5));
        let places: Vec<_> = found.iter().map(|run| (run.tile, run.count, run.address)).collect();
        assert_eq!(places, [(13, 5, 128), (23, 5, 128 + 4096)]);
        assert_eq!((found[0].tile_step, found[0].address_step), (1, 2 * 4096));
        let high = TileRange { row: 0, rows: 4, column: 9, columns: 1 };
        let found = runs(&buffer, high, block(6, 1));
        assert_eq!((found.len(), found[0].tile, found[0].count), (1, 9, 4));
        assert_eq!((found[0].tile_step, found[0].address_step), (10, 4096));
    }
}
