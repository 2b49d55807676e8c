//! Which numbers a program is computed with.

use std::fmt;

use half::bf16;

use super::attention::attention;
use super::card::{self, CardNumerics, Storage};
use super::linear::linear;
use super::mat::{Bias, Mat, MatMut, WeightBlock};
use super::norm::{Scaling, layer_norm, rms_norm};
use crate::program::{Activation, AttentionShape, Program};

/// The numbers of every request; what no request changes is always computed in f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Numerics {
    /// f32 throughout, on the checkpoint's own weights: what others are compared with.
    #[default]
    F32,
    /// Those of the card.
    Card(CardNumerics),
}

impl fmt::Display for Numerics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Numerics::F32 => f.write_str("f32"),
            Numerics::Card(numerics) => write!(f, "card numerics: {numerics}"),
        }
    }
}

/// The instructions that sum up; all others compute in f32 either way.
impl Numerics {
    pub(super) fn storage(&self, program: &Program) -> Vec<Storage> {
        match self {
            Numerics::F32 => vec![Storage::F32; program.buffers.len()],
            Numerics::Card(_) => card::storage(program),
        }
    }

    pub(super) fn linear(
        &self,
        x: Mat<'_>,
        weight: WeightBlock<'_>,
        bias: Bias<'_>,
        activation: Activation,
        out: MatMut<'_>,
    ) {
        match self {
            Numerics::F32 => linear(x, weight, bias, activation, out),
            Numerics::Card(numerics) => card::linear(x, weight, bias, activation, numerics, out),
        }
    }

    pub(super) fn layer_norm(&self, x: Mat<'_>, scaling: Scaling<'_>, eps: f32, out: MatMut<'_>) {
        match self {
            Numerics::F32 => layer_norm(x, scaling, eps, out),
            Numerics::Card(_) => card::layer_norm(x, scaling, eps, out),
        }
    }

    pub(super) fn rms_norm(&self, x: Mat<'_>, weight: &[bf16], eps: f32, out: MatMut<'_>) {
        match self {
            Numerics::F32 => rms_norm(x, weight, eps, out),
            Numerics::Card(_) => card::rms_norm(x, weight, eps, out),
        }
    }

    pub(super) fn attention(
        &self,
        q: Mat<'_>,
        k: Mat<'_>,
        v: Mat<'_>,
        shape: &AttentionShape,
        out: MatMut<'_>,
    ) {
        match self {
            Numerics::F32 => attention(q, k, v, shape, out),
            Numerics::Card(numerics) => card::attention(q, k, v, shape, numerics, out),
        }
    }
}
