//! Which tiles of which buffers have been written when a program begins.

use super::geometry::{Area, TileRange};
use crate::backend::blackhole::lowered::DramBuffer;
use crate::backend::blackhole::numerics::tile::SIDE;

/// For every tile of every buffer, the number of the first instruction that writes it.
#[derive(Default)]
pub struct Written(Vec<Vec<usize>>);

/// The host has, before any instruction.
const AT_FIRST: usize = 0;
const NEVER: usize = usize::MAX;

impl Written {
    /// `by_host` tells of every buffer whether the host fills it.
    pub fn new(buffers: &[DramBuffer], by_host: impl Fn(usize) -> bool) -> Self {
        let first = |(number, buffer): (usize, &DramBuffer)| {
            vec![if by_host(number) { AT_FIRST } else { NEVER }; buffer.tiles() as usize]
        };
        Self(buffers.iter().enumerate().map(first).collect())
    }

    /// Instruction `number`, counted from 0 on over all stages, writes these tiles.
    pub fn note(&mut self, number: usize, buffer: u32, across: usize, tiles: TileRange) {
        let first = &mut self.0[buffer as usize];
        for row in tiles.row_range() {
            for column in tiles.column_range() {
                let known = &mut first[row * across + column];
                *known = (*known).min(number + 1);
            }
        }
    }

    /// Whether a tile has been written when instruction `number` begins.
    pub fn before(&self, number: usize, buffer: u32, tile: usize) -> bool {
        self.0[buffer as usize][tile] <= number
    }
}

/// Whether an area has all values of a tile of its buffer.
pub fn fills_tile(buffer: &DramBuffer, tile: TileRange, area: Area) -> bool {
    let rows = (buffer.rows as usize - tile.row * SIDE).min(SIDE);
    let columns = (buffer.columns as usize - tile.column * SIDE).min(SIDE);
    let part = tile.part_of(area);
    (part.rows, part.columns) == (rows, columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::blackhole::lowered::BlockFormat;

    fn buffer() -> DramBuffer {
        DramBuffer { name: String::new(), rows: 40, columns: 70, format: BlockFormat::Bf16 }
    }

    #[test]
    fn tiles_count_as_written_after_their_first_writer() {
        let mut written = Written::new(&[buffer(), buffer()], |number| number == 1);
        written.note(5, 0, 3, TileRange { row: 1, rows: 1, column: 0, columns: 2 });
        written.note(9, 0, 3, TileRange { row: 0, rows: 2, column: 0, columns: 3 });
        assert_eq!([4, 5, 6].map(|number| written.before(number, 0, 4)), [false, false, true]);
        assert_eq!([9, 10].map(|number| written.before(number, 0, 5)), [false, true]);
        assert!(written.before(0, 1, 2));
    }

    #[test]
    fn a_tile_is_full_with_what_the_buffer_has_there() {
        let tile = TileRange { row: 1, rows: 1, column: 2, columns: 1 };
        let area = |row, rows| Area { buffer: 0, row, rows, column: 64, columns: 6 };
        assert!(
            fills_tile(&buffer(), tile, area(32, 8)) && fills_tile(&buffer(), tile, area(0, 40))
        );
        assert!(!fills_tile(&buffer(), tile, area(33, 7)));
    }
}
