//! Programs with one mistake.

use super::build::{signal, wait};
use super::relay::{self, BYSTANDER, BYSTANDER_AT, HUB, HUB_AT, RECEIVERS, SENDER};
use super::single::{self, CORE};
use super::{fault, norm, product};
use crate::backend::blackhole::grid::{Core, KERNEL_RING_BYTES};
use crate::backend::blackhole::interpreter::{Binaries, Fault, Machine, Schedule};
use crate::backend::blackhole::lowered::{
    BlockFormat, Engine, Instruction, LayoutFault, PACKET_BYTES, SCRATCH, STREAMS, Step,
};
use crate::backend::cpu::card::CardNumerics;

#[test]
fn a_swapped_semaphore_starves_its_core() {
    let mut built = relay::built();
    *built.find(SENDER, Engine::Mover, "Signal") = signal(HUB_AT, 1);
    let Fault::Deadlock { blocked } = fault(&built) else { panic!("a deadlock") };
    let hub = blocked.iter().find(|blocked| blocked.place.core == HUB_AT).unwrap();
    assert_eq!((hub.semaphore.as_str(), hub.place.number), ("gathered", 0));
    let text = Fault::Deadlock { blocked }.to_string();
    assert!(text.contains("4 are not done") && text.contains("'gathered' to be 1"), "{text}");
}

#[test]
fn many_who_wait_are_not_all_listed() {
    let mut built = relay::built();
    built.push(BYSTANDER, Engine::Compute, 0, &[wait(0, 1)]);
    built.push(BYSTANDER, Engine::Feeder, 0, &[wait(0, 1)]);
    *built.find(SENDER, Engine::Mover, "Signal") = signal(HUB_AT, 1);
    let text = fault(&built).to_string();
    assert!(text.contains("6 are not done") && text.contains("and 2 more"), "{text}");
}

#[test]
fn a_missing_wait_reads_what_is_not_there() {
    let mut built = relay::built();
    built.stream(HUB, Engine::Mover).remove(0);
    let found = (0..64).map(|seed| built.run(&mut Schedule::seeded(seed)));
    let told = found.filter(
        |found| matches!(found, Err(Fault::ReadBeforeWrite { region, .. }) if region == "slot"),
    );
    assert!(told.count() > 0);
}

#[test]
fn what_was_sent_is_not_to_be_lost() {
    let mut built = relay::built();
    built.stream(SENDER, Engine::Mover).remove(0);
    built.stream(HUB, Engine::Mover).pop();
    let found = (0..64).map(|seed| built.run(&mut Schedule::seeded(seed)));
    let told = found.filter(|found| matches!(found, Err(Fault::Overwritten { core: HUB_AT, .. })));
    assert!(told.count() > 0);
}

#[test]
fn semaphores_end_as_they_began() {
    let mut built = relay::built();
    built.push(BYSTANDER, Engine::Compute, 0, &[signal(BYSTANDER_AT, 1)]);
    let found = fault(&built);
    let told = "core (4, 2): semaphore 'other' was 0 before the program and is 3 after it";
    assert_eq!(found.to_string(), told);
}

#[test]
fn semaphores_do_not_overflow() {
    let mut built = relay::built();
    let much = Instruction::Signal { core: HUB_AT, semaphore: 1, value: u32::MAX };
    built.push(BYSTANDER, Engine::Mover, 0, &[much]);
    assert!(matches!(fault(&built), Fault::SemaphoreOverflow { core: HUB_AT, .. }));
}

#[test]
fn memory_has_to_work_out() {
    let mut built = relay::built();
    built.program.cores[RECEIVERS[0]].map.regions[0].bytes += 16;
    assert!(matches!(fault(&built), Fault::Layout(LayoutFault::Overlap { .. })));
    let mut built = relay::built();
    built.program.cores[HUB].map.regions.pop();
    assert!(matches!(fault(&built), Fault::Streams { core: HUB_AT, region: None, .. }));
    let mut built = relay::built();
    built.program.cores[1].core = built.program.cores[0].core;
    assert!(matches!(fault(&built), Fault::Cores { .. }));
    let mut built = relay::built();
    built.program.segments[0].streams.pop();
    assert!(matches!(fault(&built), Fault::SegmentCores { expected: 5, found: 4, .. }));
}

/// The first fault of a program where a core has so many bytes of scratch memory.
fn with_scratch(mut built: super::build::Built, core: usize, bytes: u32) -> Option<Fault> {
    let regions = &mut built.program.cores[core].map.regions;
    let scratch = regions.iter_mut().find(|region| region.name == SCRATCH).unwrap();
    scratch.bytes = bytes;
    built.run(&mut Schedule::round_robin()).err()
}

