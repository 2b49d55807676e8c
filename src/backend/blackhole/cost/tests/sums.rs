//! Sums over operations, and what rates do to them.

use super::super::op::OpCost;
use super::super::plan::{Assumptions, Plan};
use super::super::rates::{RATES, Rates};
use super::{assert_near, everything, plan};
use crate::backend::blackhole::numerics::MathFidelity;
use crate::program::StageKind;

#[test]
fn a_persistent_stage_is_one_program() {
    let traced = plan(&everything(StageKind::Llm)).stages.remove(0);
    let persistent = plan(&everything(StageKind::Denoise)).stages.remove(0);
    assert_eq!((traced.programs, persistent.programs), (16, 1));
    assert_near(traced.dispatch_s, 16.0 * 1.9e-6);
    assert_near(persistent.dispatch_s, 1.9e-6);
    assert_eq!((traced.core_s.len(), persistent.core_s.len()), (110, 96));
    assert!(persistent.ops.iter().all(|op| op.cores <= 96));
}

#[test]
fn sums_equal_their_parts() {
    for kind in StageKind::ALL {
        let plan = plan(&everything(kind));
        let stage = &plan.stages[0];
        let sum: f64 = stage.ops.iter().map(OpCost::total_s).sum();
        assert_near(stage.total_s(), sum + stage.dispatch_s);
        assert_near(plan.sum(|stage| stage.total_s()), stage.total_s());
        let groups = plan.groups();
        assert_near(groups.iter().map(|group| group.total_s).sum(), sum);
        assert_eq!(groups.iter().map(|group| group.count).sum::<usize>(), stage.ops.len());
        let banks = plan.bank_bytes();
        let of_ops = stage.ops.iter().flat_map(|op| op.bank_bytes).sum::<u64>();
        assert_eq!(banks.iter().sum::<u64>(), of_ops);
        let arithmetic = stage.arithmetic_s();
        assert!(stage.core_s.iter().all(|seconds| *seconds <= arithmetic * (1.0 + 1e-9)));
    }
}

/// Passes and waits; more of them take longer, where more of all other rates is faster.
const COSTS: [&str; 9] = [
    "noc_request",
    "noc_handover",
    "vector_pass",
    "exponential",
    "sigmoid",
    "gelu_tanh",
    "gelu_erf",
    "two_operands",
    "dispatch",
];

#[test]
fn totals_follow_the_rates() {
    let program = everything(StageKind::Llm);
    let total = |rates: Rates| {
        let assumptions = Assumptions { rates, ..Assumptions::default() };
        Plan::new(&program, &assumptions, true).sum(|stage| stage.total_s())
    };
    let usual = total(Rates::default());
    for rate in RATES {
        let half = format!("{}={}", rate.name, rate.default / 2.0);
        let mut rates = Rates::default();
        rates.set(&half).expect("a rate");
        let changed = total(rates);
        if COSTS.contains(&rate.name) {
            assert!(changed <= usual, "{half}: {changed} instead of {usual}");
        } else {
            assert!(changed >= usual, "{half}: {changed} instead of {usual}");
        }
    }
}

#[test]
fn more_bits_take_longer() {
    let program = everything(StageKind::Llm);
    let seconds = |fidelity| {
        let assumptions = Assumptions { fidelity, ..Assumptions::default() };
        Plan::new(&program, &assumptions, true).stages[0].ops[1].whole_tiles_s
    };
    let [least, usual, most] =
        [MathFidelity::LoFi, MathFidelity::HiFi2, MathFidelity::HiFi4].map(seconds);
    assert_near(usual, 2.0 * least);
    assert_near(most, 2.0 * usual);
}
