//! Rings that a core fills by itself, and what can be wrong with rings.

use super::build::{Built, signal, wait};
use super::product::{self, CONSUMER, CONSUMER_AT, READER, READER_AT};
use super::relay::read;
use super::{fault, run};
use crate::backend::blackhole::grid::Core;
use crate::backend::blackhole::interpreter::{Fault, Halt, Schedule};
use crate::backend::blackhole::lowered::{
    BlockFormat, Engine, Instruction, PACKET_BYTES, PacketRing, Step,
};
use crate::backend::cpu::card::CardNumerics;

fn streamed() -> Built {
    product::built(CardNumerics::default(), BlockFormat::F32)
}

/// The products of [`streamed`] by a core that reads for itself.
fn loaded() -> Built {
    let mut built = streamed();
    let packets = std::mem::take(built.stream(READER, Engine::Mover));
    built.stream(CONSUMER, Engine::Feeder).clear();
    let mover = built.stream(CONSUMER, Engine::Mover);
    let before = mover.iter().position(|step| step.instruction.name() == "Wait").unwrap();
    for (place, step) in packets.into_iter().enumerate() {
        let Instruction::StreamPacket { offset, bytes, .. } = step.instruction else { panic!() };
        let instruction = Instruction::LoadPacket { bank: 3, offset, bytes };
        mover.insert(before + place, Step { op: 0, instruction });
    }
    built.program.cores[CONSUMER].semaphores[1].initial = 2;
    built
}

#[test]
fn a_core_can_read_its_packets_itself() {
    assert_eq!(run(&loaded()), run(&streamed()));
}

#[test]
fn packets_are_counted() {
    let built = streamed();
    let mut schedule = Schedule::round_robin();
    let report = built.machine().unwrap().run(&mut schedule).unwrap();
    assert_eq!(report.packets(), 2 * 3);
    let consumer = report.counters(CONSUMER_AT).unwrap();
    assert_eq!(consumer.tile_products, 2 * 3 * 2 * 10);
    let reader = report.counters(READER_AT).unwrap();
    assert_eq!((reader.arena, reader.sent), (consumer.received, consumer.received));
}

#[test]
fn a_prefix_leaves_credits_to_be_returned() {
    let built = streamed();
    let mut machine = built.machine().unwrap();
    let schedule = &mut Schedule::round_robin();
    let before = machine.run_to(schedule, Halt { segment: 0, pass: 0, op: 1 }).unwrap();
    assert_eq!(before.counters(CONSUMER_AT).unwrap().tile_products, 2 * 10);
    let after = machine.run(schedule).unwrap();
    assert_eq!(after.counters(CONSUMER_AT).unwrap().tile_products, 2 * 3 * 2 * 10);
}

#[test]
fn a_short_packet_is_told() {
    let mut built = streamed();
    for (number, cut) in [(0, 64), (1, 2048), (2, 64)] {
        let step = &mut built.stream(READER, Engine::Mover)[number];
        let Instruction::StreamPacket { bytes, .. } = &mut step.instruction else { panic!() };
        *bytes -= cut;
        assert!(matches!(fault(&built), Fault::ShortPacket { .. }), "packet {number}");
        built = streamed();
    }
}

#[test]
fn a_missing_credit_is_told_before_anything_runs() {
    let mut built = streamed();
    let back = built.find(CONSUMER, Engine::Feeder, "ReturnCredits");
    let Instruction::ReturnCredits { count, .. } = back else { panic!() };
    *count -= 1;
    let found = fault(&built);
    assert!(matches!(found, Fault::Credits { streamed: 3, returned: 2, .. }), "{found}");
}

#[test]
fn credits_are_for_as_many_slots_as_there_are() {
    for credits in [1, 3] {
        let mut built = streamed();
        built.program.cores[READER].semaphores[0].initial = credits;
        let found = fault(&built);
        assert!(matches!(found, Fault::RingCredits { slots: 2, .. }), "{found}");
    }
}

#[test]
fn a_credit_that_nobody_gave_fills_a_full_ring() {
    let mut built = streamed();
    built.push(CONSUMER, Engine::Mover, 0, &[signal(READER_AT, 0)]);
    let mover = built.stream(CONSUMER, Engine::Mover);
    mover.rotate_right(1);
    built.push(READER, Engine::Mover, 0, &[wait(0, 1)]);
    let seen = (0..64).any(|seed| {
        let mut schedule = Schedule::seeded(seed);
        matches!(built.run(&mut schedule), Err(Fault::RingOverrun { slots: 2, .. }))
    });
    assert!(seen);
}

#[test]
fn packets_that_are_left_over_are_told() {
    let mut built = loaded();
    built.stream(CONSUMER, Engine::Compute).clear();
    built.stream(CONSUMER, Engine::Mover).retain(|step| step.instruction.name() == "LoadPacket");
    built.stream(CONSUMER, Engine::Mover).truncate(1);
    let found = fault(&built);
    assert!(matches!(found, Fault::PacketsLeft { core: CONSUMER_AT, packets: 2 }), "{found}");
}

