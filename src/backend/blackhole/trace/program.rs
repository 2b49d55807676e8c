//! The program of one instruction while it is being written.

use super::core::{Block, CoreWriter, ring, semaphores};
use super::error::{OpPlace, TraceError};
use super::geometry::{Area, CORES, TileRange};
use super::memory::{DramMap, Origin};
use super::weights::{Vector, Weights};
use super::written::{Written, fills_tile};
use crate::backend::blackhole::grid::{Core, L1_BYTES};
use crate::backend::blackhole::lowered::{
    BlockFormat, CoreProgram, DramBuffer, Instruction, L1Map, Lowered, PacketRing, Segment,
};
use crate::backend::blackhole::numerics::tile::{FACE, SIDE};
use crate::program::{Program, View, WeightId};

/// Blocks begin where DRAM can be read to.
const ALIGNMENT: u32 = 64;
/// Bytes that are kept free for the streams of a core, and for what regions lose to their alignment.
const STREAM_BYTES: u32 = 64 * 1024;
/// Bytes of a row of a face of bf16.
const FACE_ROW_BYTES: u32 = 2 * FACE as u32;

/// What all programs are written from.
pub struct Tables<'a> {
    pub program: &'a Program,
    pub dram: DramMap,
    pub weights: Weights,
    pub written: Written,
}

/// Writes the streams of all cores. They have the same regions at the same addresses; only their streams differ in length.
pub struct ProgramWriter<'a> {
    pub tables: &'a Tables<'a>,
    pub place: OpPlace,
    /// Number of the instruction over all stages.
    number: usize,
    map: L1Map,
    ring: Option<PacketRing>,
    cores: Vec<CoreWriter>,
}

impl<'a> ProgramWriter<'a> {
    pub fn new(tables: &'a Tables<'a>, place: OpPlace, number: usize) -> Self {
        let cores = Core::all().map(|core| CoreWriter::new(core, place.op)).collect();
        Self { tables, place, number, map: L1Map::default(), ring: None, cores }
    }

    pub fn unsupported(&self, what: &'static str) -> TraceError {
        TraceError::Unsupported { place: self.place, what }
    }

    // --- Memory ---

    /// A region of so many bytes on every core.
    pub fn region(&mut self, name: &str, bytes: u32) -> u32 {
        let address = self.map.bytes_to_end().next_multiple_of(ALIGNMENT);
        if bytes > 0 {
            self.map.add_at(name, address, bytes);
        }
        address
    }

    /// How many of something, at most `most`, have room behind the regions that there are, with streams; `bytes` says what so
    /// many take, scratch memory included. An error if there is no room for one.
    pub fn room(&self, most: usize, bytes: impl Fn(usize) -> u32) -> Result<usize, TraceError> {
        let taken = u64::from(self.map.bytes_to_end() + STREAM_BYTES);
        let needed = |count: usize| taken + u64::from(bytes(count));
        let count = (1..=most).rev().find(|count| needed(*count) <= u64::from(L1_BYTES));
        let (place, needed) = (self.place, needed(1));
        count.ok_or(TraceError::TooLarge { place, needed, limit: L1_BYTES })
    }

    /// A region for a block.
    pub fn block(
        &mut self,
        name: &str,
        format: BlockFormat,
        row_tiles: usize,
        column_tiles: usize,
    ) -> Block {
        let block = Block { address: 0, format, row_tiles, column_tiles };
        Block { address: self.region(name, block.bytes()), ..block }
    }

    /// A region for packets of weights.
    pub fn packets(&mut self, bytes: u32) {
        let address = self.region("packets", bytes);
        self.ring = Some(ring(address));
    }

    /// The place of a view in DRAM.
    pub fn area(&self, view: View) -> Result<Area, TraceError> {
        Ok(Area::of(self.number_of(Origin::Buffer(view.buffer))?, view))
    }

    /// The first rows of a matrix of the checkpoint, as many as a view has.
    pub fn weight_rows(&self, weight: WeightId, out: View) -> Result<Area, TraceError> {
        let buffer = self.number_of(Origin::Weight(weight))?;
        Ok(Area { buffer, row: 0, rows: out.rows, column: 0, columns: out.cols })
    }

