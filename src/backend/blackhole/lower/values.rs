//! Where the buffers of the program stand in L1, for comparing them with what the CPU computes.

use super::memory::{FACE, column_tiles};
use super::ragged::tiles_of;
use super::uses::Use;
use super::writer::Writer;
use crate::backend::blackhole::grid::Core;
use crate::backend::blackhole::lowered::BlockFormat;
use crate::backend::blackhole::numerics::tile;
use crate::program::{AttentionShape, BufferId, Op};

/// Columns of a buffer in the L1 of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub core: Core,
    pub address: u32,
    pub format: BlockFormat,
    pub row_tiles: u32,
    /// First column of the buffer, and how many there are.
    pub first_column: u32,
    pub columns: u32,
}

/// All columns of a buffer; row 0 of the blocks is the buffer's row `-first_row`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub first_row: u32,
    pub rows: u32,
    pub blocks: Vec<Block>,
}

/// Places of all buffers that the instructions write. Several share one: what was written last stands there.
pub fn places(writer: &Writer<'_>) -> Vec<(BufferId, Place)> {
    let mut written: Vec<BufferId> =
        writer.ops.iter().filter_map(|(_, op)| op.written()).map(|out| out.buffer).collect();
    written.sort_by_key(|buffer| buffer.0);
    written.dedup();
    written.into_iter().map(|buffer| (buffer, place(writer, buffer))).collect()
}

fn place(writer: &Writer<'_>, buffer: BufferId) -> Place {
    let spec = &writer.sources.program.buffers[buffer.0];
    let (chip, memory) = (&writer.chip, &writer.memory);
    let owners = chip.owners();
    let columns = (0..column_tiles(spec.cols)).map(|at| {
        let first = at * tile::SIDE;
        (at, first as u32, (spec.cols - first).min(tile::SIDE) as u32)
    });
    let block =
        |core: usize, address, format, (_, first_column, columns): (usize, u32, u32)| Block {
            core: chip.at(core),
            address,
            format,
            row_tiles: memory.row_tiles,
            first_column,
            columns,
        };
    let bf16 = BlockFormat::Bf16;
    let height = memory.column_bytes(bf16);
    let blocks = match writer.uses.get(buffer) {
        Use::Owned => columns
            .map(|column| {
                let owned = memory.owned(buffer, column.0, owners);
                block(owned.core, owned.address, owned.format, column)
            })
            .collect(),
        Use::Branch => columns
            .map(|column| {
                let slot = (column.0 / owners) as u32;
                block(column.0 % owners, memory.branch + slot * height, bf16, column)
            })
            .collect(),
        Use::Everywhere => columns
            .map(|column| block(0, memory.x + column.0 as u32 * height, bf16, column))
            .collect(),
        Use::Owners => columns
            .map(|column| block(0, memory.wide + column.0 as u32 * height, bf16, column))
            .collect(),
        role @ (Use::Queries | Use::Keys | Use::Values) => heads(writer, buffer, role),
        Use::Outside | Use::Nothing => Vec::new(),
    };
    let (first_row, rows) = (writer.frames.of_buffer(buffer), spec.rows as u32);
    Place { first_row, rows, blocks }
}

/// The columns of every head.
fn heads(writer: &Writer<'_>, buffer: BufferId, role: Use) -> Vec<Block> {
    let shape = writer.ops.iter().find_map(|(_, op)| match op {
        Op::Attention { q, k, v, shape, .. } => {
            [q, k, v].iter().any(|view| view.buffer == buffer).then_some(shape)
        }
        _ => None,
    });
    let Some(shape) = shape else { return Vec::new() };
    if !shape.head_dim.is_multiple_of(FACE) {
        return landed(writer, role, shape);
    }
    let head = |head: usize| {
        (0..column_tiles(shape.head_dim)).map(move |column| {
            let first = column * tile::SIDE;
            Block {
                core: writer.chip.at(writer.chip.head(head % writer.chip.heads())),
                address: writer.head_column(role, head, column),
                format: BlockFormat::Bf16,
                row_tiles: writer.head_row_tiles(role),
                first_column: (head * shape.head_dim + first) as u32,
                columns: (shape.head_dim - first).min(tile::SIDE) as u32,
            }
        })
    };
    (0..shape.heads).flat_map(head).collect()
}

/// The columns of tiles that heads of odd widths are cut out of.
fn landed(writer: &Writer<'_>, role: Use, shape: &AttentionShape) -> Vec<Block> {
    let row_tiles = writer.memory.row_tiles;
    let head = |head: usize| {
        let (first, count) = tiles_of(head, shape.head_dim);
        (0..count).map(move |column| {
            let first_column = (first + column) * tile::SIDE;
            Block {
                core: writer.chip.at(writer.chip.head(head % writer.chip.heads())),
                address: writer.landing(role, head, shape.head_dim, column, row_tiles),
                format: BlockFormat::Bf16,
                row_tiles,
                first_column: first_column as u32,
                columns: (shape.heads * shape.head_dim - first_column).min(tile::SIDE) as u32,
            }
        })
    };
    (0..shape.heads).flat_map(head).collect()
}
