//! Lowering the denoise stages of tiny networks. What the streams compute is tested with the interpreter.

use std::collections::HashSet;

use gr00t_blackhole::backend::blackhole::core_map::Layout;
use gr00t_blackhole::backend::blackhole::grid::Noc;
use gr00t_blackhole::backend::blackhole::lower::{
    Denoise, LowerError, Source, blank_constants, denoise, denoise_instructions,
};
use gr00t_blackhole::backend::blackhole::lowered::{Instruction, Step};
use gr00t_blackhole::backend::blackhole::numerics::DtypePolicy;
use gr00t_blackhole::checkpoint::Checkpoint;
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::plan::{Planned, Wanted};
use gr00t_blackhole::program::{Op, Program, StageKind, WeightId};

use super::tiny::Tiny;

/// Lowers a prefix, or all, with zeros for what the prepare program exports.
fn lowered(version: Version, prefix: Option<usize>) -> Denoise {
    let tiny = Tiny::new(version);
    lower(&tiny, &tiny.request(), prefix).unwrap()
}

fn lower(tiny: &Tiny, program: &Program, prefix: Option<usize>) -> Result<Denoise, LowerError> {
    let (prepare, checkpoint) = (tiny.prepare(), &tiny.checkpoint);
    lower_programs(&prepare, program, checkpoint, Layout::TwoColumns, prefix)
}

fn lower_programs(
    prepare: &Program,
    program: &Program,
    checkpoint: &Checkpoint,
    layout: Layout,
    prefix: Option<usize>,
) -> Result<Denoise, LowerError> {
    let constants = blank_constants(prepare);
    let source = Source {
        program,
        prepare,
        checkpoint,
        constants: &constants,
        policy: DtypePolicy::MixedDit,
        layout,
    };
    denoise(&source, prefix)
}

fn steps(denoise: &Denoise) -> impl Iterator<Item = &Step> {
    let streams = denoise.lowered.segments.iter().flat_map(|segment| &segment.streams);
    streams.flat_map(|streams| streams.0.iter().flatten())
}

#[test]
fn every_version_is_lowered_to_the_same_words_each_time() {
    for version in Version::ALL {
        let first = lowered(version, None);
        assert_eq!(first.lowered, lowered(version, None).lowered, "{version}");
        let names: Vec<&str> =
            first.lowered.segments.iter().map(|segment| segment.name.as_str()).collect();
        assert_eq!(names, ["per_request", "per_step", "result"]);
        assert_eq!(first.lowered.segments[1].passes, 4);
        for step in steps(&first) {
            let words = step.instruction.encode(step.op);
            assert_eq!(Instruction::decode(&words), Ok((step.instruction, step.op)));
        }
    }
}

#[test]
fn every_weight_of_a_step_is_read_once_in_it() {
    for version in Version::ALL {
        let tiny = Tiny::new(version);
        let program = tiny.request();
        let stage = program.stages.iter().find(|stage| stage.kind == StageKind::Denoise).unwrap();
        // The products before the first step are those of the state.
        let weights: HashSet<WeightId> = stage
            .ops
            .iter()
            .skip_while(|op| !matches!(op, Op::Copy { .. }))
            .filter_map(|op| match op {
                Op::Linear { weight, .. } | Op::LinearBuffer { weight, .. } => Some(*weight),
                _ => None,
            })
            .collect();
        let denoise = lowered(version, None);
        let part = denoise.arena.part("per_step").unwrap();
        let mut read = HashSet::new();
        for shard in part.streams.iter().flat_map(|stream| &stream.shards) {
            assert!(read.insert((shard.weight, shard.column_tile)), "{shard:?} is read twice");
        }
        let columns = |weight: &WeightId| program.weights[weight.0].outputs().div_ceil(32);
        assert_eq!(read.len(), weights.iter().map(columns).sum::<usize>(), "{version}");
    }
}

#[test]
fn multicasts_are_legal() {
    for step in steps(&lowered(Version::N16, None)) {
        if let Instruction::Multicast { rectangle, noc, .. } = step.instruction {
            assert!(rectangle.is_legal_on(noc) && noc == Noc::Noc0, "{rectangle}");
        }
    }
}

#[test]
fn prefixes_end_where_they_are_asked_to() {
    let all = denoise_instructions(&Tiny::new(Version::N16).request()).unwrap().len();
    let names = |prefix| -> Vec<(String, u32)> {
        let denoise = lowered(Version::N16, Some(prefix));
        let segments = denoise.lowered.segments.into_iter();
        segments.map(|segment| (segment.name, segment.passes)).collect()
    };
    assert_eq!(names(1), [("per_request".to_owned(), 1)]);
    let last = names(all - 1);
    assert_eq!(last[1..], [("per_step".to_owned(), 3), ("rest".to_owned(), 1)]);
    assert_eq!(names(all)[2].0, "result");
}

#[test]
fn steps_that_differ_are_refused() {
    let tiny = Tiny::new(Version::N16);
    let mut program = tiny.request();
    let stage = program.stages.iter_mut().find(|stage| stage.kind == StageKind::Denoise);
    let ops = &mut stage.unwrap().ops;
    let last = ops.iter().rposition(|op| matches!(op, Op::Attention { .. })).unwrap();
    let Op::Attention { shape, .. } = &mut ops[last] else { unreachable!() };
    shape.scale *= 2.0;
    let refused = lower(&tiny, &program, None);
    assert!(matches!(refused, Err(LowerError::UnequalSteps { op }) if op == last as u32));
}

/// The networks of the released checkpoints fit: no region beyond L1, no two of them on one another.
#[test]
fn released_sizes_fit_into_the_cores() {
    for version in Version::ALL {
        let planned = Planned::released(version).unwrap();
        let (_, layout) = planned.layout(Wanted::default()).unwrap();
        let (prepare, program) = (planned.prepare().unwrap(), planned.request(layout).unwrap());
        for cores in Layout::ALL {
            let denoise =
                lower_programs(&prepare, &program, planned.checkpoint(), cores, None).unwrap();
            let part = denoise.arena.part("per_step").unwrap();
            let banks: Vec<u64> =
                (0..8).map(|bank| part.range(bank).end - part.range(bank).start).collect();
            let (least, most) = (banks.iter().min().unwrap(), banks.iter().max().unwrap());
            assert!(*most as f64 <= 1.02 * *least as f64, "{version}: {banks:?}");
        }
    }
}
