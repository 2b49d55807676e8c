//! Packets of weights: from the arena to the rings of consumers.

use super::Machine;
use super::core::{CoreState, Packet, Ring};
use super::engine::{Begun, Need, Progress};
use super::fault::Fault;
use super::memory::Piece;
use super::place::At;
use crate::backend::blackhole::lowered::{Instruction, PACKET_BYTES};

/// A tile of a stream, or what its consumer has to wait for.
pub enum NextTile {
    /// Address in L1.
    At(usize),
    Blocked(Need),
}

impl Machine<'_> {
    pub(super) fn packets(
        &mut self,
        at: At<'_>,
        core: usize,
        instruction: &Instruction,
        begun: Begun,
    ) -> Result<Progress, Fault> {
        match *instruction {
            Instruction::StreamPacket { offset, bytes, consumer, credit } => {
                let target = self.core_number(at, consumer)?;
                let Some(bank) = self.cores[core].program.bank else {
                    return Err(Fault::NoReader { place: at.place() });
                };
                if let Some(need) = self.lower(core, credit, 1) {
                    return Ok(Progress::Blocked(need, begun));
                }
                self.bring(at, core, target, u32::from(bank), offset, bytes)?;
                Ok(Progress::Finished)
            }
            Instruction::LoadPacket { bank, offset, bytes } => {
                let freed = ring(&mut self.cores[core], at)?.spec.freed;
                if let Some(need) = self.lower(core, freed, 1) {
                    return Ok(Progress::Blocked(need, begun));
                }
                self.bring(at, core, core, bank, offset, bytes)?;
                Ok(Progress::Finished)
            }
            Instruction::ReturnCredits { reader, credit, count } => {
                let target = self.core_number(at, reader)?;
                let freed = ring(&mut self.cores[core], at)?.spec.freed;
                let done = if let Begun::Times(done) = begun { done } else { 0 };
                if done >= count {
                    return Ok(Progress::Finished);
                }
                if let Some(need) = self.lower(core, freed, 1) {
                    return Ok(Progress::Blocked(need, Begun::Times(done)));
                }
                self.raise(at, target, credit, 1)?;
                Ok(Progress::Further(Begun::Times(done + 1)))
            }
            _ => Err(Fault::WrongEngine { place: at.place() }),
        }
    }

    /// Reads a packet into the next slot of a ring and tells the consumer.
    fn bring(
        &mut self,
        at: At<'_>,
        reader: usize,
        consumer: usize,
        bank: u32,
        offset: u32,
        bytes: u32,
    ) -> Result<(), Fault> {
        let Some(packet) = self.banks.bytes(bank, offset, bytes) else {
            return Err(Fault::OutsideBank { place: at.place(), bank, offset, bytes });
        };
        let target = &mut self.cores[consumer];
        let core = target.program.core;
        let ring = ring(target, at)?;
        let (packets, slots) = (ring.spec.packets, ring.spec.slots);
        let Some(address) = ring.free_slot() else {
            return Err(Fault::RingOverrun { place: at.place(), core, slots });
        };
        let address = target.check(at, address.into(), PACKET_BYTES.into())?;
        at.check_dram_read(u64::from(offset), address as u64)?;
        target.l1.put(address, &Piece::of_values(packet));
        if let Some(ring) = &mut target.ring {
            ring.add(address, bytes);
        }
        let counters = &mut self.cores[reader].counters;
        counters.packets += 1;
        counters.arena += u64::from(bytes);
        if reader != consumer {
            counters.sent += u64::from(bytes);
            self.cores[consumer].counters.received += u64::from(bytes);
        }
        self.raise(at, consumer, packets, 1)
    }

    /// The next tile of a consumer's stream.
    pub(super) fn next_tile(
        &mut self,
        at: At<'_>,
        core: usize,
        tile_bytes: u32,
    ) -> Result<NextTile, Fault> {
        let fits = |packet: &Packet| packet.next + tile_bytes <= PACKET_BYTES;
        if !ring(&mut self.cores[core], at)?.at_hand.as_ref().is_some_and(fits) {
            self.release_packet(at, core)?;
            let packets = ring(&mut self.cores[core], at)?.spec.packets;
            if let Some(need) = self.lower(core, packets, 1) {
                return Ok(NextTile::Blocked(need));
            }
        }
        let ring = ring(&mut self.cores[core], at)?;
        let next = ring.at_hand.take().or_else(|| ring.waiting.pop_front());
        let Some(mut packet) = next else {
            return Err(Fault::NoPacket { place: at.place() });
        };
        let needed = packet.next + tile_bytes;
        if needed > packet.bytes {
            let bytes = packet.bytes;
            return Err(Fault::ShortPacket { place: at.place(), bytes, needed });
        }
        let address = packet.address + packet.next as usize;
        packet.next = needed;
        ring.at_hand = Some(packet);
        Ok(NextTile::At(address))
    }

    /// Gives back the packet at hand, if there is one.
    pub(super) fn release_packet(&mut self, at: At<'_>, core: usize) -> Result<(), Fault> {
        let ring = ring(&mut self.cores[core], at)?;
        let freed = ring.spec.freed;
        match ring.at_hand.take() {
            Some(_) => self.raise(at, core, freed, 1),
            None => Ok(()),
        }
    }
}

fn ring<'a>(core: &'a mut CoreState<'_>, at: At<'_>) -> Result<&'a mut Ring, Fault> {
    let name = core.program.core;
    core.ring.as_mut().ok_or_else(|| Fault::NoRing { place: at.place(), core: name })
}