#[test]
fn a_consumer_that_uses_too_little_holds_up_its_reader() {
    let mut built = streamed();
    built.program.segments[0].passes = 1;
    built.stream(CONSUMER, Engine::Compute).retain(|step| step.op != 2);
    let Fault::Deadlock { blocked } = fault(&built) else { panic!("a deadlock") };
    let feeder = &blocked[0];
    assert_eq!((feeder.place.engine, feeder.semaphore.as_str()), (Engine::Feeder, "freed"));
}

#[test]
fn operands_stay_as_they_are_while_they_are_used() {
    let mut built = streamed();
    let x = built.address(CONSUMER, "x");
    let mover = built.stream(CONSUMER, Engine::Mover);
    let behind = 1 + mover.iter().position(|step| step.instruction.name() == "Signal").unwrap();
    let other = read([0, 1, 1, 1, 0, 2048, x, 0]);
    mover.insert(behind, Step { op: 0, instruction: other });
    let told = (0..64)
        .map(|seed| built.run(&mut Schedule::seeded(seed)))
        .filter(|found| matches!(found, Err(Fault::ChangedInUse { region, .. }) if region == "x"));
    assert!(told.count() > 0);
}

#[test]
fn a_stream_without_an_end_keeps_its_last_packet() {
    let mut built = streamed();
    built.program.segments[0].passes = 1;
    let compute = built.stream(CONSUMER, Engine::Compute);
    compute.retain(|step| step.instruction.name() != "EndStream");
    let Fault::Deadlock { blocked } = fault(&built) else { panic!("a deadlock") };
    assert_eq!(blocked.len(), 1);
    assert_eq!((blocked[0].place.engine, blocked[0].found), (Engine::Feeder, 0));
}

#[test]
fn a_ring_has_one_source() {
    let mut built = streamed();
    built.push(
        CONSUMER,
        Engine::Mover,
        0,
        &[Instruction::LoadPacket { bank: 3, offset: 0, bytes: PACKET_BYTES }],
    );
    let found = fault(&built);
    assert!(matches!(&found, Fault::RingSources { sources, .. } if sources.len() == 2), "{found}");
}

#[test]
fn only_readers_stream() {
    let mut built = streamed();
    built.program.cores[READER].bank = None;
    assert!(matches!(fault(&built), Fault::NoReader { .. }));
    let mut built = streamed();
    built.program.cores[CONSUMER].ring = None;
    assert!(matches!(fault(&built), Fault::NoRing { core: CONSUMER_AT, .. }));
    let mut built = streamed();
    let stream = built.find(READER, Engine::Mover, "StreamPacket");
    let Instruction::StreamPacket { consumer, .. } = stream else { panic!() };
    *consumer = Core::new(9, 9);
    assert!(matches!(fault(&built), Fault::NoCore { .. }));
}

#[test]
fn packets_lie_in_their_bank() {
    let mut built = streamed();
    built.banks[3].pop();
    assert!(matches!(fault(&built), Fault::OutsideBank { bank: 3, .. }));
    let mut built = streamed();
    let stream = built.find(READER, Engine::Mover, "StreamPacket");
    let Instruction::StreamPacket { bytes, .. } = stream else { panic!() };
    *bytes = PACKET_BYTES + 64;
    assert!(matches!(fault(&built), Fault::PacketBytes { .. }));
}

#[test]
fn packets_come_to_slots_as_dram_wants_it() {
    let mut built = streamed();
    let stream = built.find(READER, Engine::Mover, "StreamPacket");
    let Instruction::StreamPacket { offset, .. } = stream else { panic!() };
    *offset += 32;
    assert!(matches!(fault(&built), Fault::DramMisaligned { .. }));
}

#[test]
fn a_semaphore_for_packets_stands_for_a_packet() {
    let mut built = streamed();
    built.push(CONSUMER, Engine::Mover, 0, &[signal(CONSUMER_AT, 0)]);
    built.stream(CONSUMER, Engine::Mover).rotate_right(1);
    built.stream(READER, Engine::Mover).clear();
    built.stream(CONSUMER, Engine::Feeder).clear();
    assert!(matches!(fault(&built), Fault::NoPacket { .. }));
}

#[test]
fn rings_have_room_and_semaphores() {
    let change = |change: &dyn Fn(&mut PacketRing)| {
        let mut built = streamed();
        change(built.program.cores[CONSUMER].ring.as_mut().unwrap());
        fault(&built)
    };
    assert!(matches!(change(&|ring| ring.slots = 3), Fault::Ring { .. }));
    assert!(matches!(change(&|ring| ring.slots = 0), Fault::Ring { .. }));
    assert!(matches!(change(&|ring| ring.freed = 9), Fault::Ring { .. }));
    assert!(matches!(change(&|ring| ring.freed = ring.packets), Fault::Ring { .. }));
}
