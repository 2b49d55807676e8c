//! Programs of single instructions with a mistake in them, and instructions that have no program.

use std::sync::Arc;

use gr00t_blackhole::backend::blackhole::arena::Arena;
use gr00t_blackhole::backend::blackhole::interpreter::{Fault, Schedule};
use gr00t_blackhole::backend::blackhole::lowered::{Engine, Instruction, LayoutFault, Step};
use gr00t_blackhole::backend::blackhole::numerics::DtypePolicy;
use gr00t_blackhole::backend::blackhole::trace::{
    RunError, Runner, TileFault, TraceError, TracePlan, TraceProgram, TraceSource, lower,
};
use gr00t_blackhole::backend::cpu::card::CardNumerics;
use gr00t_blackhole::checkpoint::Checkpoint;
use gr00t_blackhole::contract::Version;
use gr00t_blackhole::program::{
    Activation, BufferId, BufferSource, BufferSpec, Op, Orientation, Program, Stage, StageKind,
    View, WeightId, WeightSpec,
};

use super::tiny::{Reference, Tiny};
use super::traces::{plan, runner};

struct Subject {
    checkpoint: Arc<Checkpoint>,
    reference: Reference,
}

impl Subject {
    fn new() -> Self {
        let (checkpoint, reference) = Tiny::new(Version::N16).reference(CardNumerics::default());
        Self { checkpoint, reference }
    }

    fn plan(&self) -> TracePlan<'_> {
        plan(&self.checkpoint, &self.reference)
    }

    /// Runs everything up to the first instruction of the denoise stage that `is_wanted`, and hands over its program, not yet
    /// run.
    fn at<T>(
        &self,
        is_wanted: impl Fn(&Op) -> bool,
        work: impl FnOnce(&TracePlan<'_>, &mut Runner<'_>, usize, TraceProgram) -> T,
    ) -> T {
        let plan = self.plan();
        let arena: Arena = plan.arena().image(&self.checkpoint).unwrap();
        let mut runner = runner(&plan, &self.checkpoint, &self.reference, &arena);
        let stage = self.reference.denoise_stage();
        let stages = &self.reference.program.stages;
        for (before, content) in stages[..stage].iter().enumerate() {
            runner.run_to(before, content.ops.len(), &mut Schedule::round_robin()).unwrap();
        }
        let op = stages[stage].ops.iter().position(is_wanted).unwrap();
        runner.run_to(stage, op, &mut Schedule::round_robin()).unwrap();
        let mut programs = plan.programs(stage).unwrap().map(Result::unwrap);
        let program = programs.find(|program| program.op as usize == op).unwrap();
        work(&plan, &mut runner, stage, program)
    }
}

/// The streams of an engine, of all cores.
fn streams(program: &mut TraceProgram, engine: Engine) -> impl Iterator<Item = &mut Vec<Step>> {
    let streams = program.lowered.segments[0].streams.iter_mut();
    streams.map(move |streams| &mut streams.0[engine as usize])
}

/// The first write of every core.
fn writes(program: &mut TraceProgram) -> Vec<&mut Instruction> {
    let writes = |steps: &'static str| move |step: &&mut Step| step.instruction.name() == steps;
    streams(program, Engine::Mover)
        .filter_map(|stream| stream.iter_mut().find(writes("WriteTiles")))
        .map(|step| &mut step.instruction)
        .collect()
}

fn set_tile(instruction: &mut Instruction, number: u32) {
    match instruction {
        Instruction::WriteTiles { tile, .. } | Instruction::ReadTiles { tile, .. } => {
            *tile = number
        }
        other => panic!("{other:?}"),
    }
}

fn first_tile(instruction: &Instruction) -> u32 {
    match instruction {
        Instruction::WriteTiles { tile, .. } | Instruction::ReadTiles { tile, .. } => *tile,
        other => panic!("{other:?}"),
    }
}

