//! Products.
//!
//! A core has some columns of tiles of the result and, if there are fewer columns than cores, some of its rows. As many rows
//! of the operand as fit in L1 are there whole, with all inputs, while the weights of one column after the other pass by;
//! they come again for the next rows.

use crate::backend::blackhole::arena::PACKET_BYTES;
use crate::backend::blackhole::lowered::{BlockFormat, Instruction, matmul_scratch};
use crate::backend::blackhole::numerics::{TileFormat, tile::SIDE};
use crate::backend::blackhole::trace::core::{Block, RING_SLOTS};
use crate::backend::blackhole::trace::error::TraceError;
use crate::backend::blackhole::trace::geometry::{Area, CORES, TileRange, pieces};
use crate::backend::blackhole::trace::program::ProgramWriter;
use crate::backend::blackhole::trace::weights::{ProductWeights, Vector};
use crate::program::{Activation, View, WeightId};

/// `out = activation(x W + bias)`
pub struct Product {
    pub x: View,
    pub weight: WeightId,
    pub bias: Bias,
    pub activation: Activation,
    pub out: View,
}

#[derive(Clone, Copy)]
pub enum Bias {
    None,
    Weight(WeightId),
    /// A row of a buffer.
    Row(View),
}

/// The same, as programs find it.
struct Operands<'a> {
    x: Area,
    weights: ProductWeights<'a>,
    format: TileFormat,
    bias: BiasSource,
    activation: Activation,
    out: Area,
}

#[derive(Clone, Copy)]
enum BiasSource {
    None,
    Vector(Vector),
    Row(Area),
}

/// Regions of every core.
struct Regions {
    x: Block,
    staging: u32,
    /// Of one column of tiles.
    bias: u32,
    bias_tiles: Block,
    out: Block,
}

/// Bytes of a vector of one column of tiles.
const VECTOR_BYTES: u32 = 2 * SIDE as u32;

pub fn lower(program: &mut ProgramWriter<'_>, product: &Product) -> Result<(), TraceError> {
    let tables = program.tables;
    let (x, out) = (program.area(product.x)?, program.area(product.out)?);
    program.check_columns(out)?;
    let weights = tables.weights.of_product(program.place.kind, product.weight);
    let tensor = &tables.program.weights[product.weight.0].tensor;
    let bias = match product.bias {
        Bias::None => BiasSource::None,
        Bias::Weight(weight) => BiasSource::Vector(program.arena_vector(weight)?),
        Bias::Row(view) => {
            let row = program.area(view)?;
            program.check_bf16(row)?;
            BiasSource::Row(row)
        }
    };
    let operands = Operands {
        x,
        weights: weights.ok_or_else(|| program.unsupported("a matrix that is not in the arena"))?,
        format: tables.weights.policy.format(tensor),
        bias,
        activation: product.activation,
        out,
    };

    let tiles = TileRange::covering(out);
    let streams = operands.weights.streams();
    let shares = (CORES / streams).clamp(1, tiles.rows);
    let share = tiles.rows.div_ceil(shares);
    let (height, regions) = lay_out(program, &operands, share)?;
    for (number, mine) in pieces(tiles.row_range(), share).enumerate() {
        for stream in 0..streams {
            let core = number * streams + stream;
            for rows in pieces(mine.clone(), height) {
                group(program, core, &operands, &regions, stream, tiles.of_rows(rows));
            }
        }
    }
    Ok(())
}

/// The regions, and how many rows of tiles of the operand they have room for: at most `share`.
fn lay_out(
    program: &mut ProgramWriter<'_>,
    operands: &Operands<'_>,
    share: usize,
) -> Result<(usize, Regions), TraceError> {
    let (x, out) = (operands.x, operands.out);
    let (x_format, out_format) = (program.format(x), program.format(out));
    let inputs = x.columns.div_ceil(SIDE);
    program.packets(RING_SLOTS * PACKET_BYTES as u32);
    let bias = program.region("bias", VECTOR_BYTES);
    let bias_tiles = program.block("bias tiles", BlockFormat::Bf16, 1, 1);
    let a_row = (inputs as u32 + 1) * x_format.tile_bytes() + out_format.tile_bytes();
    // Staging has a row more: what is moved there need not begin at a tile.
    let bytes = |height: usize| {
        let height = height as u32;
        x_format.tile_bytes() + height * a_row + matmul_scratch(height, x_format)
    };
    let height = program.room(share, bytes)?;
    let x = program.block("x", x_format, height, inputs);
    let staging = program.region("staging", (height as u32 + 1) * x_format.tile_bytes());
    let out = program.block("out", out_format, height, 1);
    Ok((height, Regions { x, staging, bias, bias_tiles, out }))
}

/// Some rows of tiles of the result, in all columns of a stream.
fn group(
    program: &mut ProgramWriter<'_>,
    core: usize,
    operands: &Operands<'_>,
    regions: &Regions,
    stream: usize,
    tiles: TileRange,
) {
    let (x, out) = (operands.x, operands.out);
    let streams = operands.weights.streams();
    let part = tiles.part_of(out);
    let (first_row, _) = part.in_tile();
    let block = regions.x.of_tiles(tiles.rows, regions.x.column_tiles);
    let rows = x.slice_rows(part.row - out.row, part.rows);
    program.load(core, rows, block, (first_row, 0), false, regions.staging);
    for packet in operands.weights.packets(stream) {
        program.core(core).feeder(Instruction::LoadPacket {
            bank: u32::from(packet.bank),
            offset: packet.offset as u32,
            bytes: packet.bytes as u32,
        });
    }
    for column in (stream..tiles.columns).step_by(streams) {
        let first = column * SIDE;
        let columns = (out.columns - first).min(SIDE);
        let tiles = tiles.of_columns(tiles.column + column..tiles.column + column + 1);
        let target = regions.out.of_tiles(tiles.rows, 1);
        let bias = bring_bias(program, core, operands.bias, regions, first, columns);
        program.begin_out(core, out, tiles, target, false);
        program.core(core).compute(Instruction::Matmul {
            x: block.address,
            row_tiles: block.row_tiles as u32,
            first_row: first_row as u32,
            rows: part.rows as u32,
            inputs: x.columns as u32,
            columns: columns as u32,
            weights: operands.format,
            bias,
            vector_step: 0,
            activation: operands.activation,
            out: target.address,
            out_format: target.format,
            x_format: block.format,
        });
        program.store(core, out, tiles, target);
    }
    program.core(core).compute(Instruction::EndStream {});
}

/// Brings the bias of one column of tiles; gives its address.
fn bring_bias(
    program: &mut ProgramWriter<'_>,
    core: usize,
    bias: BiasSource,
    regions: &Regions,
    first: usize,
    columns: usize,
) -> Option<u32> {
    match bias {
        BiasSource::None => return None,
        BiasSource::Vector(vector) => {
            let offset = vector.offset + 2 * first as u32;
            let part = Vector { offset, bytes: VECTOR_BYTES, ..vector };
            program.vector(core, part, regions.bias);
        }
        BiasSource::Row(row) => {
            let row = row.slice_columns(first, columns);
            program.row_vector(core, row, regions.bias, regions.bias_tiles, regions.staging);
        }
    }
    Some(regions.bias)
}
