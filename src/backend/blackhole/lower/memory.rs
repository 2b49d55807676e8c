//! Where everything stands in the L1 of the cores.

use std::collections::HashMap;

use super::chip::{Chip, Index, PACKET_BYTES, RING_SLOTS};
use super::ragged;
use super::uses::{Use, Uses, product};
use crate::backend::blackhole::lowered::BlockFormat;
use crate::backend::blackhole::numerics::tile;
use crate::backend::cpu::card::{Storage, storage};
use crate::program::{BufferId, Op, Program, View};

/// Results of a compute core that can wait for its mover.
pub const OUT_SLOTS: u32 = 4;
/// Bytes of sum and sum of squares, or mean and factor, of the rows of a row of tiles.
const MOMENTS_BYTES: u32 = 2 * 4 * tile::SIDE as u32;
/// Columns of a face.
pub const FACE: usize = tile::FACE;

/// Columns of tiles of so many columns.
pub fn column_tiles(columns: usize) -> usize {
    columns.div_ceil(tile::SIDE)
}

/// Which cores a multicast is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Audience {
    Everyone,
    Owners,
}

/// Sizes of a stage that regions depend on.
struct Sizes {
    /// Columns of tiles of the widest matrix for each audience.
    x: usize,
    wide: usize,
    /// Most columns of tiles of a branch on one owner.
    branch: usize,
    /// Most heads on one core, columns of tiles of a head, and rows of tiles of its keys.
    heads: usize,
    head_tiles: usize,
    key_tiles: usize,
    all_heads: usize,
    /// Width of heads that is no multiple of 16.
    ragged: Option<usize>,
}

/// Addresses of regions; those of a kind are the same on all cores of a role.
pub struct Memory {
    /// Rows of tiles of every block but keys and values.
    pub row_tiles: u32,
    pub x: u32,
    pub wide: u32,
    pub out: u32,
    pub branch: u32,
    pub moments: u32,
    pub statistics: u32,
    owned: HashMap<BufferId, (u32, BlockFormat)>,
    pub q: u32,
    pub k: u32,
    pub v: u32,
    pub context: u32,
    /// Bytes of one head's part of each of the four.
    pub head_block: u32,
    pub key_block: u32,
    /// Rows of tiles of the longest keys.
    pub key_tiles: u32,
    /// Where columns of tiles land that heads of odd widths have to be cut out of, and on hubs those heads.
    pub landing: u32,
    pub hub_landing: u32,
    pub staging: u32,
    /// On the first hub.
    pub parts: u32,
    pub combined: u32,
    /// Vectors and small blocks that stay on a core begin here; the region is as long as they are.
    pub resident: Vec<u32>,
}

impl Memory {
    /// Adds the regions of all roles to the cores.
    pub fn lay_out(
        chip: &mut Chip,
        program: &Program,
        ops: &[(u32, Op)],
        uses: &Uses,
        row_tiles: u32,
    ) -> Self {
        let sizes = Sizes::of(chip, program, ops, uses);
        let block = row_tiles * BlockFormat::Bf16.tile_bytes();
        let mut memory = Self {
            row_tiles,
            x: 0,
            wide: 0,
            out: 0,
            branch: 0,
            moments: 0,
            statistics: 0,
            owned: HashMap::new(),
            q: 0,
            k: 0,
            v: 0,
            context: 0,
            head_block: sizes.head_tiles as u32 * block,
            key_block: (sizes.head_tiles * sizes.key_tiles) as u32 * BlockFormat::Bf16.tile_bytes(),
            key_tiles: sizes.key_tiles as u32,
            landing: 0,
            hub_landing: 0,
            staging: 0,
            parts: 0,
            combined: 0,
            resident: Vec::new(),
        };
        for core in 0..chip.compute_cores() {
            memory.x = chip.add_region(core, "x", sizes.x as u32 * block);
            let ring = chip.add_region(core, "packets", RING_SLOTS * PACKET_BYTES);
            chip.set_ring(core, ring);
            memory.out = chip.add_region(core, "out", OUT_SLOTS * block);
        }
        let formats = storage(program);
        let moments = row_tiles * MOMENTS_BYTES;
        for core in 0..chip.owners() {
            memory.wide = chip.add_region(core, "wide", sizes.wide as u32 * block);
            memory.branch = chip.add_region(core, "branch", sizes.branch as u32 * block);
            memory.moments = chip.add_region(core, "moments", sizes.branch as u32 * moments);
            memory.statistics = chip.add_region(core, "statistics", moments);
            for (number, spec) in program.buffers.iter().enumerate() {
                let buffer = BufferId(number);
                if uses.get(buffer) != Use::Owned {
                    continue;
                }
                let format = match formats[number] {
                    Storage::F32 => BlockFormat::F32,
                    Storage::Bf16 => BlockFormat::Bf16,
                };
                let slots = column_tiles(spec.cols).div_ceil(chip.owners()) as u32;
                let bytes = slots * row_tiles * format.tile_bytes();
                let address = chip.add_region(core, &spec.name, bytes);
                memory.owned.insert(buffer, (address, format));
            }
        }
        let heads = sizes.heads as u32;
        for number in 0..chip.heads() {
            let core = chip.head(number);
            memory.q = chip.add_region(core, "q", heads * memory.head_block);
            memory.k = chip.add_region(core, "k", heads * memory.key_block);
            memory.v = chip.add_region(core, "v", heads * memory.key_block);
            memory.context = chip.add_region(core, "context", heads * memory.head_block);
            if let Some(width) = sizes.ragged {
                let tall = memory.key_tiles.max(row_tiles) * BlockFormat::Bf16.tile_bytes();
                let bytes = 3 * heads * ragged::most_tiles(width) as u32 * tall;
                memory.landing = chip.add_region(core, "landing", bytes);
            }
        }
        let staged = sizes.x.max(sizes.wide).div_ceil(chip.hubs()) as u32;
        for number in 0..chip.hubs() {
            let hub = chip.hub(number);
            memory.staging = chip.add_region(hub, "staging", staged * block);
            if sizes.ragged.is_some() {
                let bytes = sizes.all_heads as u32 * memory.head_block;
                memory.hub_landing = chip.add_region(hub, "landing", bytes);
            }
        }
        let parts = (sizes.branch * chip.owners()) as u32;
        memory.parts = chip.add_region(chip.hub(0), "parts", parts * moments);
        memory.combined = chip.add_region(chip.hub(0), "combined", moments);
        memory.resident = (0..chip.compute_cores())
            .map(|core| chip.cores[core].map.bytes_to_end().next_multiple_of(16))
            .collect();
        memory
    }