    fn number_of(&self, origin: Origin) -> Result<u32, TraceError> {
        let buffer = self.tables.dram.buffer(origin);
        buffer.ok_or_else(|| self.unsupported("tiles of what lies in rows"))
    }

    pub fn table(&self, origin: Origin) -> Result<u32, TraceError> {
        let table = self.tables.dram.table(origin);
        table.ok_or_else(|| self.unsupported("rows of what lies in tiles"))
    }

    /// A bias, or a weight of a norm.
    pub fn arena_vector(&self, weight: WeightId) -> Result<Vector, TraceError> {
        let vector = self.tables.weights.vector(weight);
        vector.ok_or_else(|| self.unsupported("a vector that is not in the arena"))
    }

    pub fn buffer(&self, area: Area) -> &'a DramBuffer {
        &self.tables.dram.buffers[area.buffer as usize]
    }

    pub fn format(&self, area: Area) -> BlockFormat {
        self.buffer(area).format
    }

    /// That the columns of a result begin where those of a tile do.
    pub fn check_columns(&self, out: Area) -> Result<(), TraceError> {
        match out.column % SIDE {
            0 => Ok(()),
            _ => Err(self.unsupported("a result whose columns do not begin at a tile")),
        }
    }

    /// That an operand is stored as blocks and vectors in L1 have it.
    pub fn check_bf16(&self, area: Area) -> Result<(), TraceError> {
        match self.format(area) {
            BlockFormat::Bf16 => Ok(()),
            BlockFormat::F32 => Err(self.unsupported("vectors and rotary tables in f32")),
        }
    }

    // --- Streams ---

    pub fn core(&mut self, core: usize) -> &mut CoreWriter {
        &mut self.cores[core]
    }

    /// Reads the tiles of an area to a block, in which its first row and column stand where they stand in their tile.
    pub fn read(&mut self, core: usize, area: Area, block: Block) {
        let buffer = self.buffer(area);
        self.cores[core].read(area.buffer, buffer, TileRange::covering(area), block);
    }

    /// Brings an area to a block, its first value to this row and column. With `alone`, what else is in its columns of tiles
    /// becomes zero. `staging` has room for the tiles of a column.
    pub fn load(
        &mut self,
        core: usize,
        area: Area,
        block: Block,
        (row, column): (usize, usize),
        alone: bool,
        staging: u32,
    ) {
        let agrees = area.in_tile() == (row, column) && self.format(area) == block.format;
        let is_alone = area.column.is_multiple_of(SIDE) && area.columns.is_multiple_of(SIDE);
        if agrees && (is_alone || !alone) {
            self.read(core, area, block);
        } else {
            self.cores[core].zero(block);
            self.place(core, area, block, (row, column), staging);
        }
    }

    /// As [`Self::load`], leaving everything else in the block as it is.
    pub fn place(
        &mut self,
        core: usize,
        area: Area,
        block: Block,
        (row, column): (usize, usize),
        staging: u32,
    ) {
        let format = self.format(area);
        let tiles = TileRange::covering(area);
        let rows = tiles.rows;
        let staged = Block { address: staging, format, row_tiles: rows, column_tiles: 1 };
        for tile in tiles.column_range() {
            let part = tiles.of_columns(tile..tile + 1).part_of(area);
            self.read(core, part, staged);
            let (x_row, x_column) = part.in_tile();
            self.cores[core].compute(Instruction::CopyBlock {
                x: staged.address,
                x_format: format,
                x_row_tiles: rows as u32,
                x_row: x_row as u32,
                x_column: x_column as u32,
                out: block.address,
                out_format: block.format,
                out_row_tiles: block.row_tiles as u32,
                out_row: row as u32,
                out_column: (column + part.column - area.column) as u32,
                rows: part.rows as u32,
                columns: part.columns as u32,
            });
        }
    }

    /// Bytes that the staging of an area takes, or of any part of it.
    pub fn staging_bytes(&self, area: Area) -> u32 {
        (TileRange::covering(area).rows as u32 + 1) * self.format(area).tile_bytes()
    }

    /// Brings a vector from the arena.
    pub fn vector(&mut self, core: usize, vector: Vector, address: u32) {
        let Vector { bank, offset, bytes } = vector;
        self.cores[core].mover(Instruction::ReadArena { bank, offset, bytes, address });
    }

    /// Brings one row of a buffer to `address` as a vector; `scratch` has room for its tiles.
    pub fn row_vector(
        &mut self,
        core: usize,
        row: Area,
        address: u32,
        scratch: Block,
        staging: u32,
    ) {
        let (in_tile, _) = row.in_tile();
        let scratch = scratch.of_tiles(1, row.columns.div_ceil(SIDE));
        self.load(core, row, scratch, (in_tile, 0), false, staging);
        // The halves of a row stand in two faces, one behind the other; two faces on are those of the lower rows.
        let face = FACE as u32 * FACE_ROW_BYTES;
        let (below, line) = ((in_tile / FACE) as u32, (in_tile % FACE) as u32);
        let first = scratch.address + 2 * below * face + line * FACE_ROW_BYTES;
        let sides = row.columns.div_ceil(FACE).min(2) as u32;
        for side in 0..sides {
            let send = Instruction::Send {
                address: first + side * face,
                step: scratch.format.tile_bytes(),
                count: scratch.column_tiles as u32,
                bytes: FACE_ROW_BYTES,
                core: self.cores[core].core,
                target: address + side * FACE_ROW_BYTES,
                target_step: 2 * FACE_ROW_BYTES,
            };
            self.cores[core].mover(send);
        }
    }

    // --- Results ---

    /// Makes a block ready for some tiles of the result `out`: what stays of them is read, all else is zero. With `keep`, the
    /// instruction changes values in place, or leaves some of them as they are.
    pub fn begin_out(
        &mut self,
        core: usize,
        out: Area,
        tiles: TileRange,
        block: Block,
        keep: bool,
    ) {
        let buffer = self.buffer(out);
        let stays = |tile: &TileRange| {
            let number = tile.row * buffer.column_tiles() as usize + tile.column;
            self.tables.written.before(self.number, out.buffer, number)
                && (keep || !fills_tile(buffer, *tile, out))
        };
        let kept: Vec<TileRange> = tiles.each().filter(stays).collect();
        if kept.len() == tiles.count() {
            self.cores[core].read(out.buffer, buffer, tiles, block);
            return;
        }
        self.cores[core].zero(block);
        for tile in kept {
            let address = block.tile(tile.row - tiles.row, tile.column - tiles.column);
            self.cores[core].read(out.buffer, buffer, tile, Block { address, ..block });
        }
    }

    /// Writes tiles of the result back.
    pub fn store(&mut self, core: usize, out: Area, tiles: TileRange, block: Block) {
        let buffer = self.buffer(out);
        self.cores[core].write(out.buffer, buffer, tiles, block);
    }

    /// The finished program, of the cores that have something to do.
    pub fn finish(self) -> Result<Lowered, TraceError> {
        let (place, dram) = (self.place, &self.tables.dram);
        let mut cores = Vec::with_capacity(CORES);
        let mut streams = Vec::with_capacity(CORES);
        for writer in self.cores {
            if writer.streams.bytes() == 0 {
                continue;
            }
            let mut map = self.map.clone();
            map.add_kernel_regions(std::iter::once(&writer.streams));
            map.check(writer.core).map_err(|fault| TraceError::Layout { place, fault })?;
            let (core, ring) = (writer.core, self.ring);
            cores.push(CoreProgram { core, map, semaphores: semaphores(), ring, bank: None });
            streams.push(writer.streams);
        }
        let segment = Segment { name: place.to_string(), first_pass: 0, passes: 1, streams };
        let (buffers, tables) = (dram.buffers.clone(), dram.tables.clone());
        Ok(Lowered { cores, segments: vec![segment], buffers, tables })
    }
}
