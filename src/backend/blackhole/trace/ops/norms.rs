//! Norms: a core has part of a row of tiles of the result, and reads all of what is summed up over.

use crate::backend::blackhole::lowered::{BlockFormat, Instruction, NORM_SCRATCH, NormScaling};
use crate::backend::blackhole::numerics::tile::SIDE;
use crate::backend::blackhole::trace::core::Block;
use crate::backend::blackhole::trace::error::TraceError;
use crate::backend::blackhole::trace::geometry::{Area, TileRange, by_rows, head_groups};
use crate::backend::blackhole::trace::program::ProgramWriter;
use crate::backend::blackhole::trace::weights::Vector;
use crate::program::{Modulation, View, WeightId};

/// Columns of tiles that a core makes at a time.
const STRIP: usize = 32;

/// What is computed over every row, or every group of columns.
enum Norm {
    Layer { scaling: NormScaling, gain: VectorSource, shift: VectorSource },
    Rms { group: usize, weight: VectorSource },
}

#[derive(Clone, Copy)]
enum VectorSource {
    None,
    Arena(Vector),
    /// A row of a buffer.
    Row(Area),
}

/// Regions of every core.
struct Regions {
    x: Block,
    staging: u32,
    gain: u32,
    shift: u32,
    /// Rows of a buffer come through here.
    row_tiles: Block,
    out: Block,
}

pub fn layer_norm(
    program: &mut ProgramWriter<'_>,
    x: View,
    affine: Option<(WeightId, WeightId)>,
    modulation: Option<Modulation>,
    eps: f32,
    out: View,
) -> Result<(), TraceError> {
    let (scaling, gain, shift) = match (affine, modulation) {
        (Some((weight, bias)), _) => {
            let (gain, shift) = (program.arena_vector(weight)?, program.arena_vector(bias)?);
            (NormScaling::Affine, VectorSource::Arena(gain), VectorSource::Arena(shift))
        }
        (None, Some(Modulation { scale, shift })) => {
            let (gain, shift) = (program.area(scale)?, program.area(shift)?);
            program.check_bf16(gain)?;
            program.check_bf16(shift)?;
            (NormScaling::Modulated, VectorSource::Row(gain), VectorSource::Row(shift))
        }
        (None, None) => (NormScaling::None, VectorSource::None, VectorSource::None),
    };
    lower(program, x, &Norm::Layer { scaling, gain, shift }, eps, out)
}

pub fn rms_norm(
    program: &mut ProgramWriter<'_>,
    x: View,
    weight: WeightId,
    eps: f32,
    out: View,
) -> Result<(), TraceError> {
    let group = program.tables.program.weights[weight.0].cols;
    let weight = VectorSource::Arena(program.arena_vector(weight)?);
    lower(program, x, &Norm::Rms { group, weight }, eps, out)
}

fn lower(
    program: &mut ProgramWriter<'_>,
    x: View,
    norm: &Norm,
    eps: f32,
    out: View,
) -> Result<(), TraceError> {
    let (x, out) = (program.area(x)?, program.area(out)?);
    program.check_columns(out)?;
    // Columns that belong together, as their places among those of the result.
    let width = match norm {
        Norm::Layer { .. } => x.columns,
        Norm::Rms { group, .. } => *group,
    };
    let groups = head_groups(0, x.columns / width, width);
    let tiles = TileRange::covering(out);
    let first = tiles.column;
    let cells: Vec<_> = groups
        .iter()
        .map(|group| {
            let (start, end) = (group.start * width / SIDE, (group.end * width).div_ceil(SIDE));
            first + start..first + end
        })
        .collect();
    let widest = cells.iter().map(|cell| cell.len()).max().unwrap_or(0);
    let regions = lay_out(program, x, out, norm, widest)?;
    for (core, units) in by_rows(tiles, &cells, STRIP).into_iter().enumerate() {
        for tiles in units {
            let cell = cells.iter().position(|cell| cell.contains(&tiles.column));
            let Some(cell) = cell.map(|cell| &groups[cell]) else { continue };
            let (from, columns) = (cell.start * width, cell.len() * width);
            let part = tiles.part_of(out);
            let (first_row, _) = part.in_tile();
            let block = regions.x.of_tiles(1, columns.div_ceil(SIDE));
            let rows = x.slice_rows(part.row - out.row, part.rows).slice_columns(from, columns);
            program.load(core, rows, block, (first_row, 0), false, regions.staging);
            let target = regions.out.of_tiles(1, tiles.columns);
            program.begin_out(core, out, tiles, target, false);
            let strip = Strip {
                x: block,
                first_row,
                rows: part.rows,
                columns,
                first: part.column - out.column - from,
                count: part.columns,
                out: target,
            };
            let instruction = norm.of_strip(program, core, &regions, &strip, eps);
            program.core(core).compute(instruction);
            program.store(core, out, tiles, target);
        }
    }
    Ok(())
}