    /// Bytes of a column of tiles.
    pub fn column_bytes(&self, format: BlockFormat) -> u32 {
        self.row_tiles * format.tile_bytes()
    }

    pub fn moments_bytes(&self) -> u32 {
        self.row_tiles * MOMENTS_BYTES
    }

    /// Column `tile` of tiles of a matrix that stays on its owners: the owner, the address there, the format.
    pub fn owned(&self, buffer: BufferId, tile: usize, owners: usize) -> Owned {
        let (address, format) = self.owned[&buffer];
        let slot = (tile / owners) as u32;
        Owned { core: tile % owners, address: address + slot * self.column_bytes(format), format }
    }

    pub fn multicast_to(&self, audience: Audience) -> u32 {
        match audience {
            Audience::Everyone => self.x,
            Audience::Owners => self.wide,
        }
    }
}

/// A column of tiles on its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned {
    pub core: Index,
    pub address: u32,
    pub format: BlockFormat,
}

impl Sizes {
    fn of(chip: &Chip, program: &Program, ops: &[(u32, Op)], uses: &Uses) -> Self {
        let mut sizes = Self {
            x: 0,
            wide: 0,
            branch: 1,
            heads: 0,
            head_tiles: 0,
            key_tiles: 0,
            all_heads: 0,
            ragged: None,
        };
        for (_, op) in ops {
            if let Some((x, out)) = product(op) {
                let tiles = column_tiles(x.cols);
                if uses.on_owners(out) {
                    sizes.wide = sizes.wide.max(tiles);
                } else {
                    sizes.x = sizes.x.max(tiles);
                }
            }
            if let Op::Attention { k, shape, .. } = op {
                sizes.heads = sizes.heads.max(shape.heads.div_ceil(chip.heads()));
                sizes.all_heads = sizes.all_heads.max(shape.heads);
                if !shape.head_dim.is_multiple_of(FACE) {
                    sizes.ragged = Some(shape.head_dim);
                }
                sizes.head_tiles = sizes.head_tiles.max(column_tiles(shape.head_dim));
                sizes.key_tiles = sizes.key_tiles.max(k.rows.div_ceil(tile::SIDE));
            }
        }
        for (number, spec) in program.buffers.iter().enumerate() {
            if matches!(uses.get(BufferId(number)), Use::Branch | Use::Owned) {
                let slots = column_tiles(spec.cols).div_ceil(chip.owners());
                sizes.branch = sizes.branch.max(slots);
            }
        }
        sizes
    }
}

/// Whether a view is all columns of its buffer, which tiles are laid out for.
pub fn has_all_columns(program: &Program, view: View) -> bool {
    view.col == 0 && view.cols == program.buffers[view.buffer.0].cols
}
