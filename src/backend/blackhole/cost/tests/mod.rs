//! Programs of small operations.

mod between_stages;
mod by_hand;
mod sums;

use super::op::OpCost;
use super::plan::{Assumptions, Plan};
use crate::backend::blackhole::numerics::DtypePolicy;
use crate::checkpoint::{Checkpoint, TensorSpec};
use crate::contract::Version;
use crate::program::{
    Activation, AttentionShape, IndexInput, Input, Modulation, PatchGrid, PatchOrder, Program,
    ProgramBuilder, StageKind,
};

/// Of a product of two tiles at HiFi2.
const PRODUCT_S: f64 = 65_536.0 / 2.7e12;

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
