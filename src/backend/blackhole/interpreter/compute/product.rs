//! Products with weights that come in packets.

use half::bf16;

use crate::backend::blackhole::interpreter::Machine;
use crate::backend::blackhole::interpreter::core::CoreState;
use crate::backend::blackhole::interpreter::engine::{Begun, Progress};
use crate::backend::blackhole::interpreter::fault::Fault;
use crate::backend::blackhole::interpreter::packets::NextTile;
use crate::backend::blackhole::interpreter::place::At;
use crate::backend::blackhole::interpreter::tiles::{Part, decode};
use crate::backend::blackhole::lowered::Instruction;
use crate::backend::blackhole::numerics::tile::SIDE;
use crate::backend::blackhole::numerics::{TileFormat, unpack_matrix};
use crate::backend::cpu::card::{CardNumerics, linear};
use crate::backend::cpu::mat::{Bias, Mat, MatMut, WeightBlock};
use crate::program::Orientation;

/// A product whose tiles have not all come.
pub struct Product {
    /// The operand as it was stored when the product began, row by row.
    x: Vec<u8>,
    /// Tiles of the weights, as they came.
    packed: Vec<u8>,
}

impl Machine<'_> {
    /// Takes the next tile of a product; computes once the last one is there.
    pub(in crate::backend::blackhole::interpreter) fn matmul(
        &mut self,
        at: At<'_>,
        core: usize,
        instruction: &Instruction,
        begun: Begun,
    ) -> Result<Progress, Fault> {
        let &Instruction::Matmul { x, inputs, weights, .. } = instruction else {
            return Err(Fault::WrongEngine { place: at.place() });
        };
        let mut product = match begun {
            Begun::Product(product) => product,
            _ => {
                let x = operand(&mut self.cores[core], at, instruction)?;
                Box::new(Product { x, packed: Vec::new() })
            }
        };
        let tile_bytes = weights.tile_bytes();
        let needed = (inputs as usize).div_ceil(SIDE) * tile_bytes;
        if product.packed.len() < needed {
            let address = match self.next_tile(at, core, tile_bytes as u32)? {
                NextTile::At(address) => address,
                NextTile::Blocked(need) => {
                    return Ok(Progress::Blocked(need, Begun::Product(product)));
                }
            };
            let state = &mut self.cores[core];
            match state.l1.values(address, tile_bytes) {
                Ok(tile) => product.packed.extend_from_slice(tile),
                Err(unwritten) => return Err(state.unwritten(at, unwritten)),
            }
        }
        if product.packed.len() < needed {
            return Ok(Progress::Further(Begun::Product(product)));
        }
        let state = &mut self.cores[core];
        if operand(state, at, instruction)? != product.x {
            let region = state.region_at(x as usize);
            return Err(Fault::ChangedInUse { place: at.place(), region });
        }
        finish(state, at, instruction, &product, &self.numerics)?;
        Ok(Progress::Finished)
    }
}

/// The rows that are multiplied.
fn operand(
    core: &mut CoreState<'_>,
    at: At<'_>,
    instruction: &Instruction,
) -> Result<Vec<u8>, Fault> {
    let &Instruction::Matmul { x, x_format, row_tiles, first_row, rows, inputs, .. } = instruction
    else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    let part = Part { row: first_row as usize, ..Part::new(rows, inputs) };
    let block = core.block(at, x, x_format, row_tiles, part)?;
    let bytes = core.bytes(at, block, part)?;
    let end = part.columns.next_multiple_of(SIDE);
    let rest = Part { column: part.columns, columns: end - part.columns, ..part };
    core.check_filled(at, block, rest)?;
    Ok(bytes)
}

fn finish(
    core: &mut CoreState<'_>,
    at: At<'_>,
    instruction: &Instruction,
    product: &Product,
    numerics: &CardNumerics,
) -> Result<(), Fault> {
    let &Instruction::Matmul {
        row_tiles,
        first_row,
        rows,
        inputs,
        columns,
        weights,
        bias,
        vector_step,
        activation,
        out,
        out_format,
        x_format,
        ..
    } = instruction
    else {
        return Err(Fault::WrongEngine { place: at.place() });
    };
    let part = Part { row: first_row as usize, ..Part::new(rows, columns) };
    let target = core.column_block(at, out, out_format, row_tiles, part)?;
    let bias = bias.map(|bias| core.vector(at, bias, vector_step, columns)).transpose()?;
    let (inputs, columns) = (inputs as usize, part.columns);
    let weights = unpacked(&product.packed, weights, inputs, columns, numerics);
    let x = decode(x_format, &product.x);
    let mut values = vec![0.0; part.values()];
    linear(
        Mat::new(&x, part.rows, inputs, inputs),
        WeightBlock::new(&weights, inputs, columns, Orientation::InOut),
        bias.as_deref().map_or(Bias::None, Bias::Bf16),
        activation,
        numerics,
        MatMut::new(&mut values, part.rows, columns, columns),
    );
    core.write(target, part, &values);
    let row_tiles = (part.row + part.rows).div_ceil(SIDE) - part.row / SIDE;
    core.counters.tile_products += (row_tiles * inputs.div_ceil(SIDE)) as u64;
    Ok(())
}

/// The weights as the matrix engine multiplies by them, `[inputs, columns]`.
///
/// Panics unless these are the tiles of such a matrix, one below the other.
fn unpacked(
    packed: &[u8],
    format: TileFormat,
    inputs: usize,
    columns: usize,
    numerics: &CardNumerics,
) -> Vec<bf16> {
    let mut weights = vec![bf16::ZERO; inputs * columns];
    unpack_matrix(packed, format, inputs, columns, &mut weights)
        .expect("a column of tiles, as many as there are inputs");
    let mask = numerics.fidelity.weight_mask();
    for weight in &mut weights {
        *weight = bf16::from_bits(weight.to_bits() & mask);
    }
    weights
}