#[test]
fn every_instruction_has_its_scratch_memory() {
    let needed = single::attention(None).find(0, Engine::Compute, "Attention").scratch_bytes();
    assert_eq!(with_scratch(single::attention(None), 0, needed), None);
    let found = with_scratch(single::attention(None), 0, needed - 64).unwrap();
    assert!(matches!(found, Fault::Scratch { region: Some(region), .. } if region == needed - 64));
    let text = found.to_string();
    assert!(text.contains("Attention") && text.contains("10240 bytes of scratch"), "{text}");

    let streamed = || product::built(CardNumerics::default(), BlockFormat::F32);
    assert_eq!(with_scratch(streamed(), product::READER, PACKET_BYTES), None);
    let found = with_scratch(streamed(), product::READER, PACKET_BYTES - 64);
    assert!(matches!(found, Some(Fault::Scratch { needed: PACKET_BYTES, .. })));

    let mut built = single::attention(None);
    built.program.cores[0].map.regions.retain(|region| region.name != SCRATCH);
    assert!(matches!(fault(&built), Fault::Scratch { region: None, .. }));
}

#[test]
fn binaries_and_semaphores_share_their_room() {
    let built = relay::built();
    let machine = |movers| {
        let binaries = Binaries { movers, ..Binaries::default() };
        Machine::with_binaries(&built.program, &built.banks, built.numerics, binaries).err()
    };
    let room = KERNEL_RING_BYTES - 2 * 16;
    assert_eq!(machine(room), None);
    assert!(matches!(machine(room + 1), Some(Fault::KernelRing { semaphores: 2, .. })));
}

/// The first fault of the relay with one instruction more at the start of the sender's mover.
fn with(instruction: Instruction) -> Fault {
    let mut built = relay::built();
    built.stream(SENDER, Engine::Mover).insert(0, Step { op: 9, instruction });
    fault(&built)
}

#[test]
fn engines_stay_in_their_regions() {
    let zero = |address, bytes| with(Instruction::Zero { address, bytes });
    let found = zero(64, 4096);
    assert!(found.to_string().contains("they begin in 'out'"), "{found}");
    assert!(matches!(found, Fault::OutsideRegion { address: 64, bytes: 4096, .. }));
    let built = relay::built();
    for region in [SCRATCH, STREAMS] {
        let address = built.address(SENDER, region);
        assert!(matches!(zero(address, 16), Fault::OutsideRegion { .. }), "{region} is no data");
    }
    assert!(matches!(zero(1 << 30, 16), Fault::OutsideRegion { nearest: None, .. }));
    let send = |step, count, target| Instruction::Send {
        address: 0,
        step,
        count,
        bytes: 64,
        core: HUB_AT,
        target,
        target_step: 64,
    };
    assert!(matches!(with(send(64, 100, 0)), Fault::OutsideRegion { .. }));
    assert!(matches!(with(send(u32::MAX - 15, 9, 0)), Fault::OutsideRegion { .. }));
}

#[test]
fn transfers_begin_where_they_may() {
    let zero = |address| with(Instruction::Zero { address, bytes: 16 });
    assert!(matches!(zero(8), Fault::Misaligned { address: 8, alignment: 16, .. }));
    let tiles = |offset, address| with(relay::read([0, 0, 1, 1, offset, 64, address, 0]));
    assert!(matches!(tiles(32, 0), Fault::DramMisaligned { dram: 32, l1: 0, .. }));
    assert!(matches!(tiles(0, 16), Fault::DramMisaligned { dram: 0, l1: 16, .. }));
    let written = with(relay::write([1, 0, 1, 1, 8, 64, 0, 0]));
    assert!(matches!(written, Fault::Misaligned { address: 8, .. }));
    let arena = Instruction::ReadArena { bank: 0, offset: 0, bytes: 16, address: 0 };
    assert!(matches!(with(arena), Fault::OutsideBank { .. }));
}

#[test]
fn names_of_cores_buffers_and_tiles_are_checked() {
    let read = |tiles| with(relay::read(tiles));
    assert!(matches!(read([7, 0, 1, 1, 0, 64, 0, 0]), Fault::NoBuffer { buffer: 7, .. }));
    assert!(matches!(read([0, 0, 1, 3, 0, 64, 0, 64]), Fault::NoTile { tile: 2, tiles: 2, .. }));
    assert!(matches!(read([0, 0, 1, 1, 2016, 64, 0, 0]), Fault::TilePart { .. }));
    assert!(matches!(read([0, 0, 1, 0, 0, 64, 0, 0]), Fault::Nothing { .. }));
    assert!(matches!(with(signal(Core::new(9, 9), 0)), Fault::NoCore { .. }));
    assert!(matches!(with(signal(HUB_AT, 2)), Fault::NoSemaphore { count: 2, .. }));
    assert!(matches!(with(wait(1, 1)), Fault::NoSemaphore { count: 1, .. }));
    assert!(matches!(with(Instruction::EndStream {}), Fault::WrongEngine { .. }));
    let unwritten = with(relay::read([1, 0, 1, 1, 0, 64, 0, 0]));
    assert!(matches!(unwritten, Fault::ReadBeforeWrite { region, .. } if region == "first"));
}

