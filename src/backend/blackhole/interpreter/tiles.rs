//! Matrices as whole tiles in memory: blocks in L1 and buffers in DRAM.

use super::memory::{Memory, Unwritten};
use crate::backend::blackhole::lowered::{BlockFormat, DramBuffer};
use crate::backend::blackhole::numerics::round_to_bf16;
use crate::backend::blackhole::numerics::tile::{FACE, SIDE, place};

/// Where the tiles of a matrix lie.
#[derive(Clone, Copy, Debug)]
pub struct Tiles {
    /// Address of the first one.
    first: usize,
    format: BlockFormat,
    /// Tiles from one to the one below it, and to the one right of it.
    down: usize,
    right: usize,
}

/// A rectangle of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub row: usize,
    pub rows: usize,
    pub column: usize,
    pub columns: usize,
}

/// Values side by side in a row of a face.
struct Run {
    /// Number of the first one among the values of the part, row by row.
    first: usize,
    count: usize,
    address: usize,
}

impl Part {
    /// Rows and columns from 0 on.
    pub fn new(rows: u32, columns: u32) -> Self {
        Self { row: 0, rows: rows as usize, column: 0, columns: columns as usize }
    }

    pub fn values(self) -> usize {
        self.rows * self.columns
    }
}

impl Tiles {
    /// A block in L1: one column of tiles after the other.
    pub fn block(address: usize, format: BlockFormat, row_tiles: usize) -> Self {
        Self { first: address, format, down: 1, right: row_tiles }
    }

    /// A buffer in DRAM: one row of tiles after the other.
    pub fn buffer(buffer: &DramBuffer) -> Self {
        let right = buffer.column_tiles() as usize;
        Self { first: 0, format: buffer.format, down: right, right: 1 }
    }

    fn address(self, row: usize, column: usize) -> usize {
        let tile = row / SIDE * self.down + column / SIDE * self.right;
        self.first
            + tile * self.format.tile_bytes() as usize
            + place(row % SIDE, column % SIDE) * self.format.bytes() as usize
    }

    fn runs(self, part: Part) -> impl Iterator<Item = Run> {
        let end = part.column + part.columns;
        let starts = move || {
            let borders = (part.column / FACE + 1..).map(|face| face * FACE);
            std::iter::once(part.column).chain(borders).take_while(move |start| *start < end)
        };
        (0..part.rows).flat_map(move |row| {
            starts().map(move |start| Run {
                first: row * part.columns + start - part.column,
                count: end.min((start / FACE + 1) * FACE) - start,
                address: self.address(part.row + row, start),
            })
        })
    }

    /// The values of a part as they are stored, row by row.
    pub fn bytes(self, memory: &mut Memory, part: Part) -> Result<Vec<u8>, Unwritten> {
        let size = self.format.bytes() as usize;
        let mut bytes = Vec::with_capacity(part.values() * size);
        for run in self.runs(part) {
            bytes.extend_from_slice(memory.values(run.address, run.count * size)?);
        }
        Ok(bytes)
    }

    /// The values of a part, row by row.
    pub fn read(self, memory: &mut Memory, part: Part) -> Result<Vec<f32>, Unwritten> {
        Ok(decode(self.format, &self.bytes(memory, part)?))
    }

    /// Writes the values of a part, row by row; rounds them where the tiles are bf16.
    pub fn write(self, memory: &mut Memory, part: Part, values: &[f32]) {
        let mut bytes = Vec::with_capacity(FACE * size_of::<f32>());
        for run in self.runs(part) {
            bytes.clear();
            encode(self.format, &values[run.first..][..run.count], &mut bytes);
            memory.set_values(run.address, &bytes);
        }
    }

    /// The bytes of a part's tiles in an image of their memory that is zero elsewhere.
    pub fn store(self, image: &mut [u8], part: Part, values: &[f32]) {
        let mut bytes = Vec::with_capacity(FACE * size_of::<f32>());
        for run in self.runs(part) {
            bytes.clear();
            encode(self.format, &values[run.first..][..run.count], &mut bytes);
            image[run.address..][..bytes.len()].copy_from_slice(&bytes);
        }
    }

    /// The values of a part in an image of the tiles' memory, row by row.
    pub fn load(self, image: &[u8], part: Part) -> Vec<f32> {
        let size = self.format.bytes() as usize;
        let runs = self.runs(part);
        runs.flat_map(|run| decode(self.format, &image[run.address..][..run.count * size]))
            .collect()
    }

    /// The first place of a part that `is_wrong` says of; it gets what lies there, if anything does.
    pub fn find(
        self,
        memory: &Memory,
        part: Part,
        is_wrong: impl Fn(Result<&[u8], usize>) -> bool,
    ) -> Option<usize> {
        let bytes = self.format.bytes() as usize;
        let wrong = |run: &Run| is_wrong(memory.filled(run.address, run.count * bytes));
        self.runs(part).find(wrong).map(|run| run.address)
    }
}

/// Stored values.
pub fn decode(format: BlockFormat, bytes: &[u8]) -> Vec<f32> {
    match format {
        BlockFormat::Bf16 => {
            // Unlike `bf16::to_f32`, becomes vector code.
            let wide =
                |bytes: &[u8; 2]| f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
            bytes.as_chunks().0.iter().map(wide).collect()
        }
        BlockFormat::F32 => {
            bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
        }
    }
}

/// Adds the values to `bytes` as they are stored.
pub fn encode(format: BlockFormat, values: &[f32], bytes: &mut Vec<u8>) {
    match format {
        BlockFormat::Bf16 => {
            bytes.extend(values.iter().flat_map(|value| round_to_bf16(*value).to_le_bytes()));
        }
        BlockFormat::F32 => bytes.extend(values.iter().flat_map(|value| value.to_le_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_go_down_first_and_buffers_right() {
        let block = Tiles::block(4096, BlockFormat::Bf16, 3);
        assert_eq!(block.address(0, 0), 4096);
        assert_eq!(block.address(32, 0), 4096 + 2048);
        assert_eq!(block.address(0, 32), 4096 + 3 * 2048);
        assert_eq!(block.address(1, 17), 4096 + 2 * (256 + 16 + 1));
        let (name, format) = (String::new(), BlockFormat::F32);
        let buffer = Tiles::buffer(&DramBuffer { name, rows: 40, columns: 70, format });
        assert_eq!(buffer.address(0, 32), 4096);
        assert_eq!(buffer.address(32, 0), 3 * 4096);
    }

    #[test]
    fn any_part_is_read_as_it_was_written() {
        for format in [BlockFormat::Bf16, BlockFormat::F32] {
            let mut memory = Memory::new(6 * 4096);
            let tiles = Tiles::block(0, format, 2);
            let part = Part { row: 3, rows: 40, column: 5, columns: 70 };
            let values: Vec<f32> = (0..part.values()).map(|value| (value % 200) as f32).collect();
            tiles.write(&mut memory, part, &values);
            assert_eq!(tiles.read(&mut memory, part), Ok(values.clone()));
            let inner = Part { row: 30, rows: 5, column: 31, columns: 3 };
            let expected: Vec<f32> =
                (27..32).flat_map(|row| values[row * 70 + 26..][..3].iter().copied()).collect();
            assert_eq!(tiles.read(&mut memory, inner), Ok(expected));
            let beyond = Part { columns: 71, ..part };
            assert!(tiles.read(&mut memory, beyond).is_err());
        }
    }
}
