//! Writing the streams of the persistent program: what its instructions have in common.

use std::collections::HashMap;

use half::bf16;

use super::LowerError;
use super::chip::{Chip, Index, compute, hub};
use super::frames::Frames;
use super::memory::{Audience, FACE, Memory, OUT_SLOTS, Owned, column_tiles};
use super::resident::{self, Sources, VECTOR_BYTES};
use super::uses::Uses;
use crate::backend::blackhole::arena::Shard;
use crate::backend::blackhole::grid::{Core, Noc, Rectangle};
use crate::backend::blackhole::lowered::{BlockFormat, DramBuffer, Engine, Instruction};
use crate::backend::blackhole::numerics::DtypePolicy;
use crate::program::{BufferId, Op, View, WeightId};

/// What was multicast and is still needed.
#[derive(Clone, Copy, Debug)]
struct Live {
    /// Signals that tell a core that all of it has come.
    parts: u32,
    /// Products that still read it, and whether the first of them has waited for it.
    readers: usize,
    awaited: bool,
}

/// What one compute core reads from its ring, with the numbers of the instructions.
pub type Shards = Vec<(u32, Shard)>;

/// Everything that is known while a stage is being lowered.
pub struct Writer<'a> {
    pub sources: Sources<'a>,
    pub policy: DtypePolicy,
    pub ops: Vec<(u32, Op)>,
    /// Euler steps.
    pub passes: u32,
    pub chip: Chip,
    pub memory: Memory,
    pub frames: Frames,
    pub uses: Uses,
    pub buffers: Vec<DramBuffer>,
    /// Number of the DRAM buffer that holds a buffer of the program.
    pub dram: HashMap<BufferId, u32>,
    /// What the compute cores read from the ring in the segment at hand, with the number of the instruction.
    pub shards: Vec<Shards>,
    /// The same of the segments that are done, by name.
    pub parts: Vec<(String, Vec<Shards>)>,
    /// Bytes of weights that each compute core has been given so far.
    loads: Vec<u64>,
    /// Bytes that stay in each compute core's L1.
    pub resident: Vec<Vec<u8>>,
    live: HashMap<Audience, Live>,
    /// Pieces on their way to each hub.
    gathered: Vec<u32>,
    /// Slot for the next result of each compute core.
    next_out: Vec<u32>,
    /// Pieces on their way to each head core.
    pub head_pieces: Vec<u32>,
}

impl<'a> Writer<'a> {
    pub fn new(
        sources: Sources<'a>,
        policy: DtypePolicy,
        ops: Vec<(u32, Op)>,
        passes: u32,
        mut chip: Chip,
    ) -> Result<Self, LowerError> {
        let program = sources.program;
        let frames = Frames::of(program, ops.iter())?;
        let uses = Uses::of(program, &ops)?;
        let last_row = ops.iter().filter_map(|(_, op)| op.written());
        let rows = last_row.map(|out| frames.end_row(out)).max().unwrap_or(0);
        let row_tiles = column_tiles(rows as usize) as u32;
        let memory = Memory::lay_out(&mut chip, program, &ops, &uses, row_tiles);
        let (cores, hubs, heads) = (chip.compute_cores(), chip.hubs(), chip.heads());
        Ok(Self {
            sources,
            policy,
            ops,
            passes,
            chip,
            memory,
            frames,
            uses,
            buffers: Vec::new(),
            dram: HashMap::new(),
            shards: vec![Vec::new(); cores],
            parts: Vec::new(),
            loads: vec![0; cores],
            resident: vec![Vec::new(); cores],
            live: HashMap::new(),
            gathered: vec![0; hubs],
            next_out: vec![0; cores],
            head_pieces: vec![0; heads],
        })
    }

    pub fn unsupported(&self, what: &'static str) -> LowerError {
        LowerError::Unsupported { op: self.chip.op, what }
    }

    // --- What stays on a core ---

