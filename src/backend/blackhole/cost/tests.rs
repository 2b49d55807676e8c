//! Small operations, counted by hand.

use super::op::{Bound, OpCost};
use super::plan::{Assumptions, Plan};
use super::rates::{RATES, Rates};
use crate::backend::blackhole::numerics::{DtypePolicy, MathFidelity};
use crate::checkpoint::{Checkpoint, TensorSpec};
use crate::contract::Version;
use crate::program::{
    Activation, AttentionShape, IndexInput, Input, Modulation, PatchGrid, PatchOrder, Program,
    ProgramBuilder, StageKind,
};

/// Of a product of two tiles at HiFi2, and of an instruction for all values of a tile.
const PRODUCT_S: f64 = 65_536.0 / 2.7e12;
const PASS_S: f64 = 32.0 / 1.35e9;
const HANDOVER_S: f64 = 0.28e-6;
/// Bytes a second of one bank.
const BANK: f64 = 464e9 / 8.0;

fn checkpoint(tensors: &[(&str, &[usize])]) -> Checkpoint {
    let spec = |(name, shape): &(&str, &[usize])| TensorSpec {
        name: (*name).to_owned(),
        shape: shape.to_vec(),
        used: true,
    };
    let specs: Vec<TensorSpec> = tensors.iter().map(spec).collect();
    Checkpoint::of_shapes("shapes", &specs).expect("memory that nobody reads")
}

fn plan(program: &Program) -> Plan {
    let assumptions = Assumptions { policy: DtypePolicy::Mixed, ..Assumptions::default() };
    Plan::new(program, &assumptions, true)
}

/// The costs of the only stage.
fn costs(program: &Program) -> Vec<OpCost> {
    let mut stages = plan(program).stages;
    assert_eq!(stages.len(), 1);
    stages.remove(0).ops
}

fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} instead of {expected}");
}

/// `[40, 64]` through a matrix `[96, 64]`: 2 x 3 tiles of output, each of 2 products.
fn product(matrix: &str, activation: Activation) -> OpCost {
    let bias = format!("{matrix}.bias");
    let matrix = format!("{matrix}.weight");
    let checkpoint = checkpoint(&[(&matrix, &[96, 64]), (&bias, &[96])]);
    let mut b = ProgramBuilder::new(Version::N16, &checkpoint);
    b.stage(StageKind::Llm);
    let (x, out) = (b.scratch("x", 40, 64), b.scratch("out", 40, 96));
    let weight = b.matrix(&matrix, 96, 64).expect("it is there");
    let bias = b.vector(&bias, 96).expect("it is there");
    b.linear(x, (weight, Some(bias)), activation, out);
    costs(&b.finish()).remove(0)
}

#[test]
fn a_product_by_hand() {
    let cost = product("connector.0", Activation::Identity);
    assert_eq!((cost.label.as_str(), cost.joined), ("connector.0", false));
    // Six tiles of weights, and three pieces of bias of 64 bytes.
    assert_eq!(cost.bank_bytes, [2112, 2112, 2112, 2048, 2048, 2048, 0, 0]);
    assert_eq!(cost.weight_bytes, 6 * 2048 + 3 * 64);
    assert_near(cost.memory_s, 2112.0 / BANK);
    // One tile of output a core: two of each factor and a piece of bias in, one out.
    assert_eq!((cost.cores, cost.tile_matmuls), (6, 12));
    assert_near(cost.busiest_share, 1.0 / 6.0);
    assert_eq!(cost.noc_bytes, 5 * 2048 + 64);
    assert_near(cost.noc_s, (5.0 * 2048.0 + 64.0) / 64.0 / 1.35e9 + HANDOVER_S);
    // The bias takes one instruction a tile, which fits into the time in which the matrix engine has to wait.
    assert_near(cost.sfpu_passes, 6.0);
    assert_near(cost.arithmetic_s, 2.0 * PRODUCT_S / 0.5);
    assert_near(cost.rates_alone_s, cost.memory_s);
    assert_eq!(cost.bound(), Bound::Noc);
    assert_near(cost.total_s(), cost.noc_s);
}

