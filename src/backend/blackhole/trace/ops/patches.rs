//! Values that change their places in a regular way: a core has part of a row of tiles of the result, and reads the rows that
//! it is put together from.

use std::ops::Range;

use crate::backend::blackhole::lowered::{BlockFormat, COMPUTE_SCRATCH, Instruction};
use crate::backend::blackhole::trace::core::Block;
use crate::backend::blackhole::trace::error::TraceError;
use crate::backend::blackhole::trace::geometry::{Area, TileRange, by_rows};
use crate::backend::blackhole::trace::memory::{Origin, ROW_ALIGNMENT};
use crate::backend::blackhole::trace::program::ProgramWriter;
use crate::program::{PatchGrid, PatchOrder, View};

/// Columns of tiles of the result that a core makes at a time.
const STRIP: usize = 16;

/// Part of the result on its way.
struct Strip {
    /// Rows of the result.
    rows: Range<usize>,
    /// Row of the block that the first of them stands in.
    first_row: usize,
    /// Columns of the result; the first of them is column 0 of the block.
    columns: Range<usize>,
    block: Block,
}

/// Calls `work` with every part of the result on its core; a row of tiles by about [`STRIP`] columns at a time.
fn strips<'a>(
    program: &mut ProgramWriter<'a>,
    out: Area,
    mut work: impl FnMut(&mut ProgramWriter<'a>, usize, &Strip),
) -> Result<(), TraceError> {
    program.check_columns(out)?;
    let block = program.block("out", program.format(out), 1, STRIP);
    let tiles = TileRange::covering(out);
    let units = by_rows(tiles, &[tiles.column_range()], STRIP);
    for (core, units) in units.into_iter().enumerate() {
        for tiles in units {
            let block = block.of_tiles(1, tiles.columns);
            program.begin_out(core, out, tiles, block, false);
            let part = tiles.part_of(out);
            let (row, column) = (part.row - out.row, part.column - out.column);
            let strip = Strip {
                rows: row..row + part.rows,
                first_row: part.in_tile().0,
                columns: column..column + part.columns,
                block,
            };
            work(program, core, &strip);
            program.store(core, out, tiles, block);
        }
    }
    Ok(())
}

/// Rows of the result that are neighbours in a grid: so many of `image` from cell `column` of line `line` on.
struct Neighbours {
    image: usize,
    line: usize,
    column: usize,
    count: usize,
    /// Row of the block.
    out_row: usize,
}

impl Strip {
    /// The rows as neighbours in a grid of `side` x `side` cells, image by image and line by line.
    fn neighbours(&self, side: usize) -> Vec<Neighbours> {
        let mut found = Vec::new();
        let mut row = self.rows.start;
        while row < self.rows.end {
            let column = row % side;
            let count = (side - column).min(self.rows.end - row);
            found.push(Neighbours {
                image: row / (side * side),
                line: row / side % side,
                column,
                count,
                out_row: self.first_row + row - self.rows.start,
            });
            row += count;
        }
        found
    }

    /// Which of `count` columns of the result, from `first` on and `step` apart, are of this strip.
    fn within(&self, first: usize, step: usize, count: usize) -> Range<usize> {
        let reach = |column: usize| column.saturating_sub(first).div_ceil(step).min(count);
        reach(self.columns.start)..reach(self.columns.end)
    }
}

/// Pictures to patches.
pub fn patchify(
    program: &mut ProgramWriter<'_>,
    x: View,
    grid: PatchGrid,
    out: View,
) -> Result<(), TraceError> {
    let PatchGrid { side, patch, channels, .. } = grid;
    let out = program.area(out)?;
    let table = program.table(Origin::Buffer(x.buffer))?;
    // All lines of pixels of a line of patches; what is read begins and ends where DRAM may be read.
    let lines = (2 * patch * side).next_multiple_of(ROW_ALIGNMENT) + 2 * ROW_ALIGNMENT;
    let pixels = program.region("pixels", (channels * lines) as u32);
    strips(program, out, |program, core, strip| {
        for neighbours in strip.neighbours(side / patch) {
            let (mut reads, mut spreads) = (Vec::new(), Vec::new());
            for channel in 0..channels {
                let first = (channel * side + neighbours.line * patch) * side;
                let offset = 2 * first / ROW_ALIGNMENT * ROW_ALIGNMENT;
                let end = (2 * (first + patch * side)).next_multiple_of(ROW_ALIGNMENT);
                let address = pixels + (channel * lines) as u32;
                reads.push(Instruction::ReadRows {
                    table,
                    list: None,
                    first: (x.row + neighbours.image) as u32,
                    count: 1,
                    offset: offset as u32,
                    bytes: (end - offset) as u32,
                    address,
                    address_step: 0,
                });
                let skipped = first - offset / 2;
                spreads.extend(lines_of_patches(
                    grid,
                    strip,
                    &neighbours,
                    channel,
                    skipped,
                    address,
                ));
            }
            reads.into_iter().for_each(|read| program.core(core).mover(read));
            spreads.into_iter().for_each(|spread| program.core(core).compute(spread));
        }
    })
}

