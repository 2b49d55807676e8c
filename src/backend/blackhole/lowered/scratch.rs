//! Working memory of the kernels in L1: how much of it each instruction takes.
//!
//! `kernels/compute/scratch.h` has the same sizes, and refuses what it has too little of.

use super::{BlockFormat, Instruction, PACKET_BYTES, RowMotion, Streams};
use crate::backend::blackhole::numerics::tile::SIDE;

/// Name of the region.
pub const SCRATCH: &str = "scratch";

const BF16_TILE: u32 = BlockFormat::Bf16.tile_bytes();
const F32_TILE: u32 = BlockFormat::F32.tile_bytes();

/// Of everything that compute does.
pub const COMPUTE_SCRATCH: u32 = 2 * BF16_TILE + F32_TILE;
/// Of norms: means and factors, gain, shift.
pub const NORM_SCRATCH: u32 = COMPUTE_SCRATCH + F32_TILE + 2 * BF16_TILE;
const ROPE_SCRATCH: u32 = COMPUTE_SCRATCH + 2 * F32_TILE;
const ATTENTION_SCRATCH: u32 = COMPUTE_SCRATCH + BF16_TILE;
const ADD_ROWS_SCRATCH: u32 = COMPUTE_SCRATCH + 2 * F32_TILE;
/// Rows of tiles of a product whose sums need no place in L1.
const DEST_TILES: u32 = 8;

/// Of a product with so many rows of tiles.
pub const fn matmul_scratch(row_tiles: u32, x_format: BlockFormat) -> u32 {
    let sums = if row_tiles > DEST_TILES { row_tiles * F32_TILE } else { 0 };
    let rounded = match x_format {
        BlockFormat::Bf16 => 0,
        BlockFormat::F32 => DEST_TILES * BF16_TILE,
    };
    COMPUTE_SCRATCH + sums + rounded
}

impl Instruction {
    /// Bytes of scratch memory that this instruction takes.
    pub fn scratch_bytes(&self) -> u32 {
        match *self {
            Self::Wait { .. }
            | Self::Signal { .. }
            | Self::SignalAll { .. }
            | Self::ReadTiles { .. }
            | Self::WriteTiles { .. }
            | Self::ReadArena { .. }
            | Self::ReadRows { .. }
            | Self::Send { .. }
            | Self::Multicast { .. }
            | Self::Zero { .. }
            | Self::ReturnCredits { .. }
            | Self::LoadPacket { .. } => 0,
            Self::StreamPacket { .. } => PACKET_BYTES,
            Self::Matmul { first_row, rows, x_format, .. } => {
                let side = SIDE as u32;
                matmul_scratch((first_row + rows).div_ceil(side) - first_row / side, x_format)
            }
            Self::Normalise { .. } | Self::LayerNorm { .. } | Self::RmsNorm { .. } => NORM_SCRATCH,
            Self::Rope { .. } => ROPE_SCRATCH,
            Self::Attention { .. } => ATTENTION_SCRATCH,
            Self::MoveRows { motion: RowMotion::ScatterAdd, .. } => ADD_ROWS_SCRATCH,
            Self::EndStream { .. }
            | Self::Moments { .. }
            | Self::Combine { .. }
            | Self::Accumulate { .. }
            | Self::CopyBlock { .. }
            | Self::Activate { .. }
            | Self::MoveRows { .. }
            | Self::Spread { .. }
            | Self::Regroup { .. } => COMPUTE_SCRATCH,
        }
    }
}

impl Streams {
    /// Bytes of scratch memory that the core needs: instructions take it one after the other.
    pub fn scratch_bytes(&self) -> u32 {
        let steps = self.0.iter().flatten();
        steps.map(|step| step.instruction.scratch_bytes()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../../../../kernels/compute/scratch.h");
    const ENGINE: &str = include_str!("../../../../kernels/compute/engine.h");

    /// What a header says that a constant is: a sum of products of numbers and of constants before it.
    fn constant(name: &str) -> u32 {
        let line = format!("constexpr uint32_t {name} = ");
        let found = [HEADER, ENGINE].into_iter().find_map(|header| header.split_once(&line));
        let (_, rest) = found.unwrap_or_else(|| panic!("no {name}"));
        let (value, _) = rest.split_once(';').expect("an end");
        value.split(" + ").map(|term| term.split(" * ").map(factor).product::<u32>()).sum()
    }

    fn factor(text: &str) -> u32 {
        match text {
            "lowered::tile_bytes(lowered::BF16)" => BF16_TILE,
            "lowered::tile_bytes(lowered::F32)" => F32_TILE,
            _ => text.parse().unwrap_or_else(|_| constant(text)),
        }
    }

    #[test]
    fn sizes_are_those_of_the_kernels() {
        let free = constant("FREE");
        assert_eq!(COMPUTE_SCRATCH, free);
        assert_eq!(NORM_SCRATCH, free + constant("NORM_BYTES"));
        assert_eq!(ROPE_SCRATCH, free + constant("ROPE_BYTES"));
        assert_eq!(ATTENTION_SCRATCH, free + constant("ATTENTION_BYTES"));
        assert_eq!(ADD_ROWS_SCRATCH, free + constant("ADD_ROWS_BYTES"));
        assert_eq!(DEST_TILES, constant("DEST_TILES"));
        let (sums, rounded) = (constant("SUMS_BYTES"), constant("ROUNDED_BYTES"));
        assert_eq!(matmul_scratch(8, BlockFormat::Bf16), free);
        assert_eq!(matmul_scratch(8, BlockFormat::F32), free + rounded);
        assert_eq!(matmul_scratch(9, BlockFormat::Bf16), free + 9 * sums);
        assert_eq!(matmul_scratch(9, BlockFormat::F32), free + 9 * sums + rounded);
    }

    /// As `kernels/README.md` has it.
    #[test]
    fn sizes_are_those_of_the_table() {
        const KIB: u32 = 1024;
        assert_eq!((COMPUTE_SCRATCH, NORM_SCRATCH), (8 * KIB, 16 * KIB));
        assert_eq!((ROPE_SCRATCH, ATTENTION_SCRATCH), (16 * KIB, 10 * KIB));
        assert_eq!(ADD_ROWS_SCRATCH, 16 * KIB);
        assert_eq!(matmul_scratch(10, BlockFormat::F32), (8 + 4 * 10 + 16) * KIB);
    }

    #[test]
    fn a_product_counts_the_rows_of_tiles_that_it_touches() {
        let product = |first_row, rows| Instruction::Matmul {
            x: 0,
            row_tiles: 20,
            first_row,
            rows,
            inputs: 32,
            columns: 32,
            weights: crate::backend::blackhole::numerics::TileFormat::Bf16,
            bias: None,
            vector_step: 0,
            activation: crate::program::Activation::Identity,
            out: 0,
            out_format: BlockFormat::Bf16,
            x_format: BlockFormat::Bf16,
        };
        let of = |first_row, rows| product(first_row, rows).scratch_bytes();
        assert_eq!(of(0, 8 * 32), COMPUTE_SCRATCH);
        assert_eq!(of(31, 7 * 32 + 1), COMPUTE_SCRATCH);
        assert_eq!(of(31, 8 * 32), COMPUTE_SCRATCH + 9 * F32_TILE);
        assert_eq!(of(64, 8 * 32), COMPUTE_SCRATCH);
    }
}
