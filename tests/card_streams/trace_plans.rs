//! Programs for each instruction, without running them.

use gr00t_blackhole::backend::blackhole::arena::ArenaPlan;
use gr00t_blackhole::backend::blackhole::grid::L1_BYTES;
use gr00t_blackhole::backend::blackhole::interpreter::{self, ArenaBytes, Binaries};
use gr00t_blackhole::backend::blackhole::lowered::{Instruction, Lowered};
use gr00t_blackhole::backend::blackhole::numerics::DtypePolicy;
use gr00t_blackhole::backend::blackhole::trace::{TracePlan, TraceSource, lower};
use gr00t_blackhole::checkpoint::{Checkpoint, TensorSpec, n15, n16, n17};
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::plan::{Planned, Wanted};
use gr00t_blackhole::program::{self, ModelPrograms, Op, Program};

use super::tiny::Tiny;

/// A released network of which only the shapes are there, and the program of a request in the documents' layout.
fn released(version: Version) -> (Checkpoint, Program) {
    let slot = 0;
    let (tensors, model): (Vec<TensorSpec>, Box<dyn ModelPrograms>) = match version {
        Version::N15 => {
            let config = n15::Config::released();
            (n15::tensors(&config), Box::new(program::n15::Model { config, slot }))
        }
        Version::N16 => {
            let config = n16::Config::released();
            (n16::tensors(&config), Box::new(program::n16::Model { config, slot }))
        }
        Version::N17 => {
            let config = n17::Config::released();
            let prefix_tokens = 3;
            (n17::tensors(&config), Box::new(program::n17::Model { config, slot, prefix_tokens }))
        }
    };
    let checkpoint = Checkpoint::of_shapes("released", &tensors).unwrap();
    let (_, layout) = Planned::released(version).unwrap().layout(Wanted::default()).unwrap();
    let program = model.request(&checkpoint, layout).unwrap();
    (checkpoint, program)
}

/// An arena of which only the sizes matter.
struct Sizes<'a>(&'a ArenaPlan);

impl ArenaBytes for Sizes<'_> {
    fn bytes(&self, bank: u32, offset: u32, bytes: u32) -> Option<&[u8]> {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let end = u64::from(offset) + u64::from(bytes);
        let fits = bank < 8 && end <= self.0.bank_bytes(bank as u8);
        fits.then_some(&ZEROS[..bytes as usize])
    }
}

/// Counts that every program of a plan is sound as far as that can be seen, and how many there are.
fn check_all(plan: &TracePlan<'_>, program: &Program) -> usize {
    let mut programs = 0;
    for (stage, content) in program.stages.iter().enumerate() {
        for found in plan.programs(stage).unwrap() {
            let found = found.unwrap();
            let op = &content.ops[found.op as usize];
            interpreter::check(&found.lowered, &Sizes(plan.arena()), Binaries::default())
                .unwrap_or_else(|fault| panic!("stage {stage}, {op:?}: {fault}"));
            plan.check(stage, &found).unwrap();
            programs += 1;
        }
    }
    programs
}

#[test]
fn released_networks_fit() {
    for version in Version::ALL {
        let (checkpoint, program) = released(version);
        let policy = DtypePolicy::Mixed;
        let source = TraceSource { program: &program, checkpoint: &checkpoint, policy };
        let start = std::time::Instant::now();
        let plan = lower(&source).unwrap_or_else(|error| panic!("{version}: {error}"));
        println!("{version}, {:.1} s\n{}", start.elapsed().as_secs_f64(), plan.report());
        println!("{}", plan.arena().report());
        let programs = check_all(&plan, &program);
        let ops = program.stages.iter().flat_map(|stage| &stage.ops);
        assert_eq!(programs, ops.filter(|op| !matches!(op, Op::Tap { .. })).count(), "{version}");
        for stage in &plan.report().stages {
            assert!(stage.l1_bytes <= L1_BYTES && stage.most_cores > 100, "{stage:?}");
        }
    }
}

/// All words of a program, with where they and all else stand.
fn words(lowered: &Lowered) -> Vec<u32> {
    let mut words = Vec::new();
    for (core, streams) in lowered.cores.iter().zip(&lowered.segments[0].streams) {
        words.extend([u32::from(core.core.x), u32::from(core.core.y)]);
        words.extend(core.map.regions.iter().flat_map(|region| [region.address, region.bytes]));
        for step in streams.0.iter().flatten() {
            let encoded = step.instruction.encode(step.op);
            assert_eq!(Instruction::decode(&encoded), Ok((step.instruction, step.op)));
            words.extend(encoded);
        }
    }
    words
}

#[test]
fn programs_have_the_same_words_each_time() {
    for version in Version::ALL {
        let run = || -> (Vec<u32>, Vec<u8>) {
            let tiny = Tiny::new(version);
            let program = tiny.request();
            let (checkpoint, policy) = (&tiny.checkpoint, DtypePolicy::MixedDit);
            let plan = lower(&TraceSource { program: &program, checkpoint, policy }).unwrap();
            let programs =
                (0..program.stages.len()).flat_map(|stage| plan.programs(stage).unwrap());
            let words = programs.flat_map(|program| words(&program.unwrap().lowered)).collect();
            let arena = plan.arena().image(checkpoint).unwrap();
            (words, (0..8).flat_map(|bank| arena.bank(bank)).copied().collect())
        };
        assert!(run() == run(), "{version}");
    }
}