/// What brings the pixels of one channel to their patches: all patches of a line at once, one line of pixels after the other.
fn lines_of_patches(
    grid: PatchGrid,
    strip: &Strip,
    neighbours: &Neighbours,
    channel: usize,
    skipped: usize,
    address: u32,
) -> Vec<Instruction> {
    let PatchGrid { side, patch, channels, order } = grid;
    let line = |y: usize| {
        let (first, step) = match order {
            PatchOrder::ChannelLast => (y * patch * channels + channel, channels),
            PatchOrder::ChannelFirst => ((channel * patch + y) * patch, 1),
        };
        let columns = strip.within(first, step, patch);
        (!columns.is_empty()).then(|| Instruction::Spread {
            x: address,
            first: (skipped + y * side + neighbours.column * patch + columns.start) as u32,
            x_row_step: patch as u32,
            out: strip.block.address,
            out_format: strip.block.format,
            out_row_tiles: 1,
            out_row: neighbours.out_row as u32,
            out_column: (first + columns.start * step - strip.columns.start) as u32,
            out_column_step: step as u32,
            rows: neighbours.count as u32,
            columns: columns.len() as u32,
        })
    };
    (0..patch).filter_map(line).collect()
}

/// 2x2 neighbours of a grid to one row.
pub fn space_to_depth(
    program: &mut ProgramWriter<'_>,
    x: View,
    side: usize,
    out: View,
) -> Result<(), TraceError> {
    let (x, out) = (program.area(x)?, program.area(out)?);
    // Two rows of `x` for every row of the result, and a fourth of its columns; neither need begin at a tile.
    let block = program.block("x", program.format(x), 3, STRIP.div_ceil(4) + 1);
    strips(program, out, |program, core, strip| {
        for neighbours in strip.neighbours(side / 2) {
            for dy in 0..2 {
                let line = (neighbours.image * side + 2 * neighbours.line + dy) * side;
                let rows = x.slice_rows(line + 2 * neighbours.column, 2 * neighbours.count);
                let [left, right] = [0, 1].map(|dx| strip.within(2 * dy + dx, 4, x.columns));
                let channels = left.start.min(right.start)..left.end.max(right.end);
                let area = rows.slice_columns(channels.start, channels.len());
                if area.is_empty() {
                    continue;
                }
                program.read(core, area, block);
                let (row, column) = area.in_tile();
                for (dx, mine) in [left, right].into_iter().enumerate() {
                    if mine.is_empty() {
                        continue;
                    }
                    let out_column = 4 * mine.start + 2 * dy + dx - strip.columns.start;
                    program.core(core).compute(Instruction::Regroup {
                        x: block.address,
                        x_format: block.format,
                        x_row_tiles: block.row_tiles as u32,
                        x_row: (row + dx) as u32,
                        x_row_step: 2,
                        x_column: (column + mine.start - channels.start) as u32,
                        out: strip.block.address,
                        out_format: strip.block.format,
                        out_row_tiles: 1,
                        out_row: neighbours.out_row as u32,
                        out_column: out_column as u32,
                        out_column_step: 4,
                        rows: neighbours.count as u32,
                        columns: mine.len() as u32,
                    });
                }
            }
        }
    })
}

/// Rows of `x` side by side to one row.
pub fn reshape(program: &mut ProgramWriter<'_>, x: View, out: View) -> Result<(), TraceError> {
    let (x, out) = (program.area(x)?, program.area(out)?);
    if !out.columns.is_multiple_of(x.columns) {
        return Err(program.unsupported("a reshape that does not put whole rows side by side"));
    }
    let group = out.columns / x.columns;
    // A row of tiles of the result is made from as many rows as are side by side, which need not begin at a tile.
    let x_row_tiles = group + 1;
    let each = x_row_tiles as u32 * program.format(x).tile_bytes();
    let strip = STRIP as u32 * BlockFormat::F32.tile_bytes();
    program.room(1, |_| strip + (STRIP as u32 + 1) * each + COMPUTE_SCRATCH)?;
    let block = program.block("x", program.format(x), x_row_tiles, STRIP + 1);
    strips(program, out, |program, core, strip| {
        for member in 0..group {
            let first = member * x.columns;
            let columns = strip.within(first, 1, x.columns);
            if columns.is_empty() {
                continue;
            }
            let rows = x.slice_rows(group * strip.rows.start, group * strip.rows.len());
            let area = rows.slice_columns(columns.start, columns.len());
            program.read(core, area, block);
            let (row, column) = area.in_tile();
            program.core(core).compute(Instruction::Regroup {
                x: block.address,
                x_format: block.format,
                x_row_tiles: block.row_tiles as u32,
                x_row: (row + member) as u32,
                x_row_step: group as u32,
                x_column: column as u32,
                out: strip.block.address,
                out_format: strip.block.format,
                out_row_tiles: 1,
                out_row: strip.first_row as u32,
                out_column: (first + columns.start - strip.columns.start) as u32,
                out_column_step: 1,
                rows: strip.rows.len() as u32,
                columns: columns.len() as u32,
            });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::blackhole::numerics::tile::SIDE;

    fn strip(rows: Range<usize>, columns: Range<usize>) -> Strip {
        let block = Block { address: 0, format: BlockFormat::Bf16, row_tiles: 1, column_tiles: 1 };
        Strip { rows, first_row: 3, columns, block }
    }

    #[test]
    fn rows_fall_apart_at_the_ends_of_lines() {
        let found = strip(7..20, 0..SIDE).neighbours(3);
        let places = found.iter().map(|n| (n.image, n.line, n.column, n.count, n.out_row));
        let expected =
            [(0, 2, 1, 2, 3), (1, 0, 0, 3, 5), (1, 1, 0, 3, 8), (1, 2, 0, 3, 11), (2, 0, 0, 2, 14)];
        assert!(places.eq(expected));
    }

    #[test]
    fn only_columns_of_the_strip_are_made() {
        let strip = strip(0..1, 32..64);
        assert_eq!(strip.within(0, 1, 40), 32..40);
        assert_eq!(strip.within(2, 4, 14), 8..14);
        assert_eq!(strip.within(40, 3, 4), 0..4);
        assert!(strip.within(0, 1, 32).is_empty() && strip.within(64, 1, 5).is_empty());
    }
}
