//! Weights that are read once and not in every Euler step.
//!
//! The serving documents stream two things in every step that no step changes: the linear layers of AdaLN, which depend
//! on nothing but the timestep and run at load here, and keys and values of the cross blocks, which run once a request.

use crate::backend::blackhole::numerics::DtypePolicy;
use crate::program::{Op, Program, StageKind, WeightSpec};

/// Part of the names of the DiT's blocks.
const DIT_BLOCKS: &str = ".model.transformer_blocks.";

/// Bytes that reading them in every step would add to a request.
pub fn bytes(prepare: &Program, request: &Program, policy: DtypePolicy) -> u64 {
    // The prepare program has a row for every step.
    let at_load = products(prepare, |_| true);
    let steps = at_load.iter().map(|(_, rows)| *rows).max().unwrap_or(1) as u64;
    let size = |spec: &WeightSpec| {
        let bytes = policy.format(&spec.tensor).matrix_bytes(spec.rows, spec.cols);
        bytes.unwrap_or_default() as u64
    };
    let once_a_request = products(request, |kind| kind == StageKind::Adapter);
    let cross = once_a_request.iter().filter(|(spec, _)| spec.tensor.contains(DIT_BLOCKS));
    let load_bytes: u64 = at_load.iter().map(|(spec, _)| size(spec)).sum();
    let cross_bytes: u64 = cross.map(|(spec, _)| size(spec)).sum();
    steps * load_bytes + (steps - 1) * cross_bytes
}

/// Matrices that rows are multiplied by, and how many rows.
fn products(program: &Program, stage: impl Fn(StageKind) -> bool) -> Vec<(&WeightSpec, usize)> {
    let stages = program.stages.iter().filter(|of| stage(of.kind));
    let products = stages.flat_map(|stage| &stage.ops).filter_map(|op| match op {
        Op::Linear { weight, out, .. } | Op::LinearBuffer { weight, out, .. } => {
            Some((&program.weights[weight.0], out.rows))
        }
        _ => None,
    });
    products.collect()
}
