//! Streams with a mistake in them: each kind is caught, by its name.

use std::sync::Arc;

use gr00t_blackhole::backend::blackhole::arena::{ArenaError, ArenaPlan, HoistRules, PER_STEP};
use gr00t_blackhole::backend::blackhole::arena::{PartSpec, Shard, StreamSpec};
use gr00t_blackhole::backend::blackhole::grid::{Core, Noc, Rectangle};
use gr00t_blackhole::backend::blackhole::interpreter::{Fault, Schedule};
use gr00t_blackhole::backend::blackhole::lower::Denoise;
use gr00t_blackhole::backend::blackhole::lowered::{Engine, Instruction, LayoutFault};
use gr00t_blackhole::backend::cpu::card::CardNumerics;
use gr00t_blackhole::checkpoint::Checkpoint;
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::program::{Op, StageKind, WeightId};

use super::equality::try_run;
use super::tiny::{Reference, Tiny};

struct Subject {
    checkpoint: Arc<Checkpoint>,
    reference: Reference,
    denoise: Denoise,
}

impl Subject {
    fn new() -> Self {
        let (checkpoint, reference) = Tiny::new(Version::N16).reference(CardNumerics::default());
        let denoise = reference.denoise(&checkpoint, None).unwrap();
        Self { checkpoint, reference, denoise }
    }

    /// Every instruction of an engine, with its segment and the number of its core.
    fn each(&mut self, engine: Engine, mut change: impl FnMut(usize, usize, &mut Instruction)) {
        for (segment, content) in self.denoise.lowered.segments.iter_mut().enumerate() {
            for (core, streams) in content.streams.iter_mut().enumerate() {
                for step in &mut streams.0[engine as usize] {
                    change(segment, core, &mut step.instruction);
                }
            }
        }
    }

    /// Changes the first instruction that `change` agrees to.
    fn change_first(&mut self, engine: Engine, change: impl Fn(&mut Instruction) -> bool) {
        let mut done = false;
        self.each(engine, |_, _, instruction| {
            done = done || change(instruction);
        });
        assert!(done, "nothing was changed");
    }

    fn fault(&self) -> Fault {
        let Self { checkpoint, reference, denoise } = self;
        let run = try_run(checkpoint, reference, denoise, &mut Schedule::round_robin(), |_| {});
        run.expect_err("a fault")
    }
}

#[test]
fn the_streams_as_they_are_run() {
    let Subject { checkpoint, reference, denoise } = Subject::new();
    try_run(&checkpoint, &reference, &denoise, &mut Schedule::round_robin(), |_| {}).unwrap();
}

#[test]
fn a_swapped_semaphore_is_a_deadlock() {
    let mut subject = Subject::new();
    subject.change_first(Engine::Compute, |instruction| match instruction {
        Instruction::Wait { semaphore, .. } if *semaphore == 0 => {
            *semaphore = 1;
            true
        }
        _ => false,
    });
    assert!(matches!(subject.fault(), Fault::Deadlock { .. }));
}

#[test]
fn a_short_packet_is_told() {
    let mut subject = Subject::new();
    subject.change_first(Engine::Mover, |instruction| match instruction {
        Instruction::StreamPacket { bytes, .. } => {
            *bytes = 1024;
            true
        }
        _ => false,
    });
    let fault = subject.fault();
    assert!(matches!(fault, Fault::ShortPacket { .. }), "{fault}");
}

#[test]
fn a_rectangle_that_reaches_another_core_is_told() {
    let mut subject = Subject::new();
    subject.change_first(Engine::Mover, |instruction| match instruction {
        Instruction::Multicast { rectangle, noc, .. } => {
            *rectangle = Rectangle::on(*noc, Core::new(0, 0), rectangle.end);
            true
        }
        _ => false,
    });
    let fault = subject.fault();
    assert!(matches!(fault, Fault::MulticastReceiver { .. }), "{fault}");
}

