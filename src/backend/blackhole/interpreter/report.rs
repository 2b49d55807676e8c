//! What a run did.

use serde::Serialize;

use crate::backend::blackhole::grid::Core;

/// Of one core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Instructions that were finished, by engine.
    pub instructions: [u64; 3],
    /// Times an engine had to wait.
    pub waits: [u64; 3],
    /// Bytes read from buffers in DRAM, and written to them.
    pub dram_read: u64,
    pub dram_written: u64,
    /// Bytes read from the arena, packets among them.
    pub arena: u64,
    /// Packets that this core read, for others or for itself.
    pub packets: u64,
    /// Bytes sent to single cores, and multicast on each network: counted once, however many cores they reach.
    pub sent: u64,
    pub multicast: [u64; 2],
    /// Bytes that other cores wrote here.
    pub received: u64,
    /// Products of two tiles.
    pub tile_products: u64,
}

/// Of a whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// In the order of the program's cores.
    pub cores: Vec<(Core, Counters)>,
}

impl Report {
    pub fn counters(&self, core: Core) -> Option<&Counters> {
        self.cores.iter().find(|(at, _)| *at == core).map(|(_, counters)| counters)
    }

    /// The sum of one count over all cores.
    pub fn total(&self, count: impl Fn(&Counters) -> u64) -> u64 {
        self.cores.iter().map(|(_, counters)| count(counters)).sum()
    }

    pub fn instructions(&self) -> u64 {
        self.total(|counters| counters.instructions.iter().sum())
    }

    pub fn packets(&self) -> u64 {
        self.total(|counters| counters.packets)
    }
}
