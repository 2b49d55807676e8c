//! Attention: each head on a core of its own.

use super::LowerError;
use super::chip::compute;
use super::memory::{Audience, FACE, column_tiles};
use super::multicast::{FACE_BYTES, face_offset};
use super::uses::Use;
use super::writer::Writer;
use crate::backend::blackhole::lowered::{BlockFormat, Engine, Instruction};
use crate::backend::blackhole::numerics::tile;
use crate::program::{AttentionShape, Op, View};

impl Writer<'_> {
    /// The shape of the attention that a matrix is an operand of.
    pub fn heads_of(&self, view: View) -> Result<AttentionShape, LowerError> {
        let shape = self.ops.iter().find_map(|(_, op)| match op {
            Op::Attention { q, k, v, shape, .. }
                if [q, k, v].iter().any(|operand| operand.buffer == view.buffer) =>
            {
                Some(*shape)
            }
            _ => None,
        });
        shape.ok_or_else(|| self.unsupported("a matrix that no attention reads"))
    }

    /// Column `column` of tiles of a head's queries, keys, values, or context (for other uses), on its core.
    pub fn head_column(&self, role: Use, head: usize, column: usize) -> u32 {
        let slot = (head / self.chip.heads()) as u32;
        let (region, block) = match role {
            Use::Queries => (self.memory.q, self.memory.head_block),
            Use::Keys => (self.memory.k, self.memory.key_block),
            Use::Values => (self.memory.v, self.memory.key_block),
            _ => (self.memory.context, self.memory.head_block),
        };
        let height = self.head_row_tiles(role) * BlockFormat::Bf16.tile_bytes();
        region + slot * block + column as u32 * height
    }

    /// Rows of tiles of such a block. Keys and values always have those of the longest ones: what fills up their columns
    /// then stays where it is.
    pub fn head_row_tiles(&self, role: Use) -> u32 {
        match role {
            Use::Keys | Use::Values => self.memory.key_tiles,
            _ => self.memory.row_tiles,
        }
    }

    pub fn attention(
        &mut self,
        place: usize,
        [q, k, v]: [View; 3],
        shape: AttentionShape,
        out: View,
    ) -> Result<(), LowerError> {
        if shape.kv_heads != shape.heads || shape.sequences != 1 {
            return Err(self.unsupported("attention of grouped heads or of several sequences"));
        }
        if self.frames.first_row(q) != 0 {
            return Err(self.unsupported("attention of some rows"));
        }
        let audience = match self.uses.get(out.buffer) {
            Use::Everywhere => Audience::Everyone,
            Use::Owners => Audience::Owners,
            _ => return Err(self.unsupported("attention that no product reads")),
        };
        let ragged = !shape.head_dim.is_multiple_of(FACE);
        let from_dram = self.uses.get(k.buffer) == Use::Outside;
        let key_tiles =
            if from_dram { k.rows.div_ceil(tile::SIDE) as u32 } else { self.memory.row_tiles };
        for number in 0..self.chip.heads().min(shape.heads) {
            let core = self.chip.head(number);
            let heads: Vec<usize> = (number..shape.heads).step_by(self.chip.heads()).collect();
            if from_dram {
                for head in &heads {
                    self.read_head(number, *head, k, Use::Keys, shape);
                    self.read_head(number, *head, v, Use::Values, shape);
                }
                self.chip.signal(core, Engine::Mover, core, compute::LOADED);
                self.chip.wait(core, Engine::Compute, compute::LOADED, 1);
            }
            let pieces = std::mem::take(&mut self.head_pieces[number]);
            self.chip.wait(core, Engine::Compute, compute::HEAD_INPUT, pieces);
            self.chip.wait(core, Engine::Compute, compute::CONTEXT_FREE, 1);
            for head in &heads {
                if ragged {
                    self.cut_head(*head, Use::Queries, q.rows, self.memory.row_tiles, shape);
                    self.cut_head(*head, Use::Keys, k.rows, key_tiles, shape);
                    self.cut_head(*head, Use::Values, v.rows, key_tiles, shape);
                }
                let attention = Instruction::Attention {
                    q: self.head_column(Use::Queries, *head, 0),
                    k: self.head_column(Use::Keys, *head, 0),
                    v: self.head_column(Use::Values, *head, 0),
                    row_tiles: self.memory.row_tiles,
                    rows: q.rows as u32,
                    key_tiles: self.memory.key_tiles,
                    keys: k.rows as u32,
                    head_dim: shape.head_dim as u32,
                    scale: shape.scale,
                    before: shape.causal.then(|| (k.rows - q.rows) as u32),
                    out: self.head_column(Use::Nothing, *head, 0),
                };
                self.chip.compute(core, attention);
            }
            self.chip.signal(core, Engine::Compute, core, compute::CONTEXT_READY);
            self.chip.wait(core, Engine::Mover, compute::CONTEXT_READY, 1);
            if !ragged {
                for head in &heads {
                    self.send_context(number, *head, shape, out);
                }
                self.chip.signal(core, Engine::Mover, core, compute::CONTEXT_FREE);
            }
        }
        if ragged {
            self.gather_ragged_context(shape, out)?;
            for number in 0..self.chip.heads().min(shape.heads) {
                let core = self.chip.head(number);
                self.chip.signal(core, Engine::Mover, core, compute::CONTEXT_FREE);
            }
        }
        self.multicast(audience, column_tiles(out.cols), self.readers(place, out));
        Ok(())
    }

    /// The mover of a head core reads a head's keys or values, which another stage has left in DRAM.
    fn read_head(
        &mut self,
        number: usize,
        head: usize,
        view: View,
        role: Use,
        shape: AttentionShape,
    ) {
        if !shape.head_dim.is_multiple_of(FACE) {
            return self.read_ragged_head(number, head, view, role, shape);
        }
        let faces = shape.head_dim / FACE;
        let buffer = self.dram_buffer(view.buffer, BlockFormat::Bf16);
        let tile_bytes = BlockFormat::Bf16.tile_bytes();
        for own in 0..faces {
            let face = head * faces + own;
            for half in 0..2 {
                // The two rows of faces of a tile stand behind one another; the last tile may fill only one.
                let count = view.rows.saturating_sub(half * FACE).div_ceil(tile::SIDE) as u32;
                if count == 0 {
                    continue;
                }
                let below = half as u32 * 2 * FACE_BYTES;
                let column = self.head_column(role, head, own / 2);
                let read = Instruction::ReadTiles {
                    buffer,
                    tile: (face / 2) as u32,
                    tile_step: column_tiles(shape.heads * shape.head_dim) as u32,
                    count,
                    offset: below + face_offset(face),
                    bytes: FACE_BYTES,
                    address: column + below + face_offset(own),
                    address_step: tile_bytes,
                };
                self.chip.mover(self.chip.head(number), read);
            }
        }
    }

    /// The mover of a head core sends what came out to the hubs.
    fn send_context(&mut self, number: usize, head: usize, shape: AttentionShape, out: View) {
        let faces = shape.head_dim / FACE;
        let core = self.chip.head(number);
        for own in 0..faces {
            let address = self.head_column(Use::Nothing, head, own / 2) + face_offset(own);
            self.send_face_to_hub(core, address, column_tiles(out.cols), head * faces + own);
        }
    }
}
