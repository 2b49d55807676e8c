//! What lies where in the L1 of a core.

use serde::Serialize;

use super::{LayoutFault, SCRATCH, Streams};
use crate::backend::blackhole::grid::{Core, DRAM_READ_ALIGNMENT, L1_ALIGNMENT, L1_BYTES};

/// Name of the region that holds the streams of the core's engines.
pub const STREAMS: &str = "streams";

/// A named part of L1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Region {
    pub name: String,
    pub address: u32,
    pub bytes: u32,
}

impl Region {
    pub fn end(&self) -> u32 {
        self.address + self.bytes
    }

    /// Whether it is the kernels' alone, so that no instruction may name a place in it.
    pub fn is_of_kernels(&self) -> bool {
        [STREAMS, SCRATCH].contains(&self.name.as_str())
    }
}

/// The regions of one core, by address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct L1Map {
    pub regions: Vec<Region>,
}

impl L1Map {
    /// Adds a region behind the last one; returns its address.
    pub fn add(&mut self, name: &str, bytes: u32) -> u32 {
        self.add_at(name, self.bytes_to_end().next_multiple_of(L1_ALIGNMENT), bytes)
    }

    /// Bytes from the start of L1 to the end of the last region.
    pub fn bytes_to_end(&self) -> u32 {
        self.regions.iter().map(Region::end).max().unwrap_or(0)
    }

    /// Adds a region that has to stand at the same address on several cores.
    pub fn add_at(&mut self, name: &str, address: u32, bytes: u32) -> u32 {
        self.regions.push(Region { name: name.to_owned(), address, bytes });
        address
    }

    /// Adds the regions that the kernels of a core need for its streams, of all segments. DRAM can be read to both.
    pub fn add_kernel_regions<'a>(&mut self, streams: impl Iterator<Item = &'a Streams>) {
        let (mut bytes, mut scratch) = (0, 0);
        for streams in streams {
            bytes += streams.bytes();
            scratch = scratch.max(streams.scratch_bytes());
        }
        for (name, bytes) in [(SCRATCH, scratch), (STREAMS, bytes)] {
            let address = self.bytes_to_end().next_multiple_of(DRAM_READ_ALIGNMENT);
            self.add_at(name, address, bytes);
        }
    }

    pub fn region(&self, name: &str) -> Option<&Region> {
        self.regions.iter().find(|region| region.name == name)
    }

    /// The region that holds these bytes, wholly.
    pub fn holding(&self, address: u32, bytes: u32) -> Option<&Region> {
        let end = u64::from(address) + u64::from(bytes);
        let holds = |region: &&Region| region.address <= address && end <= u64::from(region.end());
        self.regions.iter().find(holds)
    }

    /// The fault of a core whose regions end behind L1. The last of them is seldom the one to blame.
    fn beyond_l1(&self, core: Core) -> LayoutFault {
        let ends = self.regions.iter().map(|of| u64::from(of.address) + u64::from(of.bytes));
        let end = ends.max().unwrap_or_default();
        let largest = self.regions.iter().max_by_key(|region| region.bytes);
        let (largest, bytes) = largest.map(|of| (of.name.clone(), of.bytes)).unwrap_or_default();
        LayoutFault::BeyondL1 { core, end, limit: L1_BYTES, largest, bytes }
    }

    /// That every region lies within L1, begins where transfers may begin, and overlaps no other.
    pub fn check(&self, core: Core) -> Result<(), LayoutFault> {
        let mut sorted: Vec<&Region> = self.regions.iter().collect();
        sorted.sort_by_key(|region| region.address);
        for region in &sorted {
            let end = u64::from(region.address) + u64::from(region.bytes);
            if end > u64::from(L1_BYTES) {
                return Err(self.beyond_l1(core));
            }
            if region.address % L1_ALIGNMENT != 0 {
                let (name, address) = (region.name.clone(), region.address);
                return Err(LayoutFault::Unaligned { core, name, address });
            }
        }
        for pair in sorted.windows(2) {
            if pair[0].end() > pair[1].address {
                let names = [pair[0].name.clone(), pair[1].name.clone()];
                return Err(LayoutFault::Overlap { core, names, address: pair[1].address });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::blackhole::lowered::{COMPUTE_SCRATCH, Engine, Instruction};

    const CORE: Core = Core::new(1, 2);

    #[test]
    fn regions_follow_one_another() {
        let mut map = L1Map::default();
        assert_eq!([map.add("a", 20), map.add("b", 16), map.add("c", 4)], [0, 32, 48]);
        assert_eq!(map.check(CORE), Ok(()));
        assert_eq!(map.holding(40, 8).map(|region| region.name.as_str()), Some("b"));
        assert_eq!(map.holding(40, 9), None);
    }

    #[test]
    fn kernels_have_regions_of_their_own() {
        let mut streams = Streams::default();
        streams.push(Engine::Compute, 0, Instruction::EndStream {});
        let mut map = L1Map::default();
        map.add("a", 20);
        map.add_kernel_regions([&streams, &streams].into_iter());
        let found = map.regions.iter().map(|of| (of.name.as_str(), of.address, of.bytes));
        let expected = [("a", 0, 20), (SCRATCH, 64, COMPUTE_SCRATCH), (STREAMS, 64 + 8192, 128)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(
            map.regions.iter().map(Region::is_of_kernels).collect::<Vec<_>>(),
            [false, true, true]
        );
    }

    #[test]
    fn faults_are_told_apart() {
        let fault = |address, bytes| {
            let mut map = L1Map::default();
            map.add("first", 64);
            map.add_at("second", address, bytes);
            map.check(CORE).expect_err("a fault")
        };
        assert!(matches!(fault(48, 16), LayoutFault::Overlap { address: 48, .. }));
        assert!(matches!(fault(72, 16), LayoutFault::Unaligned { address: 72, .. }));
        let LayoutFault::BeyondL1 { end, largest, .. } = fault(64, L1_BYTES) else {
            panic!("another fault")
        };
        assert_eq!((end, largest.as_str()), (u64::from(L1_BYTES) + 64, "second"));
    }
}
