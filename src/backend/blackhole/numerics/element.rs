//! What a matrix in memory consists of.

use half::bf16;

use super::bf16::round_to_bf16;
use super::block::{self, Block};
use super::tile::FaceRow;

/// bf16 or f32.
pub trait Element: Sealed + Copy + Default + Send + Sync + 'static {}

impl Element for bf16 {}
impl Element for f32 {}

/// What packing asks of an [`Element`].
pub trait Sealed: Sized {
    fn to_bf16(self) -> bf16;
    /// From the bits of an f32 that is also a bf16.
    fn from_f32_bits(bits: u32) -> Self;
    fn to_block<const MAGNITUDE: u32>(row: &FaceRow<Self>) -> Block;
}

impl Sealed for bf16 {
    #[inline(always)]
    fn to_bf16(self) -> bf16 {
        self
    }

    #[inline(always)]
    fn from_f32_bits(bits: u32) -> Self {
        Self::from_bits((bits >> 16) as u16)
    }

    #[inline(always)]
    fn to_block<const MAGNITUDE: u32>(row: &FaceRow<Self>) -> Block {
        block::of_bf16::<MAGNITUDE>(row)
    }
}

impl Sealed for f32 {
    #[inline(always)]
    fn to_bf16(self) -> bf16 {
        round_to_bf16(self)
    }

    #[inline(always)]
    fn from_f32_bits(bits: u32) -> Self {
        Self::from_bits(bits)
    }

    #[inline(always)]
    fn to_block<const MAGNITUDE: u32>(row: &FaceRow<Self>) -> Block {
        block::of_f32::<MAGNITUDE>(row)
    }
}
