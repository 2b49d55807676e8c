//! Memory, streams, semaphores and rings of the cores.

use std::collections::HashSet;

use crate::backend::blackhole::grid::{Core, KERNEL_RING_BYTES};
use crate::backend::blackhole::interpreter::Binaries;
use crate::backend::blackhole::interpreter::fault::Fault;
use crate::backend::blackhole::lowered::{
    CoreProgram, Engine, Lowered, PACKET_BYTES, PacketRing, Region, STREAMS,
};

/// Bytes of a semaphore in the ring for kernels.
const SEMAPHORE_BYTES: usize = 16;

pub fn check(program: &Lowered, binaries: Binaries) -> Result<(), Fault> {
    let mut seen: HashSet<Core> = HashSet::new();
    for core in &program.cores {
        if !core.core.is_on_grid() || !seen.insert(core.core) {
            return Err(Fault::Cores { core: core.core });
        }
    }
    for segment in &program.segments {
        let (expected, found) = (program.cores.len(), segment.streams.len());
        if expected != found {
            let segment = segment.name.clone();
            return Err(Fault::SegmentCores { segment, expected, found });
        }
    }
    for (index, core) in program.cores.iter().enumerate() {
        core.map.check(core.core)?;
        check_streams(program, index, core)?;
        check_kernel_ring(program, index, core, binaries)?;
        if let Some(ring) = core.ring {
            check_ring(core, ring)?;
        }
    }
    Ok(())
}

fn check_streams(program: &Lowered, index: usize, core: &CoreProgram) -> Result<(), Fault> {
    let bytes = program.segments.iter().map(|segment| segment.streams[index].bytes()).sum();
    let region = core.map.region(STREAMS).map(|region| region.bytes);
    if bytes > region.unwrap_or(0) {
        return Err(Fault::Streams { core: core.core, bytes, region });
    }
    Ok(())
}

fn check_kernel_ring(
    program: &Lowered,
    index: usize,
    core: &CoreProgram,
    binaries: Binaries,
) -> Result<(), Fault> {
    let streams = || program.segments.iter().map(|segment| &segment.streams[index]);
    let computes = streams().any(|streams| !streams.of(Engine::Compute).is_empty());
    let binaries = if computes { binaries.compute } else { binaries.movers };
    let semaphores = core.semaphores.len();
    let needed = binaries as usize + semaphores * SEMAPHORE_BYTES;
    if needed > KERNEL_RING_BYTES as usize {
        let (core, limit) = (core.core, KERNEL_RING_BYTES);
        return Err(Fault::KernelRing { core, binaries, semaphores, limit });
    }
    Ok(())
}

fn check_ring(core: &CoreProgram, ring: PacketRing) -> Result<(), Fault> {
    let fault = |problem: String| Err(Fault::Ring { core: core.core, problem });
    let bytes = ring.slots.checked_mul(PACKET_BYTES).filter(|bytes| *bytes > 0);
    let Some(bytes) = bytes else {
        return fault(format!("has {} slots", ring.slots));
    };
    let region = core.map.holding(ring.address, bytes);
    if region.is_none_or(Region::is_of_kernels) {
        return fault(format!("takes {bytes} bytes at {}, which are no region", ring.address));
    }
    let count = core.semaphores.len();
    for semaphore in [ring.packets, ring.freed] {
        if semaphore as usize >= count {
            return fault(format!("uses semaphore {semaphore} of {count}"));
        }
    }
    if ring.packets == ring.freed {
        return fault("counts packets and free slots with one semaphore".to_owned());
    }
    Ok(())
}