    /// Keeps bytes in the L1 of a compute core; returns their address.
    pub fn keep(&mut self, core: Index, bytes: &[u8]) -> u32 {
        let kept = &mut self.resident[core];
        kept.resize(kept.len().next_multiple_of(16), 0);
        let address = self.memory.resident[core] + kept.len() as u32;
        kept.extend_from_slice(bytes);
        address
    }

    /// Keeps the columns of one column of tiles of a vector.
    pub fn keep_vector(&mut self, core: Index, values: &[bf16], tile: usize) -> u32 {
        self.keep(core, &resident::vector(values, tile))
    }

    /// Keeps the columns of one column of tiles of the rows of a table, one for each pass [`VECTOR_BYTES`] apart.
    pub fn keep_table(&mut self, core: Index, rows: &[Vec<bf16>], tile: usize) -> u32 {
        let bytes: Vec<u8> = rows.iter().flat_map(|row| resident::vector(row, tile)).collect();
        self.keep(core, &bytes)
    }

    /// As [`Self::keep_table`] for a row of an imported table; for instructions whose vectors move on.
    pub fn table(&self, view: View) -> Result<Vec<Vec<bf16>>, LowerError> {
        self.sources.table(view, self.passes)
    }

    pub const VECTOR_STEP: u32 = VECTOR_BYTES;

    // --- Through DRAM ---

    /// The DRAM buffer of a program's buffer, whose rows have their common numbers there.
    pub fn dram_buffer(&mut self, buffer: BufferId, format: BlockFormat) -> u32 {
        if let Some(known) = self.dram.get(&buffer) {
            return *known;
        }
        let spec = &self.sources.program.buffers[buffer.0];
        let rows = self.frames.of_buffer(buffer) + spec.rows as u32;
        let number = self.add_dram(&spec.name, rows, spec.cols, format);
        self.dram.insert(buffer, number);
        number
    }

    pub fn add_dram(&mut self, name: &str, rows: u32, columns: usize, format: BlockFormat) -> u32 {
        let name = name.to_owned();
        self.buffers.push(DramBuffer { name, rows, columns: columns as u32, format });
        self.buffers.len() as u32 - 1
    }

    // --- Results of compute cores ---

    /// Compute gets a free slot for a result.
    pub fn begin_out(&mut self, core: Index) -> u32 {
        self.chip.wait(core, Engine::Compute, compute::OUT_FREE, 1);
        let slot = self.next_out[core];
        self.next_out[core] = (slot + 1) % OUT_SLOTS;
        self.memory.out + slot * self.memory.column_bytes(BlockFormat::Bf16)
    }

    /// The result stands there: the mover may take it.
    pub fn finish_out(&mut self, core: Index) {
        self.chip.signal(core, Engine::Compute, core, compute::OUT_READY);
        self.chip.wait(core, Engine::Mover, compute::OUT_READY, 1);
    }

    /// The mover has sent it.
    pub fn release_out(&mut self, core: Index) {
        self.chip.signal(core, Engine::Mover, core, compute::OUT_FREE);
    }

    /// Every slot is free before the next pass, which begins with the first one again.
    pub fn empty_out(&mut self) {
        for core in 0..self.chip.compute_cores() {
            self.next_out[core] = 0;
            self.chip.wait(core, Engine::Compute, compute::OUT_FREE, OUT_SLOTS);
            let refill = Instruction::Signal {
                core: self.chip.at(core),
                semaphore: compute::OUT_FREE,
                value: OUT_SLOTS,
            };
            self.chip.compute(core, refill);
        }
    }

    // --- Multicasts ---

    /// The hub that gathers a column of tiles, and its place there.
    fn hub_of(&self, tiles: usize, tile: usize) -> (usize, u32) {
        let each = tiles.div_ceil(self.chip.hubs());
        (tile / each, (tile % each) as u32)
    }

