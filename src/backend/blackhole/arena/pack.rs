//! The bytes of an arena.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Range;

use half::bf16;
use rayon::prelude::*;

use super::cut::Packet;
use super::plan::{ArenaPlan, PlannedPart, PlannedShard};
use super::{ArenaError, BANKS};
use crate::backend::blackhole::numerics::{MatrixView, pack_block, tile};
use crate::checkpoint::Checkpoint;
use crate::program::{Orientation, WeightId, WeightSpec};

/// Bytes that are packed at a time, about.
const BLOCK_BYTES: u64 = 8 << 20;

/// Bytes of each bank.
pub type BankBytes = [Vec<u8>; BANKS];

/// Something that lies in a bank, with the zeros up to whatever follows it.
pub struct Piece<'a> {
    bank: usize,
    bytes: u64,
    source: Source<'a>,
}

enum Source<'a> {
    Packet(&'a PlannedPart, &'a Packet),
    Blob(&'a [u8]),
}

/// A plan with the weights of a checkpoint.
pub struct Packing<'a> {
    /// All that lie in the arena.
    weights: HashMap<WeightId, Weight<'a>>,
    /// Together they are the banks. Those of a bank come in their order, all of them in that of their use: so each
    /// matrix is read once, and not again for every bank.
    pieces: Vec<Piece<'a>>,
}

/// A matrix of the checkpoint.
struct Weight<'a> {
    spec: &'a WeightSpec,
    values: &'a [bf16],
}

impl<'a> Packing<'a> {
    /// Looks up the weights that the arena holds.
    ///
    /// # Errors
    /// A tensor that is not there, is not bf16 or has too few values.
    pub fn new(plan: &'a ArenaPlan, checkpoint: &'a Checkpoint) -> Result<Self, ArenaError> {
        let mut weights = HashMap::new();
        let streams = plan.parts().iter().flat_map(|part| &part.streams);
        for shard in streams.flat_map(|stream| &stream.shards) {
            if let Entry::Vacant(place) = weights.entry(shard.weight) {
                let spec = &plan.weights[shard.weight.0];
                place.insert(Weight { spec, values: values(checkpoint, spec)? });
            }
        }
        Ok(Self { weights, pieces: pieces(plan) })
    }

    pub fn pieces(&self) -> &[Piece<'a>] {
        &self.pieces
    }

    /// Runs of pieces that are worth packing at a time.
    pub fn blocks(&self) -> impl Iterator<Item = &[Piece<'a>]> {
        let mut rest = self.pieces.as_slice();
        std::iter::from_fn(move || {
            let (mut count, mut bytes) = (0, 0);
            while count < rest.len() && (count == 0 || bytes + rest[count].bytes <= BLOCK_BYTES) {
                bytes += rest[count].bytes;
                count += 1;
            }
            let block;
            (block, rest) = rest.split_at(count);
            (count > 0).then_some(block)
        })
    }

    /// Packs some pieces, on all threads of the current rayon pool: each bank of `target` becomes what they are of it.
    pub fn pack(&self, pieces: &[Piece<'a>], target: &mut BankBytes) -> Result<(), ArenaError> {
        let mut lengths = [0; BANKS];
        pieces.iter().for_each(|piece| lengths[piece.bank] += piece.bytes as usize);
        for (bank, length) in target.iter_mut().zip(lengths) {
            bank.resize(length, 0);
        }
        let mut rest = target.each_mut().map(Vec::as_mut_slice);
        let mut jobs = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let rest = &mut rest[piece.bank];
            let (target, behind) = std::mem::take(rest).split_at_mut(piece.bytes as usize);
            jobs.push((&piece.source, target));
            *rest = behind;
        }
        jobs.into_par_iter().try_for_each(|(source, target)| match source {
            Source::Packet(part, packet) => self.pack_packet(part, packet, target),
            Source::Blob(bytes) => {
                let (blob, padding) = target.split_at_mut(bytes.len());
                blob.copy_from_slice(bytes);
                padding.fill(0);
                Ok(())
            }
        })
    }

    fn pack_packet(
        &self,
        part: &PlannedPart,
        packet: &Packet,
        target: &mut [u8],
    ) -> Result<(), ArenaError> {
        let (mut tiles, padding) = target.split_at_mut(packet.payload as usize);
        padding.fill(0);
        for run in &packet.runs {
            let shard = part.shard_of(packet, run.shard);
            let target;
            (target, tiles) = tiles.split_at_mut(run.tiles * shard.format.tile_bytes());
            let inputs = run.first * tile::SIDE..(run.first + run.tiles) * tile::SIDE;
            let block = self.weights[&shard.weight].block(shard, inputs)?;
            pack_block(block, shard.format, target)?;
        }
        Ok(())
    }
}

impl Weight<'_> {
    /// Some inputs of a shard, `[inputs, 32]`, less where the matrix ends.
    fn block(
        &self,
        shard: &PlannedShard,
        inputs: Range<usize>,
    ) -> Result<MatrixView<'_, bf16>, ArenaError> {
        let &WeightSpec { rows, cols, orientation, .. } = self.spec;
        let stored = MatrixView::new(self.values, rows, cols, cols)?;
        let matrix = match orientation {
            Orientation::OutIn => stored.transposed(),
            Orientation::InOut => stored,
        };
        let first = shard.column_tile * tile::SIDE;
        let outputs = first..(first + tile::SIDE).min(matrix.cols());
        Ok(matrix.block(inputs.start..inputs.end.min(matrix.rows()), outputs))
    }
}

/// The values of a weight in the checkpoint.
pub fn values<'a>(checkpoint: &'a Checkpoint, spec: &WeightSpec) -> Result<&'a [bf16], ArenaError> {
    let tensor = checkpoint.tensor(&spec.tensor)?.values;
    let first = spec.offset;
    let end = first.saturating_add(spec.rows.saturating_mul(spec.cols));
    tensor.get(first..end).ok_or_else(|| ArenaError::WeightValues {
        tensor: spec.tensor.clone(),
        first,
        end,
        found: tensor.len(),
    })
}

fn pieces(plan: &ArenaPlan) -> Vec<Piece<'_>> {
    // With the part and the instruction that they are first used by; blobs come behind all parts.
    let mut pieces: Vec<((usize, u32), Piece<'_>)> = Vec::new();
    for bank in 0..BANKS as u8 {
        let packets = plan.parts().iter().enumerate().flat_map(|(number, part)| {
            let packets = part.packets(bank).iter();
            packets.map(move |packet| {
                ((number, packet.order), packet.offset, Source::Packet(part, packet))
            })
        });
        let behind = (plan.parts().len(), 0);
        let blobs = plan.blobs().iter().filter(|blob| blob.bank == bank);
        let blobs = blobs.map(|blob| (behind, blob.offset, Source::Blob(&blob.bytes)));
        let mut placed = packets.chain(blobs).peekable();
        while let Some((first_use, offset, source)) = placed.next() {
            let next = placed.peek().map_or(plan.bank_bytes(bank), |(_, next, _)| *next);
            let piece = Piece { bank: usize::from(bank), bytes: next - offset, source };
            pieces.push((first_use, piece));
        }
    }
    pieces.sort_by_key(|(first_use, _)| *first_use);
    pieces.into_iter().map(|(_, piece)| piece).collect()
}
