//! Heads whose width is no multiple of 16: what moves between cores is whole columns of tiles, which are cut and put
//! together by copies on the cores where they land.

use super::LowerError;
use super::chip::{compute, hub};
use super::memory::column_tiles;
use super::uses::Use;
use super::writer::Writer;
use crate::backend::blackhole::lowered::{BlockFormat, Engine, Instruction};
use crate::backend::blackhole::numerics::tile;
use crate::program::{AttentionShape, View};

/// Columns of tiles that the columns of a head lie in: the first, and how many.
pub fn tiles_of(head: usize, width: usize) -> (usize, usize) {
    let first = head * width / tile::SIDE;
    (first, column_tiles((head + 1) * width) - first)
}

/// Most columns of tiles that a head can lie in.
pub fn most_tiles(width: usize) -> usize {
    column_tiles(width) + 1
}

impl Writer<'_> {
    /// Where column `column` of tiles of a head's queries, keys or values lands on its core, of blocks with `row_tiles` rows
    /// of tiles.
    pub fn landing(
        &self,
        role: Use,
        head: usize,
        width: usize,
        column: usize,
        row_tiles: u32,
    ) -> u32 {
        let tall = self.memory.key_tiles.max(self.memory.row_tiles);
        let each = most_tiles(width) as u32 * tall * BlockFormat::Bf16.tile_bytes();
        let kind = match role {
            Use::Queries => 0,
            Use::Keys => 1,
            _ => 2,
        };
        let slot = (head / self.chip.heads()) as u32;
        let height = row_tiles * BlockFormat::Bf16.tile_bytes();
        self.memory.landing + (3 * slot + kind) * each + column as u32 * height
    }

    /// The mover of `core` sends a column of tiles to the cores of all heads that have columns in it.
    pub fn send_to_ragged_heads(
        &mut self,
        core: usize,
        address: u32,
        role: Use,
        shape: AttentionShape,
        column: usize,
    ) {
        let bytes = self.memory.column_bytes(BlockFormat::Bf16);
        for head in 0..shape.heads {
            let (first, count) = tiles_of(head, shape.head_dim);
            if !(first..first + count).contains(&column) {
                continue;
            }
            let number = head % self.chip.heads();
            let to = self.chip.head(number);
            let row_tiles = self.memory.row_tiles;
            let target = self.landing(role, head, shape.head_dim, column - first, row_tiles);
            let send = Instruction::Send {
                address,
                step: 0,
                count: 1,
                bytes,
                core: self.chip.at(to),
                target,
                target_step: 0,
            };
            self.chip.mover(core, send);
            self.chip.signal(core, Engine::Mover, to, compute::HEAD_INPUT);
            self.head_pieces[number] += 1;
        }
    }

    /// The mover of a head core reads the columns of tiles that a head's keys or values lie in.
    pub fn read_ragged_head(
        &mut self,
        number: usize,
        head: usize,
        view: View,
        role: Use,
        shape: AttentionShape,
    ) {
        let buffer = self.dram_buffer(view.buffer, BlockFormat::Bf16);
        let row_tiles = view.rows.div_ceil(tile::SIDE) as u32;
        let (first, count) = tiles_of(head, shape.head_dim);
        for column in 0..count {
            let read = Instruction::ReadTiles {
                buffer,
                tile: (first + column) as u32,
                tile_step: column_tiles(shape.heads * shape.head_dim) as u32,
                count: row_tiles,
                offset: 0,
                bytes: BlockFormat::Bf16.tile_bytes(),
                address: self.landing(role, head, shape.head_dim, column, row_tiles),
                address_step: BlockFormat::Bf16.tile_bytes(),
            };
            self.chip.mover(self.chip.head(number), read);
        }
    }

    /// Compute of a head core cuts a head's columns out of what has landed.
    pub fn cut_head(
        &mut self,
        head: usize,
        role: Use,
        rows: usize,
        row_tiles: u32,
        shape: AttentionShape,
    ) {
        let (first, _) = tiles_of(head, shape.head_dim);
        let copy = Instruction::CopyBlock {
            x: self.landing(role, head, shape.head_dim, 0, row_tiles),
            x_format: BlockFormat::Bf16,
            x_row_tiles: row_tiles,
            x_row: 0,
            x_column: (head * shape.head_dim - first * tile::SIDE) as u32,
            out: self.head_column(role, head, 0),
            out_format: BlockFormat::Bf16,
            out_row_tiles: self.head_row_tiles(role),
            out_row: 0,
            out_column: 0,
            rows: rows as u32,
            columns: shape.head_dim as u32,
        };
        let core = self.chip.head(head % self.chip.heads());
        self.chip.compute(core, copy);
    }

    /// Every head core sends its heads' context whole to the hubs that gather some of its columns, and these put it together.
    pub fn gather_ragged_context(
        &mut self,
        shape: AttentionShape,
        out: View,
    ) -> Result<(), LowerError> {
        let tiles = column_tiles(out.cols);
        let each = tiles.div_ceil(self.chip.hubs());
        for number in 0..tiles.div_ceil(each) {
            let first = number * each * tile::SIDE;
            let end = out.cols.min(first + each * tile::SIDE);
            let hub = self.chip.hub(number);
            let heads: Vec<usize> = (0..shape.heads)
                .filter(|head| {
                    let columns = head * shape.head_dim..(head + 1) * shape.head_dim;
                    columns.start < end && columns.end > first
                })
                .collect();
            for head in &heads {
                let core = self.chip.head(head % self.chip.heads());
                let send = Instruction::Send {
                    address: self.head_column(Use::Nothing, *head, 0),
                    step: 0,
                    count: 1,
                    bytes: self.memory.head_block,
                    core: self.chip.at(hub),
                    target: self.memory.hub_landing + *head as u32 * self.memory.head_block,
                    target_step: 0,
                };
                self.chip.mover(core, send);
                self.chip.signal(core, Engine::Mover, hub, hub::LANDED);
            }
            self.chip.wait(hub, Engine::Compute, hub::LANDED, heads.len() as u32);
            for head in heads {
                let column = head * shape.head_dim;
                let (from, to) = (column.max(first), end.min(column + shape.head_dim));
                let copy = Instruction::CopyBlock {
                    x: self.memory.hub_landing + head as u32 * self.memory.head_block,
                    x_format: BlockFormat::Bf16,
                    x_row_tiles: self.memory.row_tiles,
                    x_row: 0,
                    x_column: (from - column) as u32,
                    out: self.memory.staging,
                    out_format: BlockFormat::Bf16,
                    out_row_tiles: self.memory.row_tiles,
                    out_row: 0,
                    out_column: (from - first) as u32,
                    rows: out.rows as u32,
                    columns: (to - from) as u32,
                };
                self.chip.compute(hub, copy);
            }
            self.chip.signal(hub, Engine::Compute, hub, hub::GATHERED);
            self.expect_piece(number);
        }
        Ok(())
    }
}
