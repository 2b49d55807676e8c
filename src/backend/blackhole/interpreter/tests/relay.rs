//! What one core reads goes by way of a hub to two others, again and again.

use super::build::{Built, numbers, signal, wait};
use super::run;
use crate::backend::blackhole::grid::{Core, Noc, Rectangle};
use crate::backend::blackhole::interpreter::{Halt, Schedule};
use crate::backend::blackhole::lowered::{BlockFormat, Engine, Instruction};

pub const SENDER: usize = 0;
pub const HUB: usize = 1;
pub const RECEIVERS: [usize; 2] = [2, 3];
pub const BYSTANDER: usize = 4;
pub const HUB_AT: Core = Core::new(0, 4);
pub const RECEIVERS_AT: [Core; 2] = [Core::new(2, 2), Core::new(3, 2)];
pub const BYSTANDER_AT: Core = Core::new(4, 2);

const SENDER_AT: Core = Core::new(1, 0);
pub const ROWS: u32 = 40;
const BYTES: u32 = 2 * 2048;
const PASSES: u32 = 3;

/// The tiles of a buffer of one column of tiles.
fn tiles(buffer: u32, count: u32, address: u32) -> [u32; 8] {
    [buffer, 0, 1, count, 0, 2048, address, 2048]
}

pub fn read(
    [buffer, tile, tile_step, count, offset, bytes, address, address_step]: [u32; 8],
) -> Instruction {
    Instruction::ReadTiles { buffer, tile, tile_step, count, offset, bytes, address, address_step }
}

pub fn write(
    [buffer, tile, tile_step, count, offset, bytes, address, address_step]: [u32; 8],
) -> Instruction {
    Instruction::WriteTiles { buffer, tile, tile_step, count, offset, bytes, address, address_step }
}

pub fn built() -> Built {
    let mut built = Built::new();
    built.core(SENDER_AT, &[("slot free", 1)], &[("out", BYTES)]);
    built.core(HUB_AT, &[("gathered", 0), ("done", 0)], &[("slot", BYTES)]);
    for core in RECEIVERS_AT {
        built.core(core, &[("spare", 0), ("x ready", 0)], &[("spare", 64), ("x", BYTES)]);
    }
    built.core(BYSTANDER_AT, &[("spare", 0), ("other", 0)], &[("spare", 64), ("y", BYTES)]);
    let input = built.buffer("in", ROWS, 32, BlockFormat::Bf16);
    built.inputs.push(numbers(1, ROWS as usize * 32));
    let (from, slot) = (built.address(SENDER, "out"), built.address(HUB, "slot"));
    let x = built.address(RECEIVERS[0], "x");
    built.segment("relay", 0, PASSES);
    built.push(SENDER, Engine::Mover, 0, &[wait(0, 1), read(tiles(input, 2, from))]);
    let send = Instruction::Send {
        address: from,
        step: 2048,
        count: 2,
        bytes: 2048,
        core: HUB_AT,
        target: slot,
        target_step: 2048,
    };
    built.push(SENDER, Engine::Mover, 1, &[send, signal(HUB_AT, 0)]);
    let [a, b] = RECEIVERS_AT;
    let (rectangle, noc) = (Rectangle::on(Noc::Noc1, a, b), Noc::Noc1);
    let multicast =
        Instruction::Multicast { address: slot, bytes: BYTES, rectangle, noc, target: x };
    let tell = Instruction::SignalAll { rectangle, noc, semaphore: 1, value: 1 };
    built.push(HUB, Engine::Mover, 2, &[wait(0, 1), multicast, tell]);
    built.push(HUB, Engine::Mover, 3, &[wait(1, 2), signal(SENDER_AT, 0)]);
    for (receiver, name) in RECEIVERS.into_iter().zip(["first", "second"]) {
        let output = built.buffer(name, ROWS, 32, BlockFormat::Bf16);
        let back = [wait(1, 1), write(tiles(output, 2, x)), signal(HUB_AT, 1)];
        built.push(receiver, Engine::Mover, 3, &back);
    }
    built
}

#[test]
fn everyone_gets_what_was_sent() {
    let built = built();
    let input = built.inputs[0].clone();
    assert_eq!(run(&built), [input.clone(), input]);
}

#[test]
fn the_report_counts_what_moved() {
    let built = built();
    let report = built.machine().unwrap().run(&mut Schedule::round_robin()).unwrap();
    let bytes = u64::from(PASSES * BYTES);
    let at = |core| report.counters(core).unwrap();
    assert_eq!((at(SENDER_AT).dram_read, at(SENDER_AT).sent), (bytes, bytes));
    assert_eq!((at(HUB_AT).received, at(HUB_AT).multicast), (bytes, [0, bytes]));
    assert_eq!(at(RECEIVERS_AT[1]).received, bytes);
    assert_eq!(report.total(|counters| counters.dram_written), 2 * bytes);
    assert_eq!(report.instructions(), u64::from(PASSES) * (4 + 5 + 2 * 3));
    assert_eq!(at(BYSTANDER_AT), &Default::default());
}

#[test]
fn a_prefix_can_be_looked_at_and_run_on() {
    let built = built();
    for seed in 0..4 {
        let mut machine = built.machine().unwrap();
        let schedule = &mut Schedule::seeded(seed);
        let before = machine.run_to(schedule, Halt { segment: 0, pass: 1, op: 2 }).unwrap();
        assert_eq!(before.counters(HUB_AT).unwrap().instructions, [5, 0, 0]);
        let slot = built.address(HUB, "slot");
        let found = machine.read_block(HUB_AT, slot, BlockFormat::Bf16, 2, 0..ROWS, 32).unwrap();
        assert_eq!(found, built.inputs[0]);
        assert_eq!(before.counters(SENDER_AT).unwrap().instructions, [8, 0, 0]);
        let after = machine.run(schedule).unwrap();
        assert_eq!(after.instructions(), u64::from(PASSES) * 15);
    }
}
