//! The cores of the persistent program while it is being written: their memory, semaphores and streams.

use super::LowerError;
use crate::backend::blackhole::core_map::{CoreMap, HUBS};
use crate::backend::blackhole::grid::{BANKS, Core};
use crate::backend::blackhole::lowered::{
    CoreProgram, Engine, Instruction, L1Map, PacketRing, Segment, Semaphore, Streams,
};

/// Bytes of a packet of weights.
pub const PACKET_BYTES: u32 = 16 * 1024;
/// Packets that a consumer can have in store.
pub const RING_SLOTS: u32 = 6;

/// Semaphores of compute cores, by number.
pub mod compute {
    /// A part of what is multicast to all compute cores has come.
    pub const X_READY: u32 = 0;
    /// As [`X_READY`], of what is for owners only.
    pub const WIDE_READY: u32 = 1;
    /// Compute needs what was multicast no longer; the mover tells the hubs.
    pub const X_DONE: u32 = 2;
    pub const WIDE_DONE: u32 = 3;
    /// A packet of weights has come.
    pub const PACKETS: u32 = 4;
    /// A slot for packets is free.
    pub const FREED: u32 = 5;
    /// A result stands in a slot for the mover.
    pub const OUT_READY: u32 = 6;
    /// A slot for results is free.
    pub const OUT_FREE: u32 = 7;
    /// Moments of a column of tiles stand there for the mover.
    pub const MOMENTS_OUT: u32 = 8;
    /// Mean and factor of every row have come.
    pub const STATISTICS: u32 = 9;
    /// Part of a head's queries, keys or values has come.
    pub const HEAD_INPUT: u32 = 10;
    /// The mover has read something from DRAM.
    pub const LOADED: u32 = 11;
    /// A head's context stands there for the mover.
    pub const CONTEXT_READY: u32 = 12;
    /// The mover has sent it.
    pub const CONTEXT_FREE: u32 = 13;
    /// The result of the stage stands there for the mover.
    pub const RESULT: u32 = 14;
    /// With their names and first values.
    pub fn all(out_slots: u32) -> [(&'static str, u32); 15] {
        [
            ("x ready", 0),
            ("wide ready", 0),
            ("x done", 0),
            ("wide done", 0),
            ("packets", 0),
            ("packets freed", 0),
            ("out ready", 0),
            ("out free", out_slots),
            ("moments out", 0),
            ("statistics", 0),
            ("head input", 0),
            ("loaded", 0),
            ("context ready", 0),
            ("context free", 1),
            ("result", 0),
        ]
    }
}

/// Semaphores of hubs, by number. Only the first hub uses those from [`hub::X_FREE`] on.
pub mod hub {
    /// A piece of what is to be multicast has come.
    pub const GATHERED: u32 = 0;
    /// The first hub lets the others multicast.
    pub const GO: u32 = 1;
    /// A core is done with what was multicast last.
    pub const X_FREE: u32 = 2;
    pub const WIDE_FREE: u32 = 3;
    /// Moments of a column of tiles have come.
    pub const MOMENTS: u32 = 4;
    /// Mean and factor stand there for the mover.
    pub const COMBINED: u32 = 5;
    /// A core has cleared its memory.
    pub const STARTED: u32 = 6;
    /// Something that compute has to put together has come.
    pub const LANDED: u32 = 7;

