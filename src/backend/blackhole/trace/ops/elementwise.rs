//! Instructions that make every value from the values at its place: a core has pieces of columns of tiles.

use crate::backend::blackhole::lowered::{BlockFormat, Instruction};
use crate::backend::blackhole::trace::core::Block;
use crate::backend::blackhole::trace::error::TraceError;
use crate::backend::blackhole::trace::geometry::{Area, TileRange, by_columns};
use crate::backend::blackhole::trace::program::ProgramWriter;
use crate::program::{Activation, View};

/// Tiles of a piece at most.
const PIECE: usize = 32;

/// The regions of an operand and of the result, of as many tiles as the longest piece has.
struct Regions {
    x: Block,
    factor: Block,
    out: Block,
    staging: u32,
}

/// `factor` is a second operand, if there is one.
fn lay_out(
    program: &mut ProgramWriter<'_>,
    pieces: &[Vec<TileRange>],
    x: Area,
    factor: Option<Area>,
    out: Area,
) -> Regions {
    let rows = pieces.iter().flatten().map(|tiles| tiles.rows).max().unwrap_or(0);
    let factor_format = factor.map_or(program.format(x), |factor| program.format(factor));
    let factor_rows = if factor.is_some() { rows } else { 0 };
    let staging = (rows as u32 + 1) * BlockFormat::F32.tile_bytes();
    Regions {
        x: program.block("x", program.format(x), rows, 1),
        factor: program.block("factor", factor_format, factor_rows, 1),
        out: program.block("out", program.format(out), rows, 1),
        staging: program.region("staging", staging),
    }
}

/// The part of an operand of the shape of `out` that belongs to a part of it.
fn beside(x: Area, part: Area, out: Area) -> Area {
    x.slice_rows(part.row - out.row, part.rows)
        .slice_columns(part.column - out.column, part.columns)
}

/// `out = activation(x)`, times `factor`.
pub fn activate(
    program: &mut ProgramWriter<'_>,
    x: View,
    activation: Activation,
    factor: Option<View>,
    out: View,
) -> Result<(), TraceError> {
    let (x, out) = (program.area(x)?, program.area(out)?);
    let factor = factor.map(|factor| program.area(factor)).transpose()?;
    program.check_columns(out)?;
    let pieces = by_columns(TileRange::covering(out), PIECE);
    let regions = lay_out(program, &pieces, x, factor, out);
    for (core, pieces) in pieces.into_iter().enumerate() {
        for tiles in pieces {
            let [block, other, target] =
                [regions.x, regions.factor, regions.out].map(|block| block.of_tiles(tiles.rows, 1));
            let part = tiles.part_of(out);
            let (first_row, _) = part.in_tile();
            for (area, block) in [(Some(x), block), (factor, other)] {
                if let Some(area) = area {
                    let area = beside(area, part, out);
                    program.load(core, area, block, (first_row, 0), false, regions.staging);
                }
            }
            program.begin_out(core, out, tiles, target, false);
            program.core(core).compute(Instruction::Activate {
                x: block.address,
                x_format: block.format,
                factor: factor.map(|_| other.address),
                factor_format: other.format,
                activation,
                row_tiles: tiles.rows as u32,
                first_row: first_row as u32,
                rows: part.rows as u32,
                columns: part.columns as u32,
                out: target.address,
                out_format: target.format,
            });
            program.store(core, out, tiles, target);
        }
    }
    Ok(())
}

/// `out += factor * x`, where an `x` of fewer rows is repeated.
pub fn accumulate(
    program: &mut ProgramWriter<'_>,
    x: Area,
    factor: f32,
    out: View,
) -> Result<(), TraceError> {
    let out = program.area(out)?;
    program.check_columns(out)?;
    let pieces = by_columns(TileRange::covering(out), PIECE);
    let regions = lay_out(program, &pieces, x, None, out);
    for (core, pieces) in pieces.into_iter().enumerate() {
        for tiles in pieces {
            let [block, target] =
                [regions.x, regions.out].map(|block| block.of_tiles(tiles.rows, 1));
            let part = tiles.part_of(out);
            load_repeated(program, core, x, part, out, block, regions.staging);
            program.begin_out(core, out, tiles, target, true);
            program.core(core).compute(Instruction::Accumulate {
                x: block.address,
                x_format: block.format,
                factor,
                row_tiles: tiles.rows as u32,
                first_row: part.in_tile().0 as u32,
                rows: part.rows as u32,
                columns: part.columns as u32,
                out: target.address,
            });
            program.store(core, out, tiles, target);
        }
    }
    Ok(())
}

/// Brings the rows of `x` that belong to a part of `out`.
fn load_repeated(
    program: &mut ProgramWriter<'_>,
    core: usize,
    x: Area,
    part: Area,
    out: Area,
    block: Block,
    staging: u32,
) {
    let (first_row, _) = part.in_tile();
    let x = x.slice_columns(part.column - out.column, part.columns);
    let first = part.row - out.row;
    if first / x.rows == (first + part.rows - 1) / x.rows {
        let rows = x.slice_rows(first % x.rows, part.rows);
        program.load(core, rows, block, (first_row, 0), false, staging);
        return;
    }
    program.core(core).zero(block);
    let mut done = 0;
    while done < part.rows {
        let from = (first + done) % x.rows;
        let count = (x.rows - from).min(part.rows - done);
        let rows = x.slice_rows(from, count);
        program.place(core, rows, block, (first_row + done, 0), staging);
        done += count;
    }
}

/// `out = x`
pub fn copy(program: &mut ProgramWriter<'_>, x: Area, out: View) -> Result<(), TraceError> {
    let out = program.area(out)?;
    let pieces = by_columns(TileRange::covering(out), PIECE);
    let rows = pieces.iter().flatten().map(|tiles| tiles.rows).max().unwrap_or(0);
    let block = program.block("out", program.format(out), rows, 1);
    let staging = (rows as u32 + 1) * program.format(x).tile_bytes();
    let staging = program.region("staging", staging);
    for (core, pieces) in pieces.into_iter().enumerate() {
        for tiles in pieces {
            let block = block.of_tiles(tiles.rows, 1);
            let part = tiles.part_of(out);
            program.begin_out(core, out, tiles, block, false);
            program.place(core, beside(x, part, out), block, part.in_tile(), staging);
            program.store(core, out, tiles, block);
        }
    }
    Ok(())
}