    /// The mover of `core` sends a column of tiles to its hub.
    pub fn send_to_hub(&mut self, core: Index, address: u32, tiles: usize, tile: usize) {
        let (number, place) = self.hub_of(tiles, tile);
        let bytes = self.memory.column_bytes(BlockFormat::Bf16);
        let hub = self.chip.hub(number);
        let send = Instruction::Send {
            address,
            step: 0,
            count: 1,
            bytes,
            core: self.chip.at(hub),
            target: self.memory.staging + place * bytes,
            target_step: 0,
        };
        self.chip.mover(core, send);
        self.chip.signal(core, Engine::Mover, hub, hub::GATHERED);
        self.expect_piece(number);
    }

    /// As [`Self::send_to_hub`], for 16 columns: `face` counts them over the whole matrix, `address` is that of the first
    /// of them in their column of tiles.
    pub fn send_face_to_hub(&mut self, core: Index, address: u32, tiles: usize, face: usize) {
        let (number, place) = self.hub_of(tiles, face / 2);
        let hub = self.chip.hub(number);
        let column = self.memory.staging + place * self.memory.column_bytes(BlockFormat::Bf16);
        let send = self.face(address, self.chip.at(hub), column + face_offset(face));
        self.chip.mover(core, send);
        self.chip.signal(core, Engine::Mover, hub, hub::GATHERED);
        self.expect_piece(number);
    }

    /// Sends 16 columns of a column of tiles to the same 16 or the other ones of another.
    pub fn face(&self, address: u32, core: Core, target: u32) -> Instruction {
        // Two rows of faces make a row of tiles.
        let step = BlockFormat::Bf16.tile_bytes() / 2;
        Instruction::Send {
            address,
            step,
            count: 2 * self.memory.row_tiles,
            bytes: FACE_BYTES,
            core,
            target,
            target_step: step,
        }
    }

    /// Another piece is on its way to a hub, or put together there.
    pub fn expect_piece(&mut self, hub: usize) {
        self.gathered[hub] += 1;
    }

    fn audience(&self, audience: Audience) -> (Vec<Index>, Vec<Rectangle>, u32, u32, u32, u32) {
        match audience {
            Audience::Everyone => (
                (0..self.chip.compute_cores()).collect(),
                self.chip.map.to_compute(Noc::Noc0),
                compute::X_READY,
                compute::X_DONE,
                hub::X_FREE,
                self.memory.x,
            ),
            Audience::Owners => (
                (0..self.chip.owners()).collect(),
                self.chip.map.to_owners(Noc::Noc0),
                compute::WIDE_READY,
                compute::WIDE_DONE,
                hub::WIDE_FREE,
                self.memory.wide,
            ),
        }
    }

    /// The hubs multicast what they have gathered, as soon as nobody needs what was multicast to this audience before.
    /// `readers` products will read it.
    pub fn multicast(&mut self, audience: Audience, tiles: usize, readers: usize) {
        let (cores, rectangles, ready, _, free, target) = self.audience(audience);
        let bytes = self.memory.column_bytes(BlockFormat::Bf16);
        let each = tiles.div_ceil(self.chip.hubs());
        let active = tiles.div_ceil(each);
        self.chip.wait(self.chip.hub(0), Engine::Mover, free, cores.len() as u32);
        for number in 1..active {
            self.chip.signal(self.chip.hub(0), Engine::Mover, self.chip.hub(number), hub::GO);
        }
        for number in 0..active {
            let hub = self.chip.hub(number);
            if number > 0 {
                self.chip.wait(hub, Engine::Mover, hub::GO, 1);
            }
            let pieces = std::mem::take(&mut self.gathered[number]);
            if pieces > 0 {
                self.chip.wait(hub, Engine::Mover, hub::GATHERED, pieces);
            }
            let first = number * each;
            let columns = (tiles - first).min(each) as u32;
            for rectangle in &rectangles {
                let multicast = Instruction::Multicast {
                    address: self.memory.staging,
                    bytes: columns * bytes,
                    rectangle: *rectangle,
                    noc: Noc::Noc0,
                    target: target + first as u32 * bytes,
                };
                self.chip.mover(hub, multicast);
            }
            // Only now: whoever is told may send what comes next to the place that the others' share is still read from.
            for rectangle in &rectangles {
                let tell = Instruction::SignalAll {
                    rectangle: *rectangle,
                    noc: Noc::Noc0,
                    semaphore: ready,
                    value: 1,
                };
                self.chip.mover(hub, tell);
            }
        }
        let live = Live { parts: active as u32, readers, awaited: false };
        self.live.insert(audience, live);
    }

