//! What an operation reads and writes.

use crate::program::{Op, View};

/// Views that an operation reads, those of its modulation and bias included.
pub fn reads(op: &Op) -> Vec<View> {
    match op {
        Op::Linear { x, .. }
        | Op::RmsNorm { x, .. }
        | Op::GatherRows { x, .. }
        | Op::ScatterRows { x, .. }
        | Op::Reshape { x, .. }
        | Op::Copy { x, .. }
        | Op::Map { x, .. }
        | Op::Patchify { x, .. }
        | Op::SpaceToDepth { x, .. }
        | Op::Tap { x, .. } => vec![*x],
        Op::LinearBuffer { x, bias, .. } => vec![*x, *bias],
        Op::LayerNorm { x, modulation, .. } => {
            let modulation = modulation.iter().flat_map(|of| [of.scale, of.shift]);
            std::iter::once(*x).chain(modulation).collect()
        }
        Op::Rope { x, cos, sin } => vec![*x, *cos, *sin],
        Op::Attention { q, k, v, .. } => vec![*q, *k, *v],
        Op::Embed { .. } | Op::CopyWeight { .. } => Vec::new(),
        Op::Add { x, out } | Op::AddScaled { x, out, .. } | Op::ScatterAddRows { x, out, .. } => {
            vec![*x, *out]
        }
        Op::AddWeight { out, .. } => vec![*out],
        Op::SiluMul { gate, up, .. } => vec![*gate, *up],
    }
}

/// The view that an operation writes.
pub fn written(op: &Op) -> Option<View> {
    match op {
        Op::Rope { x, .. } => Some(*x),
        Op::Tap { .. } => None,
        Op::Linear { out, .. }
        | Op::LinearBuffer { out, .. }
        | Op::LayerNorm { out, .. }
        | Op::RmsNorm { out, .. }
        | Op::Attention { out, .. }
        | Op::Embed { out, .. }
        | Op::GatherRows { out, .. }
        | Op::ScatterRows { out, .. }
        | Op::ScatterAddRows { out, .. }
        | Op::Reshape { out, .. }
        | Op::Copy { out, .. }
        | Op::CopyWeight { out, .. }
        | Op::Add { out, .. }
        | Op::AddWeight { out, .. }
        | Op::AddScaled { out, .. }
        | Op::Map { out, .. }
        | Op::SiluMul { out, .. }
        | Op::Patchify { out, .. }
        | Op::SpaceToDepth { out, .. } => Some(*out),
    }
}
