//! What a network takes of the card's DRAM.

use std::collections::HashSet;

use crate::backend::blackhole::arena::BANK_BYTES;
use crate::backend::blackhole::cost::BANKS;
use crate::backend::blackhole::numerics::tile::SIDE;
use crate::backend::blackhole::numerics::{DtypePolicy, TileFormat};
use crate::program::{BufferSource, Op, Program, WeightId};

/// DRAM of a card, bytes.
pub const CARD_BYTES: u64 = BANK_BYTES * BANKS as u64;

const VALUE_BYTES: usize = 2;

/// Bytes of the weights that a request reads, each once, and of the tables that are made before it.
pub fn bytes(request: &Program, policy: DtypePolicy) -> u64 {
    let mut in_tiles: HashSet<WeightId> = HashSet::new();
    let mut in_rows: HashSet<WeightId> = HashSet::new();
    for op in request.stages.iter().flat_map(|stage| &stage.ops) {
        match op {
            Op::Linear { weight, .. } | Op::LinearBuffer { weight, .. } => in_tiles.insert(*weight),
            Op::Embed { table, .. } => in_rows.insert(*table),
            _ => false,
        };
    }
    let weights = request.weights.iter().enumerate().map(|(number, spec)| {
        let id = WeightId(number);
        if in_tiles.contains(&id) {
            matrix(policy.format(&spec.tensor), spec.rows, spec.cols)
        } else if in_rows.contains(&id) {
            (spec.rows * spec.cols * VALUE_BYTES) as u64
        } else {
            values(spec.rows, spec.cols)
        }
    });
    let tables = request.buffers.iter().filter_map(|buffer| match buffer.source {
        BufferSource::Constant(_) | BufferSource::Import(_) => {
            Some(values(buffer.rows, buffer.cols))
        }
        BufferSource::Scratch | BufferSource::Input(_) => None,
    });
    weights.sum::<u64>() + tables.sum::<u64>()
}

/// bf16: whole tiles, or a vector in pieces of 32 values.
fn values(rows: usize, cols: usize) -> u64 {
    if rows == 1 {
        (cols.next_multiple_of(SIDE) * VALUE_BYTES) as u64
    } else {
        matrix(TileFormat::Bf16, rows, cols)
    }
}

/// Whole tiles.
fn matrix(format: TileFormat, rows: usize, cols: usize) -> u64 {
    (rows.div_ceil(SIDE) * cols.div_ceil(SIDE) * format.tile_bytes()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkpoint::{Checkpoint, TensorSpec};
    use crate::contract::Version;
    use crate::program::{Activation, IndexInput, ProgramBuilder, StageKind};

    /// A matrix that is read twice lies there once; a table of 1000 rows is no tiles.
    #[test]
    fn every_weight_lies_on_the_card_once() {
        const MATRIX: &str = "action_head.model.transformer_blocks.0.ff.weight";
        let spec = |(name, shape): (&str, [usize; 2])| TensorSpec {
            name: name.to_owned(),
            shape: shape.to_vec(),
            used: true,
        };
        let tensors = [(MATRIX, [64, 64]), ("table", [1000, 64])].map(spec);
        let checkpoint = Checkpoint::of_shapes("shapes", &tensors).expect("memory");
        let mut b = ProgramBuilder::new(Version::N16, &checkpoint);
        b.stage(StageKind::Llm);
        let weight = b.matrix(MATRIX, 64, 64).expect("it is there");
        let table = b.matrix("table", 1000, 64).expect("it is there");
        let ids = b.index(IndexInput::TokenIds, 32);
        let [x, y] = ["x", "y"].map(|name| b.scratch(name, 32, 64));
        b.import("time", 1, 40);
        b.embed(table, ids, x);
        b.linear(x, (weight, None), Activation::Identity, y);
        b.linear(y, (weight, None), Activation::Identity, x);
        let program = b.finish();
        let besides = 1000 * 64 * 2 + 64 * 2;
        assert_eq!(bytes(&program, DtypePolicy::Bf16), besides + 4 * 2048);
        assert_eq!(bytes(&program, DtypePolicy::MixedDit), besides + 4 * 1088);
    }
}