fn tile_fault(plan: &TracePlan<'_>, stage: usize, program: &TraceProgram) -> TileFault {
    match plan.check(stage, program) {
        Err(TraceError::Tiles { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

fn fault(runner: &mut Runner<'_>, program: &TraceProgram) -> Fault {
    match runner.run(program, &mut Schedule::round_robin()) {
        Err(RunError::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

fn is_product(op: &Op) -> bool {
    matches!(op, Op::Linear { out, .. } if out.cols > 64)
}

#[test]
fn a_wrong_tile_is_told() {
    let subject = Subject::new();
    subject.at(is_product, |plan, runner, stage, program| {
        plan.check(stage, &program).unwrap();
        let mut beyond = program.clone();
        set_tile(writes(&mut beyond)[0], 1 << 20);
        assert!(matches!(tile_fault(plan, stage, &beyond), TileFault::Foreign { .. }));
        assert!(matches!(fault(runner, &beyond), Fault::NoTile { .. }));

        let mut twice = program.clone();
        let mut writes = writes(&mut twice);
        let other = first_tile(writes[1]);
        set_tile(writes[0], other);
        let found = tile_fault(plan, stage, &twice);
        assert!(matches!(&found, TileFault::Twice { tile, .. } if *tile == other), "{found}");
    });
}

#[test]
fn a_missing_write_is_told() {
    let subject = Subject::new();
    subject.at(is_product, |plan, _, stage, mut program| {
        for stream in streams(&mut program, Engine::Mover).take(1) {
            stream.retain(|step| step.instruction.name() != "WriteTiles");
        }
        assert!(matches!(tile_fault(plan, stage, &program), TileFault::Missing { .. }));
    });
}

/// Behind the state's row of the sequence, in the same tile, comes what is not this instruction's.
#[test]
fn a_tile_that_was_not_read_before_it_is_written_back_loses_its_other_rows() {
    let subject = Subject::new();
    let is_behind_a_row = |op: &Op| matches!(op, Op::Linear { out, .. } if out.row == 1);
    subject.at(is_behind_a_row, |_, runner, stage, program| {
        let op = &subject.reference.program.stages[stage].ops[program.op as usize];
        let row = View { row: 0, rows: 1, ..op.written().unwrap() };
        let before = runner.read(row).unwrap();
        runner.run(&program, &mut Schedule::round_robin()).unwrap();
        assert_eq!(runner.read(row).unwrap(), before);

        let mut hasty = program;
        let result = writes(&mut hasty).into_iter().map(|write| match *write {
            Instruction::WriteTiles { buffer, .. } => buffer,
            _ => unreachable!(),
        });
        let result = result.last().unwrap();
        for stream in streams(&mut hasty, Engine::Mover) {
            stream.retain(|step| {
                !matches!(step.instruction, Instruction::ReadTiles { buffer, .. } if buffer == result)
            });
        }
        runner.run(&hasty, &mut Schedule::round_robin()).unwrap();
        let found = runner.read(row);
        assert!(matches!(found, Err(RunError::Fault(Fault::BufferUnwritten { row: 0, .. }))));
    });
}

#[test]
fn a_tile_of_another_core_is_not_read() {
    let subject = Subject::new();
    subject.at(
        |op| matches!(op, Op::Add { .. }),
        |plan, _, stage, mut program| {
            let result =
                writes(&mut program).iter().map(|write| first_tile(write)).collect::<Vec<_>>();
            let Instruction::WriteTiles { buffer: out, .. } = *writes(&mut program)[0] else {
                unreachable!()
            };
            let reads = streams(&mut program, Engine::Mover).flatten().find(|step| {
            matches!(step.instruction, Instruction::ReadTiles { buffer, .. } if buffer == out)
        });
            set_tile(&mut reads.unwrap().instruction, result[1]);
            assert!(matches!(tile_fault(plan, stage, &program), TileFault::Race { .. }));
        },
    );
}

#[test]
fn regions_that_overlap_are_told() {
    let subject = Subject::new();
    subject.at(is_product, |_, runner, _, mut program| {
        let regions = &mut program.lowered.cores[0].map.regions;
        regions[1].address = regions[0].address;
        let found = fault(runner, &program);
        assert!(matches!(found, Fault::Layout(LayoutFault::Overlap { .. })), "{found}");
    });
}

#[test]
fn an_engine_that_does_not_hand_over_is_told() {
    let subject = Subject::new();
    subject.at(is_product, |_, runner, _, mut program| {
        let stream = streams(&mut program, Engine::Mover).next().unwrap();
        let signal = stream.iter().position(|step| step.instruction.name() == "Signal").unwrap();
        stream.remove(signal);
        let found = fault(runner, &program);
        assert!(matches!(found, Fault::Deadlock { .. }), "{found}");
    });
}

/// A program of one instruction over buffers of these sizes, with a weight of so many inputs for 32 outputs.
fn lower_one(sizes: &[[usize; 2]], inputs: usize, op: Op) -> TraceError {
    let buffer = |(number, [rows, cols]): (usize, &[usize; 2])| BufferSpec {
        name: format!("buffer {number}"),
        rows: *rows,
        cols: *cols,
        source: BufferSource::Scratch,
    };
    let program = Program {
        version: Version::N16,
        buffers: sizes.iter().enumerate().map(buffer).collect(),
        indices: vec![],
        weights: vec![WeightSpec {
            tensor: "weight".to_owned(),
            offset: 0,
            rows: 32,
            cols: inputs,
            orientation: Orientation::OutIn,
        }],
        stages: vec![Stage {
            kind: StageKind::Denoise,
            leading_tokens: None,
            ops: vec![op, product(1)],
        }],
        exports: vec![],
    };
    let checkpoint = Checkpoint::of_shapes("none", &[]).unwrap();
    let policy = DtypePolicy::Bf16;
    match lower(&TraceSource { program: &program, checkpoint: &checkpoint, policy }) {
        Ok(_) => panic!("it was lowered"),
        Err(error) => error,
    }
}

/// Buffer 0 times the weight to buffer 1.
fn product(rows: usize) -> Op {
    Op::Linear {
        x: view(0, [0, rows], [0, 64]),
        weight: WeightId(0),
        bias: None,
        activation: Activation::Identity,
        out: view(1, [0, rows], [0, 32]),
    }
}

fn view(buffer: usize, [row, rows]: [usize; 2], [col, cols]: [usize; 2]) -> View {
    View { buffer: BufferId(buffer), row, rows, col, cols }
}

#[test]
fn instructions_without_a_program_are_told() {
    let sizes = [[64, 64], [64, 64]];
    let map = |x, out| Op::Map { x, activation: Activation::Relu, out };
    let within = map(view(0, [0, 8], [0, 32]), view(0, [8, 8], [0, 32]));
    let error = lower_one(&sizes, 64, within);
    assert!(matches!(error, TraceError::SharedTiles { .. }), "{error}");
    let begins_within = map(view(0, [0, 8], [0, 32]), view(1, [0, 8], [1, 32]));
    let error = lower_one(&sizes, 64, begins_within);
    assert!(matches!(error, TraceError::Unsupported { .. }), "{error}");
    let cut = Op::Reshape { x: view(0, [0, 2], [0, 64]), out: view(1, [0, 4], [0, 32]) };
    let error = lower_one(&sizes, 64, cut);
    assert!(error.to_string().contains("whole rows side by side"), "{error}");
}

#[test]
fn a_row_of_tiles_that_does_not_fit_is_told() {
    let inputs = 30_000;
    let wide = Op::Linear {
        x: view(0, [0, 8], [0, inputs]),
        weight: WeightId(0),
        bias: None,
        activation: Activation::Identity,
        out: view(1, [0, 8], [0, 32]),
    };
    let error = lower_one(&[[8, inputs], [8, 32]], inputs, wide);
    assert!(matches!(error, TraceError::TooLarge { needed: 1_900_000.., .. }), "{error}");
}
