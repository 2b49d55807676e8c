//! Small operations, counted by hand.

use super::super::op::{Bound, OpCost};
use super::super::plan::{Assumptions, Plan};
use super::super::rates::Rates;
use super::{PRODUCT_S, assert_near, checkpoint, costs, everything};
use crate::contract::Version;
use crate::program::{Activation, AttentionShape, ProgramBuilder, StageKind};

/// Of an instruction for all values of a tile.
const PASS_S: f64 = 32.0 / 1.35e9;
const HANDOVER_S: f64 = 0.28e-6;
/// Bytes a second of one bank.
const BANK: f64 = 464e9 / 8.0;

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
