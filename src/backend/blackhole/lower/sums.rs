//! What happens to the residual on the owners of its columns: norms, sums, copies.

use half::bf16;

use super::LowerError;
use super::chip::{Index, compute, hub};
use super::memory::{Audience, Owned, column_tiles, has_all_columns};
use super::resident;
use super::uses::Use;
use super::writer::{Writer, columns_of};
use crate::backend::blackhole::grid::Noc;
use crate::backend::blackhole::lowered::{BlockFormat, Engine, Instruction};
use crate::program::{Modulation, View, WeightId};

impl Writer<'_> {
    /// A layer norm of the residual: every owner takes the moments of its columns, the first hub adds them up.
    pub fn layer_norm(
        &mut self,
        place: usize,
        x: View,
        affine: Option<(WeightId, WeightId)>,
        modulation: Option<Modulation>,
        eps: f32,
        out: View,
    ) -> Result<(), LowerError> {
        if affine.is_some() {
            return Err(self.unsupported("an affine layer norm"));
        }
        if self.uses.get(x.buffer) != Use::Owned || self.frames.first_row(x) != 0 {
            return Err(self.unsupported("a layer norm of such a matrix"));
        }
        let audience = match self.uses.get(out.buffer) {
            Use::Everywhere => Audience::Everyone,
            Use::Owners => Audience::Owners,
            _ => return Err(self.unsupported("a layer norm that no product reads")),
        };
        let columns = self.owned_columns(x);
        self.moments(x, &columns);
        self.combine(x, columns.len(), eps);
        let tables = match modulation {
            Some(Modulation { scale, shift }) => Some((self.table(scale)?, self.table(shift)?)),
            None => None,
        };
        for (tile, owned) in &columns {
            let mut keep = |rows: &[Vec<bf16>]| Some(self.keep_table(owned.core, rows, *tile));
            let (scale, shift) = match &tables {
                Some((scale, shift)) => (keep(scale), keep(shift)),
                None => (None, None),
            };
            let address = self.begin_out(owned.core);
            let normalise = Instruction::Normalise {
                x: owned.address,
                format: owned.format,
                row_tiles: self.memory.row_tiles,
                rows: x.rows as u32,
                columns: columns_of(x.cols, *tile),
                moments: self.memory.statistics,
                scale,
                shift,
                vector_step: Self::VECTOR_STEP,
                out: address,
            };
            self.chip.compute(owned.core, normalise);
            self.finish_out(owned.core);
            self.send_to_hub(owned.core, address, columns.len(), *tile);
            self.release_out(owned.core);
        }
        self.multicast(audience, columns.len(), self.readers(place, out));
        Ok(())
    }

    /// Every owner sends the moments of its columns of tiles to the first hub.
    fn moments(&mut self, x: View, columns: &[(usize, Owned)]) {
        let bytes = self.memory.moments_bytes();
        let first_hub = self.chip.hub(0);
        for (tile, owned) in columns {
            let slot = (tile / self.chip.owners()) as u32;
            let address = self.memory.moments + slot * bytes;
            let moments = Instruction::Moments {
                x: owned.address,
                format: owned.format,
                rows: x.rows as u32,
                columns: columns_of(x.cols, *tile),
                out: address,
            };
            self.chip.compute(owned.core, moments);
            self.chip.signal(owned.core, Engine::Compute, owned.core, compute::MOMENTS_OUT);
            self.chip.wait(owned.core, Engine::Mover, compute::MOMENTS_OUT, 1);
            let send = Instruction::Send {
                address,
                step: 0,
                count: 1,
                bytes,
                core: self.chip.at(first_hub),
                target: self.memory.parts + *tile as u32 * bytes,
                target_step: 0,
            };
            self.chip.mover(owned.core, send);
            self.chip.signal(owned.core, Engine::Mover, first_hub, hub::MOMENTS);
        }
    }

    /// The first hub adds them up and multicasts mean and factor of every row to the owners.
    fn combine(&mut self, x: View, columns: usize, eps: f32) {
        let bytes = self.memory.moments_bytes();
        let first_hub = self.chip.hub(0);
        self.chip.wait(first_hub, Engine::Compute, hub::MOMENTS, columns as u32);
        let combine = Instruction::Combine {
            parts: self.memory.parts,
            step: bytes,
            count: columns as u32,
            rows: x.rows as u32,
            width: x.cols as u32,
            eps,
            out: self.memory.combined,
        };
        self.chip.compute(first_hub, combine);
        self.chip.signal(first_hub, Engine::Compute, first_hub, hub::COMBINED);
        self.chip.wait(first_hub, Engine::Mover, hub::COMBINED, 1);
        for rectangle in self.chip.map.to_owners(Noc::Noc0) {
            let multicast = Instruction::Multicast {
                address: self.memory.combined,
                bytes,
                rectangle,
                noc: Noc::Noc0,
                target: self.memory.statistics,
            };
            self.chip.mover(first_hub, multicast);
            let tell = Instruction::SignalAll {
                rectangle,
                noc: Noc::Noc0,
                semaphore: compute::STATISTICS,
                value: 1,
            };
            self.chip.mover(first_hub, tell);
        }
        for owner in 0..self.chip.owners() {
            self.chip.wait(owner, Engine::Compute, compute::STATISTICS, 1);
        }
    }

    /// `out += factor * x`, both on the owners of their columns.
    pub fn accumulate(&mut self, x: View, factor: f32, out: View) -> Result<(), LowerError> {
        let program = self.sources.program;
        if !has_all_columns(program, x) || !has_all_columns(program, out) || x.rows != out.rows {
            return Err(self.unsupported("a sum of parts of matrices"));
        }
        let branch = self.uses.get(x.buffer) == Use::Branch;
        for (tile, owned) in self.owned_columns(out) {
            let (address, format) = if branch {
                let slot = (tile / self.chip.owners()) as u32;
                let bytes = self.memory.column_bytes(BlockFormat::Bf16);
                (self.memory.branch + slot * bytes, BlockFormat::Bf16)
            } else {
                let term = self.memory.owned(x.buffer, tile, self.chip.owners());
                (term.address, term.format)
            };
            self.add_column(owned, address, format, factor, out, tile);
        }
        Ok(())
    }

    /// `out += weight`, whose rows stay on the owners.
    pub fn accumulate_weight(&mut self, weight: WeightId, out: View) -> Result<(), LowerError> {
        let first = self.frames.first_row(out);
        let blocks = self.resident_rows(weight, out.rows, first)?;
        for (tile, owned) in self.owned_columns(out) {
            let address = self.keep(owned.core, &blocks[tile]);
            self.add_column(owned, address, BlockFormat::Bf16, 1.0, out, tile);
        }
        Ok(())
    }

    fn add_column(
        &mut self,
        owned: Owned,
        x: u32,
        x_format: BlockFormat,
        factor: f32,
        out: View,
        tile: usize,
    ) {
        let accumulate = Instruction::Accumulate {
            x,
            x_format,
            factor,
            row_tiles: self.memory.row_tiles,
            first_row: self.frames.first_row(out),
            rows: out.rows as u32,
            columns: columns_of(out.cols, tile),
            out: owned.address,
        };
        self.chip.compute(owned.core, accumulate);
    }

    /// The first rows of a weight as blocks, one for each column of tiles.
    fn resident_rows(
        &self,
        weight: WeightId,
        rows: usize,
        first_row: u32,
    ) -> Result<Vec<Vec<u8>>, LowerError> {
        let columns = self.sources.program.weights[weight.0].cols;
        let values = self.sources.weight(weight)?;
        let (first, height) = (first_row as usize, self.memory.row_tiles as usize);
        let block = |tile| resident::block(values, columns, rows, tile, first, height);
        Ok((0..column_tiles(columns)).map(block).collect())
    }

    /// `out = weight`, whose rows stay on the owners.
    pub fn copy_weight(&mut self, weight: WeightId, out: View) -> Result<(), LowerError> {
        let first = self.frames.first_row(out);
        let blocks = self.resident_rows(weight, out.rows, first)?;
        for (tile, owned) in self.owned_columns(out) {
            let address = self.keep(owned.core, &blocks[tile]);
            self.copy_column(owned, address, BlockFormat::Bf16, out, tile);
        }
        Ok(())
    }

    /// `out = x`, which is on the owners as well, or comes from DRAM.
    pub fn copy(&mut self, x: View, out: View) -> Result<(), LowerError> {
        if self.uses.get(out.buffer) != Use::Owned {
            return Err(self.unsupported("a copy to such a matrix"));
        }
        match self.uses.get(x.buffer) {
            Use::Owned => {
                for (tile, owned) in self.owned_columns(out) {
                    let from = self.memory.owned(x.buffer, tile, self.chip.owners());
                    self.copy_column(owned, from.address, from.format, out, tile);
                }
                Ok(())
            }
            Use::Outside => self.load_columns(x, out),
            _ => Err(self.unsupported("a copy of such a matrix")),
        }
    }

    fn copy_column(&mut self, owned: Owned, x: u32, x_format: BlockFormat, out: View, tile: usize) {
        let row = self.frames.first_row(out);
        let copy = Instruction::CopyBlock {
            x,
            x_format,
            x_row_tiles: self.memory.row_tiles,
            x_row: row,
            x_column: 0,
            out: owned.address,
            out_format: owned.format,
            out_row_tiles: self.memory.row_tiles,
            out_row: row,
            out_column: 0,
            rows: out.rows as u32,
            columns: columns_of(out.cols, tile),
        };
        self.chip.compute(owned.core, copy);
    }

    /// The movers of the owners read their columns of an input.
    fn load_columns(&mut self, x: View, out: View) -> Result<(), LowerError> {
        for (tile, owned) in self.owned_columns(out) {
            let buffer = self.dram_buffer(x.buffer, owned.format);
            let read = Instruction::ReadTiles {
                buffer,
                tile: tile as u32,
                tile_step: column_tiles(x.cols) as u32,
                count: column_tiles(self.frames.end_row(x) as usize) as u32,
                offset: 0,
                bytes: owned.format.tile_bytes(),
                address: owned.address,
                address_step: owned.format.tile_bytes(),
            };
            self.chip.mover(owned.core, read);
            self.loaded(owned.core);
        }
        Ok(())
    }

    /// Compute waits until the mover has read what it is about to read.
    pub fn loaded(&mut self, core: Index) {
        self.chip.signal(core, Engine::Mover, core, compute::LOADED);
        self.chip.wait(core, Engine::Compute, compute::LOADED, 1);
    }

    /// The owners write what the stage has made to DRAM; returns the buffer's number.
    pub fn store(&mut self, result: View) -> Result<u32, LowerError> {
        let columns = self.owned_columns(result);
        let rows = self.frames.end_row(result);
        let format = columns.first().map_or(BlockFormat::F32, |(_, owned)| owned.format);
        let buffer = self.add_dram("result", rows, result.cols, format);
        for (tile, owned) in &columns {
            self.chip.signal(owned.core, Engine::Compute, owned.core, compute::RESULT);
            self.chip.wait(owned.core, Engine::Mover, compute::RESULT, 1);
            let write = Instruction::WriteTiles {
                buffer,
                tile: *tile as u32,
                tile_step: columns.len() as u32,
                count: column_tiles(rows as usize) as u32,
                offset: 0,
                bytes: owned.format.tile_bytes(),
                address: owned.address,
                address_step: owned.format.tile_bytes(),
            };
            self.chip.mover(owned.core, write);
        }
        Ok(buffer)
    }
}
