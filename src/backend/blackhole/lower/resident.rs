//! What stays in a core's L1 for as long as the program does: vectors of its columns, and small blocks of rows.

use half::bf16;

use super::LowerError;
use crate::backend::blackhole::numerics::{round_to_bf16, tile};
use crate::checkpoint::Checkpoint;
use crate::prepared::Values;
use crate::program::{BufferSource, Program, View, WeightId};

/// Bytes of a vector of one column of tiles.
pub const VECTOR_BYTES: u32 = 2 * tile::SIDE as u32;

/// What the bytes come from.
pub struct Sources<'a> {
    pub program: &'a Program,
    pub checkpoint: &'a Checkpoint,
    /// Exports of the prepare program.
    pub constants: &'a Values,
}

impl Sources<'_> {
    /// Values of a weight as they are stored.
    pub fn weight(&self, weight: WeightId) -> Result<&[bf16], LowerError> {
        Ok(self.program.weights[weight.0].values(self.checkpoint)?)
    }

    /// One row of an imported table, for each pass from the row of `view` on.
    pub fn table(&self, view: View, passes: u32) -> Result<Vec<Vec<bf16>>, LowerError> {
        let spec = &self.program.buffers[view.buffer.0];
        let BufferSource::Import(name) = &spec.source else {
            return Err(LowerError::NotImported { buffer: spec.name.clone() });
        };
        let values =
            self.constants.get(name).filter(|values| values.len() == spec.rows * spec.cols);
        let values = values.ok_or_else(|| LowerError::Constant { name: name.clone() })?;
        let row = |pass: u32| {
            let first = (view.row + pass as usize) * spec.cols + view.col;
            values[first..first + view.cols].iter().map(|value| round_to_bf16(*value)).collect()
        };
        Ok((0..passes).map(row).collect())
    }
}

/// The columns of one column of tiles, filled up with zeros.
pub fn vector(values: &[bf16], column_tile: usize) -> Vec<u8> {
    let first = column_tile * tile::SIDE;
    let columns = &values[first..values.len().min(first + tile::SIDE)];
    let mut bytes: Vec<u8> = columns.iter().flat_map(|value| value.to_le_bytes()).collect();
    bytes.resize(VECTOR_BYTES as usize, 0);
    bytes
}

/// Rows of a matrix `[.., columns]` as a block one tile wide, of the columns of one column of tiles. Row 0 of the matrix
/// stands at `first_row` of the block; the rest is zero.
pub fn block(
    values: &[bf16],
    columns: usize,
    rows: usize,
    column_tile: usize,
    first_row: usize,
    row_tiles: usize,
) -> Vec<u8> {
    let mut bytes = vec![0; 2 * tile::VALUES * row_tiles];
    let first = column_tile * tile::SIDE;
    for row in 0..rows {
        for column in first..columns.min(first + tile::SIDE) {
            let at = first_row + row;
            let place = tile::place(at % tile::SIDE, column - first);
            let target = 2 * (at / tile::SIDE * tile::VALUES + place);
            let value = values[row * columns + column].to_le_bytes();
            bytes[target..target + 2].copy_from_slice(&value);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_and_blocks_hold_the_columns_of_their_tile() {
        let values: Vec<bf16> = (0..120).map(|i| bf16::from_f32(i as f32)).collect();
        let number = |bytes: &[u8], at: usize| {
            bf16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]).to_f32()
        };
        let second = vector(&values[..40], 1);
        assert_eq!(second.len(), 64);
        assert_eq!([number(&second, 0), number(&second, 7), number(&second, 8)], [32.0, 39.0, 0.0]);
        let rows = block(&values, 40, 3, 1, 31, 2);
        let at = |row: usize, column: usize| {
            number(&rows, row / 32 * 1024 + tile::place(row % 32, column))
        };
        assert_eq!([at(31, 0), at(32, 1), at(33, 7)], [32.0, 73.0, 119.0]);
        assert_eq!([at(30, 0), at(34, 0), at(31, 8)], [0.0; 3]);
    }
}
