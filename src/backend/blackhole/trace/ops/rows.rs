//! Rows that a list of the request names. What stands in a list is not known before it is read: a core has whole columns of
//! tiles, or looks rows up in a table.

use crate::backend::blackhole::lowered::{BlockFormat, Instruction, RowMotion};
use crate::backend::blackhole::numerics::tile::SIDE;
use crate::backend::blackhole::trace::error::TraceError;
use crate::backend::blackhole::trace::geometry::{TileRange, by_rows, deal};
use crate::backend::blackhole::trace::memory::Origin;
use crate::backend::blackhole::trace::program::ProgramWriter;
use crate::program::{IndexId, View, WeightId};

/// Columns of tiles of a table that a core looks up at a time.
const STRIP: usize = 16;

/// A list in L1.
struct List {
    table: u32,
    bytes: u32,
    address: u32,
    count: usize,
}

impl List {
    fn lay_out(program: &mut ProgramWriter<'_>, list: IndexId) -> Result<Self, TraceError> {
        let table = program.table(Origin::Index(list))?;
        let bytes = program.tables.dram.tables[table as usize].row_bytes;
        let count = program.tables.program.indices[list.0].len;
        Ok(Self { table, bytes, address: program.region("list", bytes), count })
    }

    fn bring(&self, program: &mut ProgramWriter<'_>, core: usize) {
        program.core(core).mover(Instruction::ReadRows {
            table: self.table,
            list: None,
            first: 0,
            count: 1,
            offset: 0,
            bytes: self.bytes,
            address: self.address,
            address_step: 0,
        });
    }
}

/// Gathers rows of `x`, or scatters them over `out`.
pub fn motion(
    program: &mut ProgramWriter<'_>,
    motion: RowMotion,
    x: View,
    rows: IndexId,
    out: View,
) -> Result<(), TraceError> {
    let limit = if motion == RowMotion::Gather { x.rows } else { out.rows };
    let (x, out) = (program.area(x)?, program.area(out)?);
    program.check_columns(out)?;
    let list = List::lay_out(program, rows)?;
    let (x_rows, tiles) = (TileRange::covering(x).rows, TileRange::covering(out));
    let staging = program.region("staging", program.staging_bytes(x));
    let block = program.block("x", program.format(x), x_rows, 1);
    let target = program.block("out", program.format(out), tiles.rows, 1);
    let columns = deal(tiles.column_range().collect());
    for (core, columns) in columns.into_iter().enumerate() {
        if !columns.is_empty() {
            list.bring(program, core);
        }
        for column in columns {
            let tiles = tiles.of_columns(column..column + 1);
            let part = tiles.part_of(out);
            let (x_row, _) = x.in_tile();
            let column = x.slice_columns(part.column - out.column, part.columns);
            program.load(core, column, block, (x_row, 0), false, staging);
            program.begin_out(core, out, tiles, target, motion != RowMotion::Gather);
            program.core(core).compute(Instruction::MoveRows {
                x: block.address,
                x_format: block.format,
                x_row_tiles: x_rows as u32,
                x_row: x_row as u32,
                out: target.address,
                out_format: target.format,
                out_row_tiles: tiles.rows as u32,
                out_row: out.in_tile().0 as u32,
                list: list.address,
                count: list.count as u32,
                limit: limit as u32,
                columns: part.columns as u32,
                motion,
            });
            program.store(core, out, tiles, target);
        }
    }
    Ok(())
}

/// `out[i] = table[ids[i]]`
pub fn embed(
    program: &mut ProgramWriter<'_>,
    table: WeightId,
    ids: IndexId,
    out: View,
) -> Result<(), TraceError> {
    let table = program.table(Origin::Weight(table))?;
    let out = program.area(out)?;
    program.check_columns(out)?;
    let list = List::lay_out(program, ids)?;
    let strip_bytes = STRIP as u32 * TILE_ROW_BYTES;
    let rows = program.region("rows", SIDE as u32 * strip_bytes);
    let target = program.block("out", program.format(out), 1, STRIP);
    let tiles = TileRange::covering(out);
    let units = by_rows(tiles, &[tiles.column_range()], STRIP);
    for (core, units) in units.into_iter().enumerate() {
        if !units.is_empty() {
            list.bring(program, core);
        }
        for tiles in units {
            let target = target.of_tiles(1, tiles.columns);
            let part = tiles.part_of(out);
            let bytes = tiles.columns as u32 * TILE_ROW_BYTES;
            program.core(core).mover(Instruction::ReadRows {
                table,
                list: Some(list.address),
                first: (part.row - out.row) as u32,
                count: part.rows as u32,
                offset: 2 * (part.column - out.column) as u32,
                bytes,
                address: rows,
                address_step: bytes,
            });
            program.begin_out(core, out, tiles, target, false);
            program.core(core).compute(Instruction::Spread {
                x: rows,
                first: 0,
                x_row_step: bytes / BlockFormat::Bf16.bytes(),
                out: target.address,
                out_format: target.format,
                out_row_tiles: 1,
                out_row: part.in_tile().0 as u32,
                out_column: 0,
                out_column_step: 1,
                rows: part.rows as u32,
                columns: part.columns as u32,
            });
            program.store(core, out, tiles, target);
        }
    }
    Ok(())
}

/// Bytes of the values of bf16 that a tile has of a row.
const TILE_ROW_BYTES: u32 = 2 * SIDE as u32;
