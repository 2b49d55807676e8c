//! The instructions.

use super::{IndexId, View, WeightId};

/// A function applied to every element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    Identity,
    Relu,
    /// `x / (1 + e^-x)`
    Silu,
    /// `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`
    GeluTanh,
    /// `0.5 x (1 + erf(x / sqrt 2))`
    GeluErf,
}

/// Order of the values within a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatchOrder {
    /// Row, column, channel: channel fastest.
    ChannelLast,
    /// Channel, row, column: column fastest, as a convolution kernel is stored.
    ChannelFirst,
}

/// Scale and shift of an adaptive layer norm: `norm(x) * (1 + scale) + shift`, each `[1, cols]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Modulation {
    pub scale: View,
    pub shift: View,
}

/// The parts of an attention that the shapes of its operands do not tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionShape {
    /// Query heads; the columns of `q` are `heads * head_dim`.
    pub heads: usize,
    /// Key and value heads; query head `n` uses `n / (heads / kv_heads)`.
    pub kv_heads: usize,
    pub head_dim: usize,
    /// Factor on the products of queries and keys.
    pub scale: f32,
    /// A row sees no key after its own. The queries are the last rows of the sequence when there are fewer of them
    /// than keys.
    pub causal: bool,
    /// The rows are this many sequences of equal length, one after the other, that do not see each other.
    pub sequences: usize,
}

/// How a square picture is cut into patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PatchGrid {
    /// Side of the picture in pixels.
    pub side: usize,
    /// Side of a patch in pixels.
    pub patch: usize,
    pub channels: usize,
    pub order: PatchOrder,
}

/// One instruction. Operands are views; `out` never overlaps an operand unless the text says "in place".
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// `out = activation(x W^T + bias)`; `bias` is a vector of the checkpoint.
    Linear { x: View, weight: WeightId, bias: Option<WeightId>, activation: Activation, out: View },
    /// `out = activation(x W^T + bias)` with a `[1, cols]` bias that is a buffer.
    LinearBuffer { x: View, weight: WeightId, bias: View, activation: Activation, out: View },
    /// `out = (x - mean) / sqrt(var + eps)` per row (population variance), times `weight` plus `bias`, or modulated.
    LayerNorm {
        x: View,
        affine: Option<(WeightId, WeightId)>,
        modulation: Option<Modulation>,
        eps: f32,
        out: View,
    },
    /// `out = weight * x / sqrt(mean(x^2) + eps)` over groups of `weight`'s width: whole rows, or the heads in a row.
    RmsNorm { x: View, weight: WeightId, eps: f32, out: View },
    /// Rotates the halves of each head, in place: `(a, b) -> (a cos - b sin, b cos + a sin)`.
    /// `cos` and `sin` are `[rows, head_dim / 2]`.
    Rope { x: View, cos: View, sin: View },
    /// `out = softmax(scale q k^T) v`, head by head.
    Attention { q: View, k: View, v: View, shape: AttentionShape, out: View },
    /// `out[i] = table[ids[i]]`
    Embed { table: WeightId, ids: IndexId, out: View },
    /// `out[i] = x[rows[i]]`
    GatherRows { x: View, rows: IndexId, out: View },
    /// `out[rows[i]] = x[i]`, the other rows of `out` stay.
    ScatterRows { x: View, rows: IndexId, out: View },
    /// `out[rows[i]] += x[i]`, in place.
    ScatterAddRows { x: View, rows: IndexId, out: View },
    /// `out = x`, where both hold the same number of values, read row by row.
    Reshape { x: View, out: View },
    /// `out = x`
    Copy { x: View, out: View },
    /// `out = weight`
    CopyWeight { weight: WeightId, out: View },
    /// `out += x`, in place; a view `x` of fewer rows is repeated.
    Add { x: View, out: View },
    /// `out += weight`, in place; the rows of the weight from 0 on.
    AddWeight { weight: WeightId, out: View },
    /// `out += factor * x`, in place: one Euler step.
    AddScaled { x: View, factor: f32, out: View },
    /// `out = activation(x)`
    Map { x: View, activation: Activation, out: View },
    /// `out = silu(gate) * up`
    SiluMul { gate: View, up: View, out: View },
    /// Pictures `[images, channels * side * side]` to patches `[images * grid^2, patch^2 * channels]`:
    /// grid cells in raster order.
    Patchify { x: View, grid: PatchGrid, out: View },
    /// 2x2 neighbours on a `side` x `side` grid become one row: `[images * side^2, c]` to
    /// `[images * (side/2)^2, 4 c]` with column `4 c + 2 dy + dx`.
    SpaceToDepth { x: View, side: usize, out: View },
    /// Hands a view to whoever listens; computes nothing.
    Tap { x: View, name: String },
}

impl Op {
    /// The view that the instruction writes.
    pub fn written(&self) -> Option<View> {
        match self {
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
            Op::Rope { x, .. } => Some(*x),
            Op::Tap { .. } => None,
        }
    }

    /// The views that it reads, without the one that it changes in place.
    pub fn reads(&self) -> Vec<View> {
        match self {
            Op::Linear { x, .. }
            | Op::RmsNorm { x, .. }
            | Op::GatherRows { x, .. }
            | Op::ScatterRows { x, .. }
            | Op::ScatterAddRows { x, .. }
            | Op::Reshape { x, .. }
            | Op::Copy { x, .. }
            | Op::Add { x, .. }
            | Op::AddScaled { x, .. }
            | Op::Map { x, .. }
            | Op::Patchify { x, .. }
            | Op::SpaceToDepth { x, .. }
            | Op::Tap { x, .. } => vec![*x],
            Op::LinearBuffer { x, bias, .. } => vec![*x, *bias],
            Op::LayerNorm { x, modulation: None, .. } => vec![*x],
            Op::LayerNorm { x, modulation: Some(Modulation { scale, shift }), .. } => {
                vec![*x, *scale, *shift]
            }
            Op::Rope { cos, sin, .. } => vec![*cos, *sin],
            Op::Attention { q, k, v, .. } => vec![*q, *k, *v],
            Op::SiluMul { gate, up, .. } => vec![*gate, *up],
            Op::Embed { .. } | Op::CopyWeight { .. } | Op::AddWeight { .. } => vec![],
        }
    }

    /// Whether what stood in the view before stays in part, or is part of what stands there afterwards.
    pub fn keeps_old_values(&self) -> bool {
        matches!(
            self,
            Op::Rope { .. }
                | Op::ScatterRows { .. }
                | Op::ScatterAddRows { .. }
                | Op::Add { .. }
                | Op::AddWeight { .. }
                | Op::AddScaled { .. }
        )
    }
}
