//! The way of the weights: from the banks through the readers into the rings of the compute cores.

use super::LowerError;
use super::writer::{Shards, Writer};
use crate::backend::blackhole::arena::{ArenaPlan, Blob, HoistRules, PartSpec, StreamSpec};
use crate::backend::blackhole::grid::BANKS;
use crate::backend::blackhole::lowered::{Engine, Instruction, Step};

impl Writer<'_> {
    /// Lays out the arena, and tells readers, feeders and those who load what stays with them where to look.
    pub fn stream_weights(&mut self, hoisted: &HoistRules) -> Result<ArenaPlan, LowerError> {
        let parts = self.part_specs();
        let weights = &self.sources.program.weights;
        let blobs = self.blobs();
        let plan = ArenaPlan::new(weights, self.policy, &parts, blobs, hoisted)?;
        for segment in 0..self.parts.len() {
            self.stream_segment(segment, &plan);
        }
        self.load_resident(&plan);
        Ok(plan)
    }

    fn part_specs(&self) -> Vec<PartSpec> {
        let stream = |(core, shards): (usize, &Shards)| StreamSpec {
            consumer: core as u32,
            bank: self.chip.credit(core).0,
            shards: shards.clone(),
        };
        let part = |(name, shards): &(String, Vec<Shards>)| PartSpec {
            name: name.clone(),
            short_last: false,
            streams: shards
                .iter()
                .enumerate()
                .filter(|(_, shards)| !shards.is_empty())
                .map(stream)
                .collect(),
        };
        self.parts.iter().map(part).filter(|part| !part.streams.is_empty()).collect()
    }

    fn blobs(&self) -> Vec<Blob> {
        let blob = |(core, bytes): (usize, &Vec<u8>)| Blob {
            name: resident_name(core),
            bank: self.chip.credit(core).0,
            bytes: bytes.clone(),
        };
        let resident = self.resident.iter().enumerate();
        resident.filter(|(_, bytes)| !bytes.is_empty()).map(blob).collect()
    }

    fn stream_segment(&mut self, segment: usize, plan: &ArenaPlan) {
        let Some(part) = plan.part(&self.parts[segment].0) else { return };
        let mut push = |core: usize, engine, op, instruction| {
            self.chip.segments[segment].streams[core].push(engine, op, instruction);
        };
        for bank in 0..BANKS {
            for packet in part.packets(bank) {
                let consumer = part.streams[packet.stream].consumer as usize;
                let read = Instruction::StreamPacket {
                    offset: packet.offset as u32,
                    bytes: packet.bytes as u32,
                    consumer: self.chip.cores[consumer].core,
                    credit: (consumer / usize::from(BANKS)) as u32,
                };
                let reader =
                    self.chip.map.compute().count() + self.chip.map.hubs.len() + usize::from(bank);
                push(reader, Engine::Mover, packet.order, read);
            }
        }
        for (number, stream) in part.streams.iter().enumerate() {
            let consumer = stream.consumer as usize;
            let credits = Instruction::ReturnCredits {
                reader: self.chip.map.readers[usize::from(stream.bank)],
                credit: (consumer / usize::from(BANKS)) as u32,
                count: part.stream_packets(number).count() as u32,
            };
            push(consumer, Engine::Feeder, 0, credits);
        }
    }

    /// Gives what stays on a core its region, and the instruction that reads it its place in the arena.
    fn load_resident(&mut self, plan: &ArenaPlan) {
        for core in 0..self.resident.len() {
            let name = resident_name(core);
            let blob = plan.blobs().iter().find(|blob| blob.name == name);
            if let Some(blob) = blob {
                self.chip.cores[core].map.add_at(
                    "resident",
                    self.memory.resident[core],
                    blob.bytes.len() as u32,
                );
            }
            let stream = &mut self.chip.segments[0].streams[core].0[Engine::Mover as usize];
            let is_load = |step: &Step| matches!(step.instruction, Instruction::ReadArena { .. });
            let Some(at) = stream.iter().position(is_load) else { continue };
            match blob {
                Some(blob) => {
                    stream[at].instruction = Instruction::ReadArena {
                        bank: u32::from(blob.bank),
                        offset: blob.offset as u32,
                        bytes: blob.bytes.len() as u32,
                        address: self.memory.resident[core],
                    };
                }
                None => {
                    stream.remove(at);
                }
            }
        }
    }
}

fn resident_name(core: usize) -> String {
    format!("resident of compute core {core}")
}