/// What of the rows in L1 is computed.
struct Strip {
    x: Block,
    first_row: usize,
    rows: usize,
    columns: usize,
    /// Those of the result.
    first: usize,
    count: usize,
    out: Block,
}

impl Norm {
    /// Brings the vectors; gives the instruction.
    fn of_strip(
        &self,
        program: &mut ProgramWriter<'_>,
        core: usize,
        regions: &Regions,
        strip: &Strip,
        eps: f32,
    ) -> Instruction {
        let (x, x_format, row_tiles) = (strip.x.address, strip.x.format, strip.x.row_tiles as u32);
        let (first_row, rows) = (strip.first_row as u32, strip.rows as u32);
        let (columns, first, count) =
            (strip.columns as u32, strip.first as u32, strip.count as u32);
        let (out, out_format) = (strip.out.address, strip.out.format);
        match self {
            Norm::Layer { scaling, gain, shift } => {
                let scaling = *scaling;
                let gain = gain.bring(program, core, regions.gain, regions);
                let shift = shift.bring(program, core, regions.shift, regions);
                Instruction::LayerNorm {
                    x,
                    x_format,
                    row_tiles,
                    first_row,
                    rows,
                    columns,
                    first,
                    count,
                    scaling,
                    gain,
                    shift,
                    eps,
                    out,
                    out_format,
                }
            }
            Norm::Rms { group, weight } => {
                weight.bring(program, core, regions.gain, regions);
                let (group, weight) = (*group as u32, regions.gain);
                Instruction::RmsNorm {
                    x,
                    x_format,
                    row_tiles,
                    first_row,
                    rows,
                    columns,
                    group,
                    first,
                    count,
                    weight,
                    eps,
                    out,
                    out_format,
                }
            }
        }
    }

    fn vectors(&self) -> [VectorSource; 2] {
        match self {
            Norm::Layer { gain, shift, .. } => [*gain, *shift],
            Norm::Rms { weight, .. } => [*weight, VectorSource::None],
        }
    }
}

impl VectorSource {
    fn bring(
        self,
        program: &mut ProgramWriter<'_>,
        core: usize,
        address: u32,
        regions: &Regions,
    ) -> Option<u32> {
        match self {
            Self::None => return None,
            Self::Arena(vector) => program.vector(core, vector, address),
            Self::Row(row) => {
                program.row_vector(core, row, address, regions.row_tiles, regions.staging);
            }
        }
        Some(address)
    }

    /// Bytes of the vector in L1, and columns of tiles that it comes through.
    fn size(self) -> (u32, usize) {
        match self {
            Self::None => (0, 0),
            Self::Arena(vector) => (vector.bytes, 0),
            Self::Row(row) => {
                let tiles = row.columns.div_ceil(SIDE);
                (2 * (tiles * SIDE) as u32, tiles)
            }
        }
    }
}

/// `widest` is the number of columns of tiles of the widest cell.
fn lay_out(
    program: &mut ProgramWriter<'_>,
    x: Area,
    out: Area,
    norm: &Norm,
    widest: usize,
) -> Result<Regions, TraceError> {
    let (x_format, out_format) = (program.format(x), program.format(out));
    let [(gain, gain_tiles), (shift, shift_tiles)] = norm.vectors().map(VectorSource::size);
    let gain = program.region("gain", gain);
    let shift = program.region("shift", shift);
    let row_tiles = gain_tiles.max(shift_tiles);
    let row_tiles = program.block("rows of vectors", BlockFormat::Bf16, 1, row_tiles);
    let staging = program.region("staging", 2 * BlockFormat::F32.tile_bytes());
    let out = program.block("out", out_format, 1, widest.min(STRIP));
    program.room(1, |_| widest as u32 * x_format.tile_bytes() + NORM_SCRATCH)?;
    let x = program.block("x", x_format, 1, widest);
    Ok(Regions { x, staging, gain, shift, row_tiles, out })
}
