//! A program for each instruction computes the numbers of the CPU, bit for bit, in all stages.

use std::collections::HashMap;
use std::sync::Arc;

use gr00t_blackhole::backend::blackhole::arena::Arena;
use gr00t_blackhole::backend::blackhole::interpreter::Schedule;
use gr00t_blackhole::backend::blackhole::numerics::DtypePolicy;
use gr00t_blackhole::backend::blackhole::trace::{Runner, TracePlan, TraceSource, lower};
use gr00t_blackhole::backend::cpu::card::CardNumerics;
use gr00t_blackhole::checkpoint::Checkpoint;
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::program::{ACTIONS, BufferId, View};
use rand_mt::Mt;

use super::common::stored_network::{PREFIX_TOKENS, StoredNetwork};
use super::tiny::{Prompt, Reference, Tiny};

/// Odd numbers of everything: pictures that do not begin at a tile, text that does not end at one.
const RAGGED: Prompt = Prompt { text: [35, 7], images: 2, grid: [4, 6] };

pub fn plan<'a>(checkpoint: &'a Checkpoint, reference: &'a Reference) -> TracePlan<'a> {
    let policy = reference.numerics.policy;
    lower(&TraceSource { program: &reference.program, checkpoint, policy })
        .unwrap_or_else(|error| panic!("{error}"))
}

/// A runner with the inputs of the reference in DRAM.
pub fn runner<'a>(
    plan: &'a TracePlan<'a>,
    checkpoint: &Checkpoint,
    reference: &Reference,
    arena: &'a Arena,
) -> Runner<'a> {
    let mut runner = Runner::new(plan, arena, reference.numerics);
    runner.fill(&plan.at_load(checkpoint, &reference.constants).unwrap()).unwrap();
    runner.fill(&plan.of_request(&reference.input).unwrap()).unwrap();
    runner
}

fn same_bits(name: &str, view: View, found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len(), "{name}");
    let differs = found.iter().zip(expected).position(|(a, b)| a.to_bits() != b.to_bits());
    if let Some(at) = differs {
        let (row, column) = (at / view.cols, at % view.cols);
        panic!("{name}: row {row}, column {column} is {}, expected {}", found[at], expected[at]);
    }
}

/// Runs every program, the cores in an order of its own each time, and compares what its instruction has written.
fn check(version: Version, (checkpoint, reference): (Arc<Checkpoint>, Reference)) {
    let plan = plan(&checkpoint, &reference);
    println!("{version}\n{}", plan.report());
    let arena = plan.arena().image(&checkpoint).unwrap();
    let mut runner = runner(&plan, &checkpoint, &reference, &arena);
    for (stage, content) in reference.program.stages.iter().enumerate() {
        for program in plan.programs(stage).unwrap() {
            let program = program.unwrap();
            let op = &content.ops[program.op as usize];
            let name = format!("{version}, stage {stage}, {} ({})", program.op, program.name);
            runner
                .run(&program, &mut Schedule::seeded(program.op))
                .unwrap_or_else(|error| panic!("{name}: {error}\n{op:?}"));
            let view = op.written().unwrap();
            let found = runner.read(view).unwrap_or_else(|error| panic!("{name}: {error}"));
            same_bits(&name, view, &found, reference.written_by(stage, program.op as usize));
        }
    }
    let (_, actions) =
        reference.program.exports.iter().find(|(export, _)| export == ACTIONS).unwrap();
    let view = reference.program.view(*actions);
    same_bits(ACTIONS, view, &runner.read(view).unwrap(), &reference.actions);
}

/// Values of buffers as the CPU leaves them after some instructions, where these have written anything.
fn values_after(
    reference: &Reference,
    last_stage: usize,
    end: usize,
) -> HashMap<BufferId, Vec<Option<f32>>> {
    let mut buffers: HashMap<BufferId, Vec<Option<f32>>> = HashMap::new();
    for (stage, content) in reference.program.stages[..=last_stage].iter().enumerate() {
        let ops = if stage == last_stage { &content.ops[..end] } else { &content.ops[..] };
        for (number, op) in ops.iter().enumerate() {
            let Some(view) = op.written() else { continue };
            let spec = &reference.program.buffers[view.buffer.0];
            let all = buffers.entry(view.buffer).or_insert(vec![None; spec.rows * spec.cols]);
            let written = reference.written_by(stage, number).chunks_exact(view.cols);
            for (row, values) in written.enumerate() {
                let first = (view.row + row) * spec.cols + view.col;
                for (target, value) in all[first..first + view.cols].iter_mut().zip(values) {
                    *target = Some(*value);
                }
            }
        }
    }
    buffers
}

/// Some prefixes, of which nobody has thought before.
#[test]
fn every_buffer_is_the_cpu_s_after_any_prefix() {
    let mut numbers = Mt::new(16);
    for version in Version::ALL {
        let (checkpoint, reference) = Tiny::new(version).reference(CardNumerics::default());
        let plan = plan(&checkpoint, &reference);
        let arena = plan.arena().image(&checkpoint).unwrap();
        let mut runner = runner(&plan, &checkpoint, &reference, &arena);
        let stages = &reference.program.stages;
        let last = numbers.next_u32() as usize % stages.len();
        let end = numbers.next_u32() as usize % (stages[last].ops.len() + 1);
        let schedule = &mut Schedule::round_robin();
        for (stage, content) in stages[..last].iter().enumerate() {
            runner.run_to(stage, content.ops.len(), schedule).unwrap();
        }
        runner.run_to(last, end, schedule).unwrap();
        let name = format!("{version}, {end} instructions of stage {last}");
        println!("{name}");
        for (buffer, expected) in values_after(&reference, last, end) {
            let whole = reference.program.view(buffer);
            for (row, expected) in expected.chunks_exact(whole.cols).enumerate() {
                // What is written of a row is written from its start on.
                let count = expected.iter().take_while(|value| value.is_some()).count();
                assert!(expected[count..].iter().all(Option::is_none), "{name}");
                let view = whole.slice_rows(row, 1).slice_cols(0, count);
                let expected: Vec<f32> = expected.iter().flatten().copied().collect();
                if count > 0 {
                    let name = format!("{name}, row {row} of {buffer:?}");
                    same_bits(&name, view, &runner.read(view).unwrap(), &expected);
                }
            }
        }
    }
}

fn numerics(policy: DtypePolicy) -> CardNumerics {
    CardNumerics { policy, ..CardNumerics::default() }
}

#[test]
fn every_instruction_gives_what_it_gives_on_the_cpu() {
    for version in Version::ALL {
        check(version, Tiny::new(version).reference(numerics(DtypePolicy::Mixed)));
    }
}

#[test]
fn the_request_of_every_golden_gives_what_it_gives_on_the_cpu() {
    for version in Version::ALL {
        let input = StoredNetwork::of(version).input;
        let tiny = Tiny::for_request(version, input, PREFIX_TOKENS);
        check(version, tiny.reference(numerics(DtypePolicy::MixedDit)));
    }
}

#[test]
fn odd_numbers_of_tokens_give_what_they_give_on_the_cpu() {
    for version in Version::ALL {
        check(version, Tiny::of(version, RAGGED).reference(numerics(DtypePolicy::Bf16)));
    }
}
