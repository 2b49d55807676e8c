//! Programs with the numbers of the card: what a Blackhole would answer, known without one.
//!
//! | what | how |
//! |---|---|
//! | buffers | bf16, rounded to nearest even when they are written; f32 where instructions add in place ([`storage`]) |
//! | weights of products | bf16, or what is left of them in bfp8_b tiles `[inputs, outputs]` ([`dequantised`]) |
//! | operands of products | bf16, of which the matrix engine takes as many bits as its fidelity says ([`MathFidelity`]) |
//! | sums of products | f32, or bf16 that is rounded after every tile of 32 inputs ([`Accumulation`]) |
//! | norms | f32, sum and sum of squares in one pass over pieces of 32 columns ([`Moments`]) |
//! | softmax | over whole rows: scores and weights are bf16, their sum f32 ([`attend`]) |
//! | everything else | f32 on stored values |
//!
//! The order of every sum is fixed and stands at its function, so that another implementation can be held to the same bits.

mod attention;
mod linear;
mod moments;
mod norm;
mod rounding;
mod storage;
#[cfg(test)]
mod testing;
mod weight_bytes;
mod weights;

pub use attention::attend;
pub(super) use attention::attention;
pub use linear::linear;
pub use moments::{Moments, PIECE};
pub use norm::{layer_norm, rms_norm};
pub use rounding::{round, rounded};
pub use storage::{Storage, storage};
pub use weight_bytes::{WeightBytes, weight_bytes};
pub use weights::{dequantised, factors, is_changed};

use std::fmt;

use crate::backend::blackhole::numerics::{Accumulation, DtypePolicy, MathFidelity};

/// What the card is told about numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CardNumerics {
    /// Formats of the weights.
    pub policy: DtypePolicy,
    /// Bits of the operands of products.
    pub fidelity: MathFidelity,
    /// What the sums of products are kept in.
    pub accumulation: Accumulation,
}

impl fmt::Display for CardNumerics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, fidelity, accumulation } = self;
        write!(f, "{}, {}, {} sums", policy.name(), fidelity.name(), accumulation.name())
    }
}
