//! Products: `out = activation(x W + bias)`, columns of tiles dealt out to the compute cores.

use half::bf16;

use super::LowerError;
use super::chip::{Index, compute};
use super::memory::{Audience, FACE, column_tiles, has_all_columns};
use super::multicast::face_offset;
use super::uses::{Use, product};
use super::writer::{Writer, columns_of};
use crate::backend::blackhole::lowered::{BlockFormat, Engine, Instruction};
use crate::program::{Activation, View, WeightId};

/// What is added to a product.
pub enum Bias {
    None,
    Vector(Vec<bf16>),
    /// One vector for each pass.
    Table(Vec<Vec<bf16>>),
}

pub struct Product {
    pub x: View,
    pub weight: WeightId,
    pub bias: Bias,
    pub activation: Activation,
    pub out: View,
}

impl Writer<'_> {
    /// Lowers the product at `place` in the list of instructions.
    pub fn product(&mut self, place: usize, product: Product) -> Result<(), LowerError> {
        let Product { x, weight, out, .. } = product;
        let program = self.sources.program;
        if !has_all_columns(program, x) || !has_all_columns(program, out) {
            return Err(self.unsupported("a product of some columns of a matrix"));
        }
        let on_owners = self.uses.on_owners(out);
        let audience = if on_owners { Audience::Owners } else { Audience::Everyone };
        match self.uses.get(x.buffer) {
            Use::Owned => self.publish(x, audience),
            Use::Outside => self.publish_from_dram(x, audience),
            Use::Everywhere if on_owners => {
                return Err(self.unsupported("a matrix that owners and others need"));
            }
            Use::Everywhere | Use::Owners => {}
            _ => return Err(self.unsupported("a product of such a matrix")),
        }
        self.await_multicast(audience)?;
        let tiles = column_tiles(out.cols);
        for tile in 0..tiles {
            let core = if on_owners { tile % self.chip.owners() } else { self.least_loaded() };
            self.take_shard(core, weight, tile);
            self.column(core, tile, audience, &product)?;
        }
        self.has_read(audience);
        match self.uses.get(out.buffer) {
            Use::Everywhere => {
                self.multicast(Audience::Everyone, tiles, self.readers(place, out));
            }
            Use::Owners => self.multicast(Audience::Owners, tiles, self.readers(place, out)),
            _ => {}
        }
        Ok(())
    }

    /// Products after `place` that read what it writes.
    pub fn readers(&self, place: usize, written: View) -> usize {
        let later = self.ops[place + 1..].iter();
        let until =
            later.take_while(|(_, op)| op.written().is_none_or(|out| out.buffer != written.buffer));
        until.filter(|(_, op)| product(op).is_some_and(|(x, _)| x.buffer == written.buffer)).count()
    }

    /// One column of tiles of a product, on one core.
    fn column(
        &mut self,
        core: Index,
        tile: usize,
        audience: Audience,
        product: &Product,
    ) -> Result<(), LowerError> {
        let Product { x, weight, activation, out, .. } = *product;
        let (bias, vector_step) = match &product.bias {
            Bias::None => (None, 0),
            Bias::Vector(values) => (Some(self.keep_vector(core, values, tile)), 0),
            Bias::Table(rows) => (Some(self.keep_table(core, rows, tile)), Self::VECTOR_STEP),
        };
        let role = self.uses.get(out.buffer);
        let (address, out_format) = match role {
            Use::Owned => {
                let owned = self.memory.owned(out.buffer, tile, self.chip.owners());
                (owned.address, owned.format)
            }
            Use::Branch => {
                let slot = (tile / self.chip.owners()) as u32;
                let bytes = self.memory.column_bytes(BlockFormat::Bf16);
                (self.memory.branch + slot * bytes, BlockFormat::Bf16)
            }
            _ => (self.begin_out(core), BlockFormat::Bf16),
        };
        let tensor = &self.sources.program.weights[weight.0].tensor;
        let matmul = Instruction::Matmul {
            x: self.memory.multicast_to(audience),
            row_tiles: self.memory.row_tiles,
            first_row: self.frames.first_row(x),
            rows: x.rows as u32,
            inputs: x.cols as u32,
            columns: columns_of(out.cols, tile),
            weights: self.policy.format(tensor),
            bias,
            vector_step,
            activation,
            out: address,
            out_format,
            x_format: BlockFormat::Bf16,
        };
        self.chip.compute(core, matmul);
        match role {
            Use::Owned | Use::Branch => return Ok(()),
            Use::Everywhere | Use::Owners => {
                self.finish_out(core);
                self.send_to_hub(core, address, column_tiles(out.cols), tile);
            }
            Use::Queries | Use::Keys | Use::Values => {
                self.finish_out(core);
                self.send_to_heads(core, address, role, out, tile)?;
            }
            Use::Outside | Use::Nothing => {
                return Err(self.unsupported("a product that nobody reads"));
            }
        }
        self.release_out(core);
        Ok(())
    }

    /// The mover of `core` sends 16 columns at a time to the cores of the heads that they belong to.
    fn send_to_heads(
        &mut self,
        core: Index,
        address: u32,
        role: Use,
        out: View,
        tile: usize,
    ) -> Result<(), LowerError> {
        let shape = self.heads_of(out)?;
        if !shape.head_dim.is_multiple_of(FACE) {
            self.send_to_ragged_heads(core, address, role, shape, tile);
            return Ok(());
        }
        let faces = shape.head_dim / FACE;
        for side in 0..2 {
            let face = 2 * tile + side;
            if face * FACE >= out.cols {
                break;
            }
            let (head, own) = (face / faces, face % faces);
            let target = self.head_column(role, head, own / 2) + face_offset(own);
            let number = head % self.chip.heads();
            let to = self.chip.head(number);
            let send = self.face(address + face_offset(side), self.chip.at(to), target);
            self.chip.mover(core, send);
            self.chip.signal(core, Engine::Mover, to, compute::HEAD_INPUT);
            self.head_pieces[number] += 1;
        }
        Ok(())
    }

    /// Sums as bf16, to everyone of the audience.
    fn publish(&mut self, x: View, audience: Audience) {
        let tiles = column_tiles(x.cols);
        for (tile, owned) in self.owned_columns(x) {
            let address = self.begin_out(owned.core);
            let row = self.frames.first_row(x);
            let copy = Instruction::CopyBlock {
                x: owned.address,
                x_format: owned.format,
                x_row_tiles: self.memory.row_tiles,
                x_row: row,
                x_column: 0,
                out: address,
                out_format: BlockFormat::Bf16,
                out_row_tiles: self.memory.row_tiles,
                out_row: row,
                out_column: 0,
                rows: x.rows as u32,
                columns: columns_of(x.cols, tile),
            };
            self.chip.compute(owned.core, copy);
            self.finish_out(owned.core);
            self.send_to_hub(owned.core, address, tiles, tile);
            self.release_out(owned.core);
        }
        self.multicast(audience, tiles, 1);
    }

    /// An input of the stage, read by the hubs, to everyone of the audience.
    fn publish_from_dram(&mut self, x: View, audience: Audience) {
        let buffer = self.dram_buffer(x.buffer, BlockFormat::Bf16);
        let tiles = column_tiles(x.cols);
        let each = tiles.div_ceil(self.chip.hubs());
        let column = self.memory.column_bytes(BlockFormat::Bf16);
        let rows = self.frames.end_row(x).div_ceil(32);
        for tile in 0..tiles {
            let read = Instruction::ReadTiles {
                buffer,
                tile: tile as u32,
                tile_step: tiles as u32,
                count: rows,
                offset: 0,
                bytes: BlockFormat::Bf16.tile_bytes(),
                address: self.memory.staging + (tile % each) as u32 * column,
                address_step: BlockFormat::Bf16.tile_bytes(),
            };
            self.chip.mover(self.chip.hub(tile / each), read);
        }
        self.multicast(audience, tiles, 1);
    }
}