    /// Everyone of the audience waits for what was multicast to it, unless it has.
    pub fn await_multicast(&mut self, audience: Audience) -> Result<(), LowerError> {
        let (cores, _, ready, ..) = self.audience(audience);
        let Some(live) = self.live.get_mut(&audience) else {
            return Err(LowerError::NotWritten { op: self.chip.op });
        };
        if !std::mem::replace(&mut live.awaited, true) {
            let parts = live.parts;
            for core in cores {
                self.chip.wait(core, Engine::Compute, ready, parts);
            }
        }
        Ok(())
    }

    /// One product has read it; after the last one the hubs are told.
    pub fn has_read(&mut self, audience: Audience) {
        let (cores, _, _, done, free, _) = self.audience(audience);
        let Some(live) = self.live.get_mut(&audience) else { return };
        live.readers = live.readers.saturating_sub(1);
        if live.readers > 0 {
            return;
        }
        self.live.remove(&audience);
        for core in cores {
            self.chip.signal(core, Engine::Compute, core, done);
            self.chip.wait(core, Engine::Mover, done, 1);
            self.chip.signal(core, Engine::Mover, self.chip.hub(0), free);
        }
    }

    /// Waits for what was multicast and is read no more: the stage ends early.
    pub fn drain(&mut self) -> Result<(), LowerError> {
        for audience in [Audience::Everyone, Audience::Owners] {
            if let Some(live) = self.live.get_mut(&audience) {
                live.readers = 1;
                self.await_multicast(audience)?;
                self.has_read(audience);
            }
        }
        for number in 0..self.chip.heads() {
            let pieces = std::mem::take(&mut self.head_pieces[number]);
            if pieces > 0 {
                let core = self.chip.head(number);
                self.chip.wait(core, Engine::Compute, compute::HEAD_INPUT, pieces);
            }
        }
        Ok(())
    }

    // --- Products ---

    /// The compute core for a column of tiles that any of them may make: the one with the fewest weights so far, head cores
    /// first.
    pub fn least_loaded(&self) -> Index {
        let owners = self.chip.owners();
        let order = (owners..self.chip.compute_cores()).chain(0..owners);
        order.min_by_key(|core| self.loads[*core]).unwrap_or(0)
    }

    /// Gives a column of tiles of a weight to a core.
    pub fn take_shard(&mut self, core: Index, weight: WeightId, tile: usize) {
        let spec = &self.sources.program.weights[weight.0];
        let format = self.policy.format(&spec.tensor);
        self.loads[core] += (column_tiles(spec.inputs()) * format.tile_bytes()) as u64;
        self.shards[core].push((self.chip.op, Shard { weight, column_tile: tile }));
    }

    // --- Sums ---

    /// All columns of tiles of a matrix that stays on its owners, with their numbers.
    pub fn owned_columns(&self, view: View) -> Vec<(usize, Owned)> {
        let owners = self.chip.owners();
        (0..column_tiles(view.cols))
            .map(|tile| (tile, self.memory.owned(view.buffer, tile, owners)))
            .collect()
    }
}

/// Bytes of 16 x 16 values of bf16.
pub const FACE_BYTES: u32 = (2 * FACE * FACE) as u32;

/// Where the 16 columns stand in their column of tiles.
pub fn face_offset(face: usize) -> u32 {
    (face % 2) as u32 * FACE_BYTES
}

/// Columns of a column of tiles of a matrix of `columns` columns.
pub fn columns_of(columns: usize, tile: usize) -> u32 {
    let side = crate::backend::blackhole::numerics::tile::SIDE;
    (columns - tile * side).min(side) as u32
}
