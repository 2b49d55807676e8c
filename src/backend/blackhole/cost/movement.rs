//! What only moves values.

use super::spread::Spread;
use super::work::{Place, VALUE_BYTES, Work, tiles, view_tiles};
use crate::backend::blackhole::numerics::TileFormat;
use crate::program::{PatchGrid, View, WeightId};

/// Rows of a table, which lie side by side in DRAM.
pub fn embed(place: &Place<'_>, table: WeightId, out: View) -> Work {
    let mut work = Work { handovers: 1, ..Work::default() };
    let row_bytes = place.weight(table).cols as u64 * VALUE_BYTES;
    work.dram.add(TileFormat::Bf16, out.rows as u64, row_bytes);
    work.weight_bytes += out.rows as u64 * row_bytes;
    work.move_rows(out, place.execution.cores());
    finish(place, work, out)
}

/// All rows of a view to another place.
pub fn rows(place: &Place<'_>, x: View, out: View) -> Work {
    let mut work = Work { handovers: 1, ..Work::default() };
    work.read(place, x, 0);
    work.move_rows(x, place.execution.cores());
    finish(place, work, out)
}

/// Some rows of a view to another place.
pub fn gather(place: &Place<'_>, x: View, out: View) -> Work {
    rows(place, x.slice_rows(0, out.rows), out)
}

/// Rows added to rows at another place.
pub fn add_rows(place: &Place<'_>, x: View, out: View) -> Work {
    let mut work = rows(place, x, out);
    work.spread = Spread::blocks(tiles(x.rows), tiles(x.cols), place.execution.owners());
    work.vector_passes = place.rates.two_operands;
    work
}

/// Whole tiles to another place.
pub fn copy(place: &Place<'_>, x: View, out: View) -> Work {
    let mut work = Work { handovers: 1, ..Work::default() };
    let core_tiles = view_tiles(out).div_ceil(place.execution.cores() as u64);
    work.read(place, x, core_tiles);
    work.write(place, out, core_tiles);
    work
}

/// A matrix of the checkpoint to a view.
pub fn copy_weight(place: &Place<'_>, weight: WeightId, out: View) -> Work {
    let mut work = Work { handovers: 1, ..Work::default() };
    let core_tiles = view_tiles(out).div_ceil(place.execution.cores() as u64);
    work.read_weight_rows(place.weight(weight), out.rows, core_tiles);
    work.write(place, out, core_tiles);
    work
}

/// Pictures to patches: the pixels of a row of a patch lie side by side.
pub fn patchify(place: &Place<'_>, x: View, grid: PatchGrid, out: View) -> Work {
    let mut work = Work { handovers: 1, ..Work::default() };
    let pixel_rows = (x.rows * grid.channels * grid.side) as u64;
    work.dram.add(TileFormat::Bf16, pixel_rows, grid.side as u64 * VALUE_BYTES);
    let pieces = pixel_rows * (grid.side / grid.patch) as u64;
    let piece_bytes = grid.patch as u64 * VALUE_BYTES;
    work.transfer(pieces.div_ceil(place.execution.cores() as u64), piece_bytes);
    finish(place, work, out)
}

/// Writes the tiles that have come about.
fn finish(place: &Place<'_>, mut work: Work, out: View) -> Work {
    let core_tiles = view_tiles(out).div_ceil(place.execution.cores() as u64);
    work.write(place, out, core_tiles);
    work
}