#[test]
fn at_the_rates_alone_products_are_on_all_cores() {
    let program = everything(StageKind::Llm);
    let rates = Rates { dram_bf16: 1e9, dram_bfp8: 1e9, ..Rates::default() };
    let plan = Plan::new(&program, &Assumptions { rates, ..Assumptions::default() }, true);
    let product = &plan.stages[0].ops[1];
    // Two by two tiles of output, of two products each.
    assert_near(product.rates_alone_s, 8.0 * PRODUCT_S / 0.5 / 110.0);
    assert_near(product.whole_tiles_s, 2.0 * PRODUCT_S / 0.5);
}

#[test]
fn an_activation_that_does_not_fit_is_added() {
    let cost = product("connector.0", Activation::GeluTanh);
    assert_eq!(cost.label, "connector.0 + gelu");
    assert_near(cost.sfpu_passes, 6.0 * 64.0);
    assert_near(cost.arithmetic_s, 2.0 * PRODUCT_S + 64.0 * PASS_S);
    assert_near(cost.whole_tiles_s, 2.0 * PRODUCT_S / 0.5);
    // The packer does ReLU.
    assert_near(product("connector.0", Activation::Relu).sfpu_passes, 6.0);
}

#[test]
fn weights_of_blocks_have_the_format_of_the_policy() {
    let cost = product("model.layers.3.mlp.up_proj", Activation::Identity);
    assert_eq!(cost.bank_bytes, [1152, 1152, 1152, 1088, 1088, 1088, 0, 0]);
    assert_near(cost.memory_s, 1088.0 / (414e9 / 8.0) + 64.0 / BANK);
}

#[test]
fn an_attention_by_hand() {
    let checkpoint = checkpoint(&[]);
    let mut b = ProgramBuilder::new(Version::N16, &checkpoint);
    b.stage(StageKind::Llm);
    let q = b.scratch("q", 64, 96);
    let [k, v] = ["k", "v"].map(|name| b.scratch(name, 96, 96));
    let out = b.scratch("out", 64, 96);
    let shape = AttentionShape {
        heads: 2,
        kv_heads: 2,
        head_dim: 48,
        scale: 1.0,
        causal: false,
        sequences: 1,
    };
    b.attention(q, k, v, shape, out);
    let cost = costs(&b.finish()).remove(0);
    assert_eq!(cost.label, "attention over 96 keys");
    // Two heads of two rows of tiles, each with three tiles of scores; a head is two tiles wide.
    assert_eq!((cost.cores, cost.tile_matmuls), (4, 4 * 3 * 4));
    // Queries, keys and values in, the result out.
    assert_eq!(cost.noc_bytes, (2 + 2 * 3 * 2 + 2) * 2048);
    // Exponential 18, softmax 5, and the division of two tiles by four instructions.
    let passes = 3.0 * 23.0 + 2.0 * 4.0;
    assert_near(cost.sfpu_passes, 4.0 * passes);
    assert_near(cost.arithmetic_s, 12.0 * PRODUCT_S + passes * PASS_S);
    assert_eq!(cost.bank_bytes, [0; 8]);
}