    /// With their names and first values.
    pub fn all(compute_cores: u32, owners: u32) -> [(&'static str, u32); 8] {
        [
            ("gathered", 0),
            ("go", 0),
            ("x free", compute_cores),
            ("wide free", owners),
            ("moments", 0),
            ("combined", 0),
            ("started", 0),
            ("landed", 0),
        ]
    }
}

/// Number of a core in [`Chip::cores`]: compute cores first, owners before head cores, then hubs, then readers.
pub type Index = usize;

/// All cores that take part.
pub struct Chip {
    pub map: CoreMap,
    pub cores: Vec<CoreProgram>,
    /// Of the segment that is being written.
    streams: Vec<Streams>,
    pub segments: Vec<Segment>,
    /// Number of the program's instruction at hand.
    pub op: u32,
}

impl Chip {
    pub fn new(map: CoreMap, out_slots: u32) -> Self {
        let (owners, compute_cores) = (map.owners.len() as u32, map.compute().count() as u32);
        let named = |list: &[(&str, u32)]| -> Vec<Semaphore> {
            list.iter()
                .map(|(name, initial)| Semaphore { name: (*name).to_owned(), initial: *initial })
                .collect()
        };
        let program = |core, semaphores| CoreProgram {
            core,
            map: L1Map::default(),
            semaphores,
            ring: None,
            bank: None,
        };
        let mut cores: Vec<CoreProgram> =
            map.compute().map(|core| program(core, named(&compute::all(out_slots)))).collect();
        for core in &map.hubs {
            cores.push(program(*core, named(&hub::all(compute_cores, owners))));
        }
        for (bank, core) in map.readers.iter().enumerate() {
            let served = map.compute().filter(|core| usize::from(map.bank_of(*core)) == bank);
            let credits = served
                .map(|core| Semaphore { name: format!("credit of {core}"), initial: RING_SLOTS });
            let reader = program(*core, credits.collect());
            cores.push(CoreProgram { bank: Some(bank as u8), ..reader });
        }
        let streams = vec![Streams::default(); cores.len()];
        Self { map, cores, streams, segments: Vec::new(), op: 0 }
    }

    pub fn compute_cores(&self) -> usize {
        self.map.owners.len() + self.map.heads.len()
    }

    pub fn owners(&self) -> usize {
        self.map.owners.len()
    }

    pub fn heads(&self) -> usize {
        self.map.heads.len()
    }

    /// The head core of this number.
    pub fn head(&self, number: usize) -> Index {
        self.owners() + number
    }

    pub fn hub(&self, number: usize) -> Index {
        self.compute_cores() + number
    }

    pub fn hubs(&self) -> usize {
        usize::from(HUBS)
    }

    pub fn at(&self, index: Index) -> Core {
        self.cores[index].core
    }

    /// The bank that serves a compute core, and the semaphore of its credits there.
    pub fn credit(&self, consumer: Index) -> (u8, u32) {
        let banks = usize::from(BANKS);
        ((consumer % banks) as u8, (consumer / banks) as u32)
    }

    pub fn add_region(&mut self, index: Index, name: &str, bytes: u32) -> u32 {
        self.cores[index].map.add(name, bytes)
    }

    pub fn set_ring(&mut self, index: Index, address: u32) {
        self.cores[index].ring = Some(PacketRing {
            address,
            slots: RING_SLOTS,
            packets: compute::PACKETS,
            freed: compute::FREED,
        });
    }

    pub fn push(&mut self, index: Index, engine: Engine, instruction: Instruction) {
        self.streams[index].push(engine, self.op, instruction);
    }

    pub fn mover(&mut self, index: Index, instruction: Instruction) {
        self.push(index, Engine::Mover, instruction);
    }

    pub fn compute(&mut self, index: Index, instruction: Instruction) {
        self.push(index, Engine::Compute, instruction);
    }

    pub fn wait(&mut self, index: Index, engine: Engine, semaphore: u32, value: u32) {
        self.push(index, engine, Instruction::Wait { semaphore, value });
    }

    /// `index` tells `to`, by adding 1.
    pub fn signal(&mut self, index: Index, engine: Engine, to: Index, semaphore: u32) {
        let core = self.at(to);
        self.push(index, engine, Instruction::Signal { core, semaphore, value: 1 });
    }

    /// Closes the segment at hand.
    pub fn end_segment(&mut self, name: &str, first_pass: u32, passes: u32) {
        let streams = std::mem::take(&mut self.streams);
        self.streams = vec![Streams::default(); self.cores.len()];
        self.segments.push(Segment { name: name.to_owned(), first_pass, passes, streams });
    }

    /// Gives every core regions for its streams and scratch memory, and checks the memory of all.
    pub fn check(&mut self) -> Result<(), LowerError> {
        for index in 0..self.cores.len() {
            let streams = self.segments.iter().map(|segment| &segment.streams[index]);
            let core = &mut self.cores[index];
            core.map.add_kernel_regions(streams);
            core.map.check(core.core)?;
        }
        Ok(())
    }
}
