//! What a lowered denoise stage takes of the card.

use serde::Serialize;

use super::Denoise;
use crate::backend::blackhole::arena::ArenaReport;
use crate::backend::blackhole::core_map::{CoreMap, Role};
use crate::backend::blackhole::grid::L1_BYTES;

/// See the module. Sizes are bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// L1 of a core that programs may use.
    pub l1_limit: u32,
    pub roles: Vec<RoleSummary>,
    /// Packets of weights that are streamed in all Euler steps together.
    pub packets: u64,
    pub arena: ArenaReport,
}

/// The cores of a role, as the fullest of them has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RoleSummary {
    pub role: &'static str,
    pub cores: usize,
    /// L1 in use, streams included.
    pub l1_bytes: u32,
    pub stream_bytes: u32,
    /// Instructions that it executes in a request.
    pub instructions: u64,
}

impl Summary {
    pub fn of(denoise: &Denoise, map: &CoreMap) -> Self {
        let mut roles: Vec<RoleSummary> = Vec::new();
        for (number, core) in denoise.lowered.cores.iter().enumerate() {
            let role = match map.role(core.core) {
                Role::Reader(_) => "reader of a bank",
                Role::Hub(_) => "hub",
                Role::Owner(_) => "owner of columns",
                Role::Head(_) => "heads",
                Role::Spare => "spare",
            };
            let (mut stream_bytes, mut instructions) = (0, 0);
            for segment in &denoise.lowered.segments {
                let streams = &segment.streams[number];
                stream_bytes += streams.bytes();
                let count: usize = streams.0.iter().map(Vec::len).sum();
                instructions += count as u64 * u64::from(segment.passes);
            }
            let l1_bytes = core.map.bytes_to_end();
            let fullest = RoleSummary { role, cores: 1, l1_bytes, stream_bytes, instructions };
            match roles.iter_mut().find(|known| known.role == role) {
                Some(known) => known.add(&fullest),
                None => roles.push(fullest),
            }
        }
        let streamed = denoise.lowered.segments.iter().map(|segment| {
            let part = denoise.arena.part(&segment.name);
            let banks =
                part.into_iter().flat_map(|part| (0..8).map(|bank| part.packets(bank).len()));
            u64::from(segment.passes) * banks.sum::<usize>() as u64
        });
        let packets = streamed.sum();
        Self { l1_limit: L1_BYTES, roles, packets, arena: denoise.arena.report() }
    }
}

impl RoleSummary {
    fn add(&mut self, core: &Self) {
        self.cores += core.cores;
        self.l1_bytes = self.l1_bytes.max(core.l1_bytes);
        self.stream_bytes = self.stream_bytes.max(core.stream_bytes);
        self.instructions = self.instructions.max(core.instructions);
    }
}
