//! What lies between stages.

use std::collections::HashSet;

use super::super::cores::Execution;
use super::super::plan::{Assumptions, Plan};
use super::{assert_near, checkpoint, plan};
use crate::backend::blackhole::grid::L1_BYTES;
use crate::backend::blackhole::numerics::TileFormat;
use crate::contract::Version;
use crate::plan::{Planned, Wanted};
use crate::program::{Activation, Op, ProgramBuilder, StageKind};

#[test]
fn what_one_stage_hands_to_another_lies_in_dram() {
    let checkpoint = checkpoint(&[("w.weight", &[64, 64])]);
    let mut b = ProgramBuilder::new(Version::N16, &checkpoint);
    let matrix = b.matrix("w.weight", 64, 64).expect("it is there");
    let [x, first, second, sum] =
        ["x", "first", "second", "sum"].map(|name| b.scratch(name, 64, 64));
    b.stage(StageKind::Vision);
    b.linear(x, (matrix, None), Activation::Identity, first);
    b.stage(StageKind::Llm);
    b.linear(first, (matrix, None), Activation::Identity, second);
    b.add(first, sum);
    b.add(second, sum);
    let plan = plan(&b.finish());
    let bytes = |stage: usize, op: usize| plan.stages[stage].ops[op].bank_bytes.iter().sum::<u64>();
    let matrix = 4 * 2048;
    // Written; read with the weights; read again; not read.
    assert_eq!(
        [bytes(0, 0), bytes(1, 0), bytes(1, 1), bytes(1, 2)],
        [2 * matrix, 2 * matrix, matrix, 0]
    );
}

#[test]
fn a_kept_stage_counts_nothing() {
    let checkpoint = checkpoint(&[("w.weight", &[64, 64])]);
    let mut b = ProgramBuilder::new(Version::N16, &checkpoint);
    let matrix = b.matrix("w.weight", 64, 64).expect("it is there");
    let [x, a, c] = ["x", "a", "c"].map(|name| b.scratch(name, 64, 64));
    b.stage_of_leading_tokens(StageKind::Llm, 64);
    b.linear(x, (matrix, None), Activation::Identity, a);
    b.stage(StageKind::Llm);
    b.linear(a, (matrix, None), Activation::Identity, c);
    let program = b.finish();
    let plan = |new_instruction| Plan::new(&program, &Assumptions::default(), new_instruction);
    let (kept, whole) = (plan(false), plan(true));
    assert!(kept.stages[0].kept && !kept.stages[1].kept);
    assert!(!whole.stages[0].kept && whole.stages[0].of_instruction);
    let total = |plan: &Plan| plan.sum(|stage| stage.total_s());
    assert_near(total(&kept), kept.stages[1].total_s());
    assert_near(total(&whole), total(&kept) + kept.stages[0].total_s());
}

/// What [`super::placement`] builds on.
#[test]
fn the_values_of_a_stage_fit_into_the_cores() {
    let memory = Execution::Traced.cores() * L1_BYTES as usize;
    for version in Version::ALL {
        let planned = Planned::released(version).expect("a released network");
        let (_, layout) = planned.layout(Wanted::default()).expect("the documents' layout");
        let program = planned.request(layout).expect("a program");
        for stage in &program.stages {
            let buffers: HashSet<usize> =
                stage.ops.iter().filter_map(Op::written).map(|view| view.buffer.0).collect();
            let bytes = buffers.iter().map(|buffer| {
                let spec = &program.buffers[*buffer];
                TileFormat::Bf16.matrix_bytes(spec.rows, spec.cols).expect("a size")
            });
            let bytes: usize = bytes.sum();
            assert!(bytes < memory, "{version} {}: {bytes} of {memory}", stage.kind.name());
        }
    }
}
