//! Rings of packets: one source each, credits for as many slots as there are, and as many returned as used.

use std::collections::{BTreeMap, BTreeSet};

use super::{each, find};
use crate::backend::blackhole::grid::Core;
use crate::backend::blackhole::interpreter::fault::Fault;
use crate::backend::blackhole::lowered::{Instruction, Lowered, PacketRing};

/// A reader, its consumer, and the number of the reader's semaphore for its credits.
type Way = (Core, Core, u32);

pub fn check(program: &Lowered) -> Result<(), Fault> {
    let mut streamed: BTreeMap<(&str, Way), [u64; 2]> = BTreeMap::new();
    let mut sources: BTreeMap<Core, BTreeSet<(Core, Option<u32>)>> = BTreeMap::new();
    each(program, |at, _, instruction| {
        match *instruction {
            Instruction::StreamPacket { consumer, credit, .. } => {
                let way = (at.core, consumer, credit);
                streamed.entry((at.segment, way)).or_default()[0] += 1;
                sources.entry(consumer).or_default().insert((at.core, Some(credit)));
            }
            Instruction::ReturnCredits { reader, credit, count } => {
                let way = (reader, at.core, credit);
                streamed.entry((at.segment, way)).or_default()[1] += u64::from(count);
            }
            Instruction::LoadPacket { .. } => {
                sources.entry(at.core).or_default().insert((at.core, None));
            }
            _ => {}
        }
        Ok(())
    })?;
    for ((segment, (reader, consumer, credit)), [streamed, returned]) in streamed {
        if streamed != returned {
            let segment = segment.to_owned();
            return Err(Fault::Credits { segment, reader, consumer, credit, streamed, returned });
        }
    }
    for (consumer, sources) in sources {
        check_sources(program, consumer, &sources)?;
    }
    Ok(())
}

fn check_sources(
    program: &Lowered,
    consumer: Core,
    sources: &BTreeSet<(Core, Option<u32>)>,
) -> Result<(), Fault> {
    let Some(&(source, credit)) = sources.first().filter(|_| sources.len() == 1) else {
        let sources = sources.iter().map(|(core, _)| *core).collect();
        return Err(Fault::RingSources { core: consumer, sources });
    };
    let Some(PacketRing { slots, freed, .. }) = find(program, consumer).and_then(|core| core.ring)
    else {
        return Ok(());
    };
    let initial = |core: Core, semaphore: u32| {
        let semaphores = find(program, core).map(|core| core.semaphores.as_slice());
        let semaphore = semaphores.and_then(|list| list.get(semaphore as usize));
        semaphore.map_or(0, |semaphore| u64::from(semaphore.initial))
    };
    let given = credit.map_or(0, |credit| initial(source, credit));
    let credits = given + initial(consumer, freed);
    if credits != u64::from(slots) {
        return Err(Fault::RingCredits { core: consumer, slots, credits });
    }
    Ok(())
}
