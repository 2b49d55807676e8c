//! Weights in the arena: streams of columns of tiles for products, and vectors.
//!
//! The columns of tiles of a matrix are dealt out to as many streams as there are columns, or cores if those are fewer. A
//! stream is read by the core of its number, or by several that make different rows of the same columns; and again in every
//! program that multiplies by the matrix.

use std::collections::HashMap;

use super::geometry::CORES;
use crate::backend::blackhole::arena::{
    ALIGNMENT, ArenaError, ArenaPlan, Blob, HoistRules, Packet, PartSpec, PlannedPart, Shard,
    StreamSpec, weight_values,
};
use crate::backend::blackhole::grid::BANKS;
use crate::backend::blackhole::numerics::{DtypePolicy, tile};
use crate::checkpoint::Checkpoint;
use crate::program::{Op, Program, StageKind, WeightId};

/// Where programs find the weights.
pub struct Weights {
    pub arena: ArenaPlan,
    pub policy: DtypePolicy,
    products: HashMap<(StageKind, WeightId), Streams>,
    /// Numbers of blobs.
    vectors: HashMap<WeightId, usize>,
}

/// Streams of a matrix that lie one after the other in the part of their stage: stream `s` of `count` has the columns of tiles
/// `s`, `s + count` and so on.
#[derive(Clone, Copy)]
struct Streams {
    first: usize,
    count: usize,
}

/// The streams of a matrix for the products of a stage.
#[derive(Clone, Copy)]
pub struct ProductWeights<'a> {
    part: &'a PlannedPart,
    streams: Streams,
}

/// A vector in a bank of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vector {
    pub bank: u32,
    pub offset: u32,
    pub bytes: u32,
}

impl Weights {
    pub fn plan(
        program: &Program,
        checkpoint: &Checkpoint,
        policy: DtypePolicy,
    ) -> Result<Self, ArenaError> {
        let (parts, products) = product_streams(program);
        let (blobs, vectors) = vector_blobs(program, checkpoint)?;
        // What is computed at load is in no request program, and a trace has no part that is read in every step.
        let rules = HoistRules::default();
        let arena = ArenaPlan::new(&program.weights, policy, &parts, blobs, &rules)?;
        Ok(Self { arena, policy, products, vectors })
    }

    /// The streams of a matrix that a product of such a stage multiplies by; `None` if there is no such product.
    pub fn of_product(&self, stage: StageKind, weight: WeightId) -> Option<ProductWeights<'_>> {
        let streams = *self.products.get(&(stage, weight))?;
        Some(ProductWeights { part: self.arena.part(stage.name())?, streams })
    }

    /// Where a bias or a weight of a norm lies; `None` if the program has no such vector.
    pub fn vector(&self, weight: WeightId) -> Option<Vector> {
        let blob = &self.arena.blobs()[*self.vectors.get(&weight)?];
        let (bank, offset) = (u32::from(blob.bank), blob.offset as u32);
        Some(Vector { bank, offset, bytes: blob.bytes.len() as u32 })
    }
}

impl<'a> ProductWeights<'a> {
    pub fn streams(self) -> usize {
        self.streams.count
    }

    /// The packets of a stream, in the order of its tiles.
    pub fn packets(self, stream: usize) -> impl Iterator<Item = &'a Packet> {
        self.part.stream_packets(self.streams.first + stream)
    }
}

/// A part for every kind of stage, and where each matrix lies in it.
fn product_streams(program: &Program) -> (Vec<PartSpec>, HashMap<(StageKind, WeightId), Streams>) {
    let mut parts: Vec<PartSpec> = Vec::new();
    let mut products = HashMap::new();
    // Banks get streams in turn, in the order of their use.
    let (mut order, mut bank) = (0, 0);
    for stage in &program.stages {
        for op in &stage.ops {
            let (Op::Linear { weight, .. } | Op::LinearBuffer { weight, .. }) = op else {
                continue;
            };
            let key = (stage.kind, *weight);
            if products.contains_key(&key) {
                continue;
            }
            let part = match parts.iter().position(|part| part.name == stage.kind.name()) {
                Some(known) => known,
                None => {
                    let name = stage.kind.name().to_owned();
                    parts.push(PartSpec { name, short_last: true, streams: Vec::new() });
                    parts.len() - 1
                }
            };
            let columns = program.weights[weight.0].outputs().div_ceil(tile::SIDE);
            let streams = Streams { first: parts[part].streams.len(), count: columns.min(CORES) };
            for stream in 0..streams.count {
                let shard = |column_tile| (order, Shard { weight: *weight, column_tile });
                parts[part].streams.push(StreamSpec {
                    consumer: stream as u32,
                    bank,
                    shards: (stream..columns).step_by(streams.count).map(shard).collect(),
                });
                bank = (bank + 1) % BANKS;
            }
            products.insert(key, streams);
            order += 1;
        }
    }
    (parts, products)
}

/// The vectors that an instruction reads.
fn vectors_of(op: &Op) -> Vec<WeightId> {
    match op {
        Op::Linear { bias: Some(bias), .. } => vec![*bias],
        Op::LayerNorm { affine: Some((weight, bias)), .. } => vec![*weight, *bias],
        Op::RmsNorm { weight, .. } => vec![*weight],
        _ => Vec::new(),
    }
}

fn vector_blobs(
    program: &Program,
    checkpoint: &Checkpoint,
) -> Result<(Vec<Blob>, HashMap<WeightId, usize>), ArenaError> {
    let (mut blobs, mut vectors) = (Vec::new(), HashMap::new());
    let ops = program.stages.iter().flat_map(|stage| &stage.ops);
    for weight in ops.flat_map(vectors_of) {
        if vectors.contains_key(&weight) {
            continue;
        }
        let spec = &program.weights[weight.0];
        let values = weight_values(checkpoint, spec)?;
        let mut bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
        let name = format!("vector {} of '{}'", weight.0, spec.tensor);
        vectors.insert(weight, blobs.len());
        let bank = (blobs.len() % usize::from(BANKS)) as u8;
        blobs.push(Blob { name, bank, bytes });
    }
    Ok((blobs, vectors))
}
