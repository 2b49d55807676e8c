//! Writing the streams of the persistent program: what its instructions have in common.

use std::collections::HashMap;

use half::bf16;

use super::LowerError;
use super::chip::{Chip, Index, compute};
use super::frames::Frames;
use super::memory::{Audience, Memory, OUT_SLOTS, Owned, column_tiles};
use super::multicast::Live;
use super::resident::{self, Sources, VECTOR_BYTES};
use super::uses::Uses;
use crate::backend::blackhole::arena::Shard;
use crate::backend::blackhole::lowered::{BlockFormat, DramBuffer, Engine, Instruction};
use crate::backend::blackhole::numerics::DtypePolicy;
use crate::program::{BufferId, Op, View, WeightId};

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
    pub live: HashMap<Audience, Live>,
    /// Pieces on their way to each hub.
    pub gathered: Vec<u32>,
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

/// Columns of a column of tiles of a matrix of `columns` columns.
pub fn columns_of(columns: usize, tile: usize) -> u32 {
    let side = crate::backend::blackhole::numerics::tile::SIDE;
    (columns - tile * side).min(side) as u32
}