#[test]
fn buffers_are_read_when_they_are_written() {
    let built = relay::built();
    let mut machine = built.machine().unwrap();
    assert_eq!(
        machine.read_buffer(1),
        Err(Fault::BufferUnwritten { buffer: "first".to_owned(), row: 0 })
    );
    assert_eq!(machine.read_buffer(9), Err(Fault::UnknownBuffer { buffer: 9, count: 3 }));
    assert!(matches!(machine.write_buffer(0, &[1.0]), Err(Fault::BufferValues { .. })));
}

/// A program of one core with one more instruction before what it computes.
fn before(mut built: super::build::Built, instruction: Instruction) -> Fault {
    built.stream(0, Engine::Mover).insert(0, Step { op: 9, instruction });
    let mover = built.stream(0, Engine::Mover);
    let signal = mover.iter().position(|step| step.instruction.name() == "Signal").unwrap();
    mover[..signal].rotate_left(1);
    fault(&built)
}

#[test]
fn rows_that_were_not_written_are_told() {
    let mut built = single::attention(None);
    let Instruction::Attention { keys, .. } = built.find(0, Engine::Compute, "Attention") else {
        panic!()
    };
    *keys = 51;
    let found = fault(&built);
    assert!(matches!(found, Fault::ReadBeforeWrite { zeroed: true, .. }), "{found}");
    let mut built = single::attention(Some(10));
    let Instruction::Attention { before, .. } = built.find(0, Engine::Compute, "Attention") else {
        panic!()
    };
    *before = Some(11);
    assert!(matches!(fault(&built), Fault::FewKeys { before: 11, .. }));
}

#[test]
fn zeros_are_no_values() {
    let built = single::accumulation();
    let address = built.address(0, "block 1");
    let found = before(built, Instruction::Zero { address, bytes: 4096 });
    assert!(matches!(found, Fault::ReadBeforeWrite { zeroed: true, .. }), "{found}");
}

#[test]
fn blocks_hold_the_rows_that_are_used() {
    let mut built = single::accumulation();
    let Instruction::Accumulate { rows, .. } = built.find(0, Engine::Compute, "Accumulate") else {
        panic!()
    };
    *rows = 62;
    assert!(matches!(fault(&built), Fault::OutsideBlock { row_tiles: 2, .. }));
    let mut built = single::accumulation();
    let Instruction::Accumulate { columns, .. } = built.find(0, Engine::Compute, "Accumulate")
    else {
        panic!()
    };
    *columns = 33;
    assert!(matches!(fault(&built), Fault::OutsideBlock { columns: 33, .. }));
}

#[test]
fn what_fills_up_tiles_is_looked_at() {
    let mut built = single::attention(None);
    let k = built.address(0, "block 1");
    let Instruction::Attention { head_dim, .. } = built.find(0, Engine::Compute, "Attention")
    else {
        panic!()
    };
    *head_dim = 40;
    let found = fault(&built);
    assert!(matches!(found, Fault::Padding { found: "not zero", .. }), "{found}");
    let mut built = single::attention(None);
    let reads = built.stream(0, Engine::Mover).iter_mut();
    for step in reads {
        if let Instruction::ReadTiles { bytes, address, .. } = &mut step.instruction {
            // The first two faces of every tile of `k`: rows 0 to 15.
            if (k..k + 4 * 2048).contains(address) {
                *bytes = 512;
            }
        }
    }
    let found = fault(&built);
    assert!(matches!(found, Fault::Padding { found: "unwritten", .. }), "{found}");
    assert!(found.to_string().contains(&CORE.to_string()));
}

#[test]
fn a_norm_whose_moments_are_not_waited_for_is_told() {
    let mut built = norm::built();
    let segment = &mut built.program.segments[1];
    segment.streams[norm::HUB].0[Engine::Compute as usize].remove(0);
    let found = (0..64).map(|seed| built.run(&mut Schedule::seeded(seed)));
    let told = found.filter(
        |found| matches!(found, Err(Fault::ReadBeforeWrite { region, .. }) if region == "moments"),
    );
    assert!(told.count() > 0);
}
