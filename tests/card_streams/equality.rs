//! The streams compute the numbers of the CPU, bit for bit.

use std::sync::Arc;

use gr00t_blackhole::backend::blackhole::interpreter::{Fault, Machine, Schedule};
use gr00t_blackhole::backend::blackhole::lower::{Denoise, Place, denoise_instructions};
use gr00t_blackhole::backend::blackhole::numerics::DtypePolicy;
use gr00t_blackhole::backend::cpu::card::CardNumerics;
use gr00t_blackhole::checkpoint::Checkpoint;
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::program::{Op, View};

use super::tiny::{Reference, Tiny};

fn reference(version: Version, policy: DtypePolicy) -> (Arc<Checkpoint>, Reference) {
    Tiny::new(version).reference(CardNumerics { policy, ..CardNumerics::default() })
}

/// As [`try_run`], of streams that run.
fn run(
    checkpoint: &Checkpoint,
    reference: &Reference,
    denoise: &Denoise,
    schedule: &mut Schedule,
    look: impl FnOnce(&mut Machine<'_>),
) {
    try_run(checkpoint, reference, denoise, schedule, look)
        .unwrap_or_else(|fault| panic!("{fault}"));
}

/// Runs streams on the inputs of the reference; hands the machine over as it stands at the end.
pub fn try_run(
    checkpoint: &Checkpoint,
    reference: &Reference,
    denoise: &Denoise,
    schedule: &mut Schedule,
    look: impl FnOnce(&mut Machine<'_>),
) -> Result<(), Fault> {
    let arena = denoise.arena.image(checkpoint).unwrap();
    let mut machine = Machine::new(&denoise.lowered, &arena, reference.numerics)?;
    for input in &denoise.inputs {
        let columns = reference.program.buffers[input.buffer.0].cols;
        let mut values = vec![0.0; input.first_row as usize * columns];
        values.extend_from_slice(reference.contents(input.buffer));
        machine.write_buffer(input.dram as usize, &values)?;
    }
    machine.run(schedule)?;
    look(&mut machine);
    Ok(())
}

fn same_bits(name: &str, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{name}");
    let differs = found.iter().zip(expected).position(|(a, b)| a.to_bits() != b.to_bits());
    if let Some(at) = differs {
        panic!("{name}: value {at} is {}, expected {}", found[at], expected[at]);
    }
}

#[test]
fn actions_are_those_of_the_cpu() {
    for version in Version::ALL {
        for policy in DtypePolicy::ALL {
            let (checkpoint, reference) = reference(version, policy);
            let denoise = reference.denoise(&checkpoint, None).unwrap();
            let (buffer, first_row) = denoise.result.unwrap();
            run(&checkpoint, &reference, &denoise, &mut Schedule::round_robin(), |machine| {
                let found = machine.read_buffer_from(buffer as usize, first_row as usize).unwrap();
                same_bits(&format!("{version} {}", policy.name()), &found, &reference.actions);
            });
        }
    }
}

#[test]
fn the_order_in_which_cores_run_changes_no_bit() {
    for version in Version::ALL {
        let (checkpoint, reference) = reference(version, DtypePolicy::MixedDit);
        let denoise = reference.denoise(&checkpoint, None).unwrap();
        let (buffer, first_row) = denoise.result.unwrap();
        for seed in 0..4 {
            run(&checkpoint, &reference, &denoise, &mut Schedule::seeded(seed), |machine| {
                let found = machine.read_buffer_from(buffer as usize, first_row as usize).unwrap();
                same_bits(&format!("{version}, seed {seed}"), &found, &reference.actions);
            });
        }
    }
}

/// Rows and columns of a view, from the blocks of its buffer.
fn read_view(machine: &mut Machine<'_>, place: &Place, view: View) -> Vec<f32> {
    let mut values = vec![0.0; view.rows * view.cols];
    let first = place.first_row + view.row as u32;
    for block in &place.blocks {
        let rows = first..first + view.rows as u32;
        let found = machine
            .read_block(
                block.core,
                block.address,
                block.format,
                block.row_tiles,
                rows,
                block.columns,
            )
            .unwrap_or_else(|fault| panic!("{fault}"));
        for (row, found) in found.chunks_exact(block.columns as usize).enumerate() {
            let target = row * view.cols + block.first_column as usize;
            values[target..target + found.len()].copy_from_slice(found);
        }
    }
    values
}

#[test]
fn every_instruction_of_a_step_gives_what_it_gives_on_the_cpu() {
    for version in Version::ALL {
        let (checkpoint, reference) = reference(version, DtypePolicy::MixedDit);
        let numbers = denoise_instructions(&reference.program).unwrap();
        let stage = reference.denoise_stage();
        let ops = &reference.program.stages[stage].ops;
        for (prefix, number) in (1..).zip(&numbers) {
            let op = &ops[*number as usize];
            // Context goes to the hubs in pieces, and stands nowhere whole until it is multicast.
            let Some(view) = op.written() else { continue };
            let denoise = reference.denoise(&checkpoint, Some(prefix)).unwrap();
            let place = denoise.places.iter().find(|(buffer, _)| *buffer == view.buffer);
            let (_, place) = place.unwrap();
            run(&checkpoint, &reference, &denoise, &mut Schedule::round_robin(), |machine| {
                let found = read_view(machine, place, view);
                let name = format!("{version}, instruction {number}: {op:?}");
                same_bits(&name, &found, reference.written_by(stage, *number as usize));
            });
            let is_last_of_the_first_step = matches!(op, Op::AddScaled { .. });
            if is_last_of_the_first_step {
                break;
            }
        }
    }
}