/// Every operation once, each in a program of its own but the last ones.
fn everything(kind: StageKind) -> Program {
    let checkpoint = checkpoint(&[
        ("w.weight", &[64, 64]),
        ("v.weight", &[64]),
        ("v.bias", &[64]),
        ("head.weight", &[32]),
        ("table.weight", &[1000, 64]),
    ]);
    let mut b = ProgramBuilder::new(Version::N16, &checkpoint);
    b.stage(kind);
    let matrix = b.matrix("w.weight", 64, 64).expect("it is there");
    let (gain, offset) = b.affine("v", 64).expect("they are there");
    let head = b.vector("head.weight", 32).expect("it is there");
    let table = b.matrix("table.weight", 1000, 64).expect("it is there");
    let row = b.import("row", 1, 64);
    let [cos, sin] = ["cos", "sin"].map(|name| b.constant(name, 64, 16, vec![0.0; 64 * 16]));
    let names = ["x", "a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let [x, a, bb, c, d, e, f, g, h, i] = names.map(|name| b.scratch(name, 64, 64));
    let pixels = b.input(Input::Pixels, 1, 3 * 28 * 28);
    let patches = b.scratch("patches", 4, 588);
    let (deep, flat) = (b.scratch("deep", 16, 256), b.scratch("flat", 16, 256));
    let ids = b.index(IndexInput::TokenIds, 64);
    let rows = b.index(IndexInput::ImageRows, 64);
    let identity = Activation::Identity;

    b.embed(table, ids, x);
    b.linear(x, (matrix, None), identity, a);
    b.linear_buffer(a, (matrix, row), identity, bb);
    b.layer_norm(bb, Some((gain, offset)), None, 1e-6, c);
    b.layer_norm(c, None, Some(Modulation { scale: row, shift: row }), 1e-6, d);
    b.rms_norm(d, gain, 1e-6, e);
    b.rms_norm(e, head, 1e-6, f);
    b.rope(f, cos, sin);
    let shape = AttentionShape {
        heads: 2,
        kv_heads: 2,
        head_dim: 32,
        scale: 1.0,
        causal: true,
        sequences: 1,
    };
    b.attention(f, f, f, shape, g);
    b.gather_rows(g, rows, h);
    b.scatter_rows(h, rows, i);
    b.scatter_add_rows(h, rows, i);
    let grid = PatchGrid { side: 28, patch: 14, channels: 3, order: PatchOrder::ChannelLast };
    b.patchify(pixels, grid, patches);
    b.space_to_depth(i, 8, deep);
    b.reshape(deep, flat);
    b.copy(x, a);
    b.copy_weight(matrix, bb);
    b.map(bb, Activation::Silu, c);
    b.silu_mul(c, a, d);
    b.add(d, e);
    b.add_weight(table, e);
    b.add_scaled(d, 0.25, e);
    b.tap("tap", e);
    b.finish()
}

#[test]
fn every_operation_has_its_cost() {
    let costs = costs(&everything(StageKind::Llm));
    let labels: Vec<&str> = costs.iter().map(|cost| cost.label.as_str()).collect();
    let tile = 2048;
    // Labels, bytes of DRAM, instructions for the four tiles of `[64, 64]`.
    let expected = [
        ("embed tokens", 64 * 128, 0.0),
        ("w", 4 * tile, 0.0),
        ("w", 4 * tile + 128, 4.0),
        ("v", 2 * 128, 4.0 * 11.0),
        ("modulated norm", 2 * 128, 4.0 * 11.0),
        ("v", 128, 4.0 * 10.0),
        ("head", 64, 4.0 * 10.0),
        // Tables of 64 rows and half a tile.
        ("rotary positions", 2 * 2 * tile, 4.0 * 5.5),
        // A row of tiles sees one tile of keys, the next two; two rows of results.
        ("attention over 64 keys", 0, 2.0 * (3.0 * 23.0 + 2.0 * 4.0)),
        ("gather rows", 0, 0.0),
        ("scatter rows", 0, 0.0),
        ("add to rows", 0, 4.0 * 5.6),
        ("cut patches", 3 * 28 * 28 * 2, 0.0),
        ("space to depth", 0, 0.0),
        ("reshape", 0, 0.0),
        ("copy", 0, 0.0),
        ("copy w", 4 * tile, 0.0),
        ("activation", 0, 4.0 * 40.0),
        ("silu x up", 0, 4.0 * 45.6),
        ("add", 0, 4.0 * 5.6),
        ("add table", 4 * tile, 4.0 * 5.6),
        ("Euler step", 0, 4.0 * 5.6),
    ];
    assert_eq!(labels, expected.map(|(label, ..)| label));
    for (cost, (label, bytes, passes)) in costs.iter().zip(expected) {
        assert_eq!(cost.bank_bytes.iter().sum::<u64>(), bytes, "{label}");
        assert!((cost.sfpu_passes - passes).abs() < 1e-9, "{label}: {}", cost.sfpu_passes);
        assert!(cost.total_s() > 0.0 && cost.total_s().is_finite(), "{label}");
        assert!(cost.rates_alone_s <= cost.whole_tiles_s + 1e-15, "{label}");
        assert!(cost.whole_tiles_s <= cost.total_s() + 1e-15, "{label}");
        assert!(cost.weight_bytes <= bytes, "{label}");
    }
    // What follows the activation works on what it has written.
    let joined = costs.iter().filter(|cost| cost.joined).map(|cost| cost.label.as_str());
    let expected =
        ["rotary positions", "activation", "silu x up", "add", "add table", "Euler step"];
    assert_eq!(joined.collect::<Vec<_>>(), expected);
}

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