#[test]
fn a_rectangle_that_leaves_cores_out_is_told() {
    let mut subject = Subject::new();
    subject.each(Engine::Mover, |segment, _, instruction| {
        if let Instruction::SignalAll { rectangle, .. } = instruction
            && segment == 0
            && rectangle.start != rectangle.end
        {
            rectangle.end.y -= 1;
        }
    });
    let fault = subject.fault();
    assert!(matches!(fault, Fault::Deadlock { .. }), "{fault}");
}

#[test]
fn corners_in_the_order_of_the_other_network_are_told() {
    let mut subject = Subject::new();
    subject.change_first(Engine::Mover, |instruction| match instruction {
        Instruction::Multicast { noc, .. } => {
            *noc = Noc::Noc1;
            true
        }
        _ => false,
    });
    let fault = subject.fault();
    assert!(matches!(fault, Fault::IllegalRectangle { .. }), "{fault}");
}

#[test]
fn regions_that_overlap_are_told() {
    let mut subject = Subject::new();
    let regions = &mut subject.denoise.lowered.cores[0].map.regions;
    let out = regions.iter().position(|region| region.name == "out").unwrap();
    regions[out].address -= 32;
    let fault = subject.fault();
    assert!(matches!(fault, Fault::Layout(LayoutFault::Overlap { .. })), "{fault}");
}

#[test]
fn a_result_beyond_all_regions_is_told() {
    let mut subject = Subject::new();
    subject.change_first(Engine::Compute, |instruction| match instruction {
        Instruction::Matmul { out, .. } => {
            *out += 1 << 20;
            true
        }
        _ => false,
    });
    let fault = subject.fault();
    assert!(matches!(fault, Fault::OutsideRegion { .. } | Fault::OutsideBlock { .. }), "{fault}");
}

#[test]
fn a_signal_too_many_is_told() {
    let mut subject = Subject::new();
    let last = subject.denoise.lowered.segments.last_mut().unwrap();
    let core = subject.denoise.lowered.cores[0].core;
    let signal = Instruction::Signal { core, semaphore: 9, value: 1 };
    last.streams[0].push(Engine::Compute, 0, signal);
    // Its streams have grown.
    let streams = subject.denoise.lowered.cores[0].map.regions.last_mut().unwrap();
    assert_eq!(streams.name, "streams");
    streams.bytes += 64;
    let fault = subject.fault();
    assert!(matches!(fault, Fault::UnbalancedSemaphore { .. }), "{fault}");
}

/// What a step does not change has no place in it: AdaLN linears, and keys and values of what the backbone has seen.
#[test]
fn a_missing_hoist_is_told() {
    let Subject { checkpoint: _, reference, denoise } = Subject::new();
    let program = &reference.program;
    let adapter = program.stages.iter().find(|stage| stage.kind == StageKind::Adapter).unwrap();
    let keys = adapter.ops.iter().find_map(|op| match op {
        Op::Linear { weight, .. } => Some(*weight),
        _ => None,
    });
    let modulation =
        reference.prepare.weights.iter().find(|weight| weight.tensor.contains("norm1"));
    let mut weights = program.weights.clone();
    weights.push(modulation.unwrap().clone());
    let added = [keys.unwrap(), WeightId(weights.len() - 1)];
    let hoisted = HoistRules::of(&reference.prepare, program);
    for weight in added {
        let shards = vec![(0, Shard { weight, column_tile: 0 })];
        let streams = vec![StreamSpec { consumer: 0, bank: 0, shards }];
        let part = PartSpec { name: PER_STEP.to_owned(), short_last: false, streams };
        let policy = reference.numerics.policy;
        let refused = ArenaPlan::new(&weights, policy, &[part], Vec::new(), &hoisted);
        assert!(matches!(refused, Err(ArenaError::NotHoisted { .. })), "{weight:?}");
    }
    assert!(denoise.arena.part(PER_STEP).is_some());
}
