//! How a program for a test is put together.

use half::bf16;

use crate::backend::blackhole::grid::Core;
use crate::backend::blackhole::interpreter::{Fault, Machine, Schedule};
use crate::backend::blackhole::lowered::{
    BlockFormat, CoreProgram, DramBuffer, DramTable, Engine, Instruction, L1Map, Lowered,
    PacketRing, SCRATCH, STREAMS, Segment, Semaphore, Step, Streams,
};
use crate::backend::cpu::card::CardNumerics;

/// A program with its inputs.
pub struct Built {
    pub program: Lowered,
    pub banks: Vec<Vec<u8>>,
    pub numerics: CardNumerics,
    /// Contents of the first buffers; the others are outputs.
    pub inputs: Vec<Vec<f32>>,
    /// Contents of all tables.
    pub tables: Vec<Vec<u8>>,
}

/// Semaphores of compute cores and their streams are few here.
const STREAM_BYTES: u32 = 4096;
/// Enough for whatever is computed here.
const SCRATCH_BYTES: u32 = 64 * 1024;

impl Built {
    pub fn new() -> Self {
        let program = Lowered {
            cores: Vec::new(),
            segments: Vec::new(),
            buffers: Vec::new(),
            tables: Vec::new(),
        };
        let numerics = CardNumerics::default();
        Self {
            program,
            banks: vec![Vec::new(); 8],
            numerics,
            inputs: Vec::new(),
            tables: Vec::new(),
        }
    }

    /// Adds a core; gives its number. Its regions lie one behind the other from address 0 on, the first ones of 64 bytes
    /// times something, so that DRAM may be read to them.
    pub fn core(
        &mut self,
        core: Core,
        semaphores: &[(&str, u32)],
        regions: &[(&str, u32)],
    ) -> usize {
        let mut map = L1Map::default();
        for (name, bytes) in regions {
            map.add(name, *bytes);
        }
        map.add(SCRATCH, SCRATCH_BYTES);
        map.add(STREAMS, STREAM_BYTES);
        let semaphores = semaphores
            .iter()
            .map(|(name, initial)| Semaphore { name: (*name).to_owned(), initial: *initial })
            .collect();
        self.program.cores.push(CoreProgram { core, map, semaphores, ring: None, bank: None });
        self.program.cores.len() - 1
    }

    /// Makes a core a reader of a bank.
    pub fn reader(&mut self, core: usize, bank: u8) {
        self.program.cores[core].bank = Some(bank);
    }

    /// Gives a core a ring at the region of this name, with its first two semaphores.
    pub fn ring(&mut self, core: usize, region: &str, slots: u32) {
        let address = self.address(core, region);
        self.program.cores[core].ring = Some(PacketRing { address, slots, packets: 0, freed: 1 });
    }

    pub fn address(&self, core: usize, region: &str) -> u32 {
        let regions = &self.program.cores[core].map.regions;
        regions.iter().find(|found| found.name == region).expect("a region").address
    }

    pub fn segment(&mut self, name: &str, first_pass: u32, passes: u32) {
        let streams = vec![Streams::default(); self.program.cores.len()];
        self.program.segments.push(Segment { name: name.to_owned(), first_pass, passes, streams });
    }

    /// Adds instructions to a stream of the segment at hand.
    pub fn push(&mut self, core: usize, engine: Engine, op: u32, instructions: &[Instruction]) {
        let segment = self.program.segments.last_mut().expect("a segment");
        for instruction in instructions {
            segment.streams[core].push(engine, op, *instruction);
        }
    }

    pub fn buffer(&mut self, name: &str, rows: u32, columns: u32, format: BlockFormat) -> u32 {
        self.program.buffers.push(DramBuffer { name: name.to_owned(), rows, columns, format });
        self.program.buffers.len() as u32 - 1
    }

    /// Adds a table with its rows, which are equally long.
    pub fn table(&mut self, name: &str, rows: &[Vec<u8>]) -> u32 {
        let row_bytes = rows[0].len().next_multiple_of(64);
        let padded = |row: &Vec<u8>| {
            let mut row = row.clone();
            row.resize(row_bytes, 0);
            row
        };
        self.tables.push(rows.iter().flat_map(padded).collect());
        let (name, rows, row_bytes) = (name.to_owned(), rows.len() as u32, row_bytes as u32);
        self.program.tables.push(DramTable { name, rows, row_bytes });
        self.program.tables.len() as u32 - 1
    }

    /// Adds a region that DRAM may be read to.
    pub fn region(&mut self, core: usize, name: &str, bytes: u32) -> u32 {
        let map = &mut self.program.cores[core].map;
        map.add_at(name, map.bytes_to_end().next_multiple_of(64), bytes)
    }

    /// A stream of the first segment, to change it.
    pub fn stream(&mut self, core: usize, engine: Engine) -> &mut Vec<Step> {
        &mut self.program.segments[0].streams[core].0[engine as usize]
    }

    /// The first instruction of a name in a stream of the first segment.
    pub fn find(&mut self, core: usize, engine: Engine, name: &str) -> &mut Instruction {
        let steps = self.stream(core, engine).iter_mut();
        &mut steps.into_iter().find(|step| step.instruction.name() == name).expect(name).instruction
    }

    /// The program's outputs.
    pub fn run(&self, schedule: &mut Schedule) -> Result<Vec<Vec<f32>>, Fault> {
        let mut machine = self.machine()?;
        machine.run(schedule)?;
        let outputs = self.inputs.len()..self.program.buffers.len();
        outputs.map(|buffer| machine.read_buffer(buffer)).collect()
    }

    pub fn machine(&self) -> Result<Machine<'_>, Fault> {
        let mut machine = Machine::new(&self.program, &self.banks, self.numerics)?;
        for (buffer, values) in self.inputs.iter().enumerate() {
            machine.write_buffer(buffer, values)?;
        }
        for (table, bytes) in self.tables.iter().enumerate() {
            machine.write_table(table, bytes)?;
        }
        Ok(machine)
    }
}

pub fn wait(semaphore: u32, value: u32) -> Instruction {
    Instruction::Wait { semaphore, value }
}

pub fn signal(core: Core, semaphore: u32) -> Instruction {
    Instruction::Signal { core, semaphore, value: 1 }
}

/// Reproducible bf16 numbers in -1 .. 1.
pub fn numbers(seed: u32, count: usize) -> Vec<f32> {
    let mut numbers = rand_mt::Mt::new(seed);
    let value = |_| numbers.next_u32() as f32 / u32::MAX as f32 * 2.0 - 1.0;
    (0..count).map(value).map(|value| bf16::from_f32(value).to_f32()).collect()
}
