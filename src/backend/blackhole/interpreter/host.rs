//! What the host writes to a machine and reads from it.

use std::ops::Range;

use super::Machine;
use super::fault::Fault;
use super::tiles::{Part, Tiles};
use crate::backend::blackhole::grid::Core;
use crate::backend::blackhole::lowered::BlockFormat;
use crate::backend::blackhole::numerics::tile::SIDE;

impl Machine<'_> {
    /// Fills a buffer in DRAM with `[rows, columns]`, row by row; what fills up its tiles becomes zero.
    pub fn write_buffer(&mut self, index: usize, values: &[f32]) -> Result<(), Fault> {
        let (tiles, part) = self.buffer(index)?;
        if values.len() != part.values() {
            let buffer = self.program.buffers[index].name.clone();
            let (expected, found) = (part.values(), values.len());
            return Err(Fault::BufferValues { buffer, expected, found });
        }
        let memory = &mut self.dram.buffers[index];
        memory.zero(0, memory.len());
        tiles.write(memory, part, values);
        Ok(())
    }

    /// `[rows, columns]` of a buffer in DRAM, row by row.
    pub fn read_buffer(&mut self, index: usize) -> Result<Vec<f32>, Fault> {
        self.read_buffer_from(index, 0)
    }

    /// As [`Self::read_buffer`], from a row on.
    pub fn read_buffer_from(&mut self, index: usize, first_row: usize) -> Result<Vec<f32>, Fault> {
        let (_, part) = self.buffer(index)?;
        self.read_buffer_rows(index, first_row..part.rows)
    }

    /// As [`Self::read_buffer`], some of its rows.
    pub fn read_buffer_rows(
        &mut self,
        index: usize,
        rows: Range<usize>,
    ) -> Result<Vec<f32>, Fault> {
        let (tiles, part) = self.buffer(index)?;
        let mut values = Vec::with_capacity(rows.len() * part.columns);
        for row in rows.start..rows.end.min(part.rows) {
            match tiles.read(&mut self.dram.buffers[index], Part { row, rows: 1, ..part }) {
                Ok(row) => values.extend(row),
                Err(_) => {
                    let buffer = self.program.buffers[index].name.clone();
                    return Err(Fault::BufferUnwritten { buffer, row });
                }
            }
        }
        Ok(values)
    }

    /// Some rows of a block in the L1 of a core, row by row.
    pub fn read_block(
        &mut self,
        core: Core,
        address: u32,
        format: BlockFormat,
        row_tiles: u32,
        rows: Range<u32>,
        columns: u32,
    ) -> Result<Vec<f32>, Fault> {
        let number = self.numbers.get(&core).copied().ok_or(Fault::UnknownCore { core })?;
        let state = &mut self.cores[number];
        let tiles = u64::from(row_tiles) * u64::from(columns.div_ceil(SIDE as u32));
        let bytes = tiles * u64::from(format.tile_bytes());
        let region =
            u32::try_from(bytes).ok().and_then(|bytes| state.program.map.holding(address, bytes));
        if region.is_none() || rows.end > row_tiles * SIDE as u32 {
            return Err(Fault::NoBlock { core, address, bytes });
        }
        let block = Tiles::block(address as usize, format, row_tiles as usize);
        let part = Part { row: rows.start as usize, ..Part::new(rows.end - rows.start, columns) };
        block.read(&mut state.l1, part).map_err(|unwritten| {
            let region = state.region_at(unwritten.address);
            Fault::BlockUnwritten { core, address: unwritten.address, region }
        })
    }

    fn buffer(&self, index: usize) -> Result<(Tiles, Part), Fault> {
        let count = self.program.buffers.len();
        let Some(buffer) = self.program.buffers.get(index) else {
            return Err(Fault::UnknownBuffer { buffer: index, count });
        };
        Ok((Tiles::buffer(buffer), Part::new(buffer.rows, buffer.columns)))
    }
}
