//! Products with streamed weights.

use half::bf16;

use super::build::{Built, numbers, signal, wait};
use super::relay::{read, write};
use super::run;
use crate::backend::blackhole::grid::Core;
use crate::backend::blackhole::lowered::{BlockFormat, Engine, Instruction, PACKET_BYTES};
use crate::backend::blackhole::numerics::{
    Accumulation, MathFidelity, MatrixView, TileFormat, pack_matrix, unpack_matrix,
};
use crate::backend::cpu::card::{CardNumerics, linear};
use crate::backend::cpu::mat::{Bias, Mat, MatMut, WeightBlock};
use crate::program::{Activation, Orientation};

pub const READER: usize = 0;
pub const CONSUMER: usize = 1;
pub const READER_AT: Core = Core::new(0, 0);
pub const CONSUMER_AT: Core = Core::new(1, 0);

const ROWS: u32 = 40;
const INPUTS: u32 = 320;
const OUTPUTS: u32 = 72;
/// The columns of tiles of the weights: the second one begins in the middle of a packet, the third at the end of one.
const FORMATS: [TileFormat; 3] = [TileFormat::Bf16, TileFormat::Bfp8B, TileFormat::Bfp8B];
const PASSES: u32 = 2;
/// Number of the first pass.
const FIRST_PASS: u32 = 1;

/// One column of tiles.
struct Shard {
    first: usize,
    columns: usize,
    format: TileFormat,
}

fn shards() -> impl Iterator<Item = Shard> {
    FORMATS.into_iter().enumerate().map(|(index, format)| {
        let first = index * 32;
        Shard { first, columns: (OUTPUTS as usize - first).min(32), format }
    })
}

fn weights() -> Vec<bf16> {
    let values = numbers(2, (INPUTS * OUTPUTS) as usize);
    values.into_iter().map(bf16::from_f32).collect()
}

fn packed(shard: &Shard) -> Vec<u8> {
    let (weights, rows) = (weights(), INPUTS as usize);
    let view =
        MatrixView::new(&weights[shard.first..], rows, shard.columns, OUTPUTS as usize).unwrap();
    let mut target = vec![0; shard.format.matrix_bytes(rows, shard.columns).unwrap()];
    pack_matrix(view, shard.format, &mut target, &|_, _| {}).unwrap();
    target
}

/// The shards as packets, the last of which is only as long as it has to be.
fn packets() -> Vec<Vec<u8>> {
    let mut packets: Vec<Vec<u8>> = vec![Vec::new()];
    for shard in shards() {
        for tile in packed(&shard).chunks_exact(shard.format.tile_bytes()) {
            let packet = packets.last_mut().unwrap();
            if packet.len() + tile.len() > PACKET_BYTES as usize {
                packet.resize(PACKET_BYTES as usize, 0);
                packets.push(tile.to_vec());
            } else {
                packet.extend_from_slice(tile);
            }
        }
    }
    packets
}

/// Biases of passes 0, 1 and 2, one vector of 32 for each shard.
fn biases() -> Vec<bf16> {
    let values = numbers(3, 3 * 96);
    values.into_iter().map(bf16::from_f32).collect()
}

fn bias_bytes() -> Vec<u8> {
    biases().iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn activation(shard: usize) -> Activation {
    [Activation::Identity, Activation::GeluTanh, Activation::Relu][shard]
}

pub fn built(numerics: CardNumerics, out_format: BlockFormat) -> Built {
    let mut built = Built::new();
    built.numerics = numerics;
    built.core(READER_AT, &[("credit", 2)], &[]);
    built.reader(READER, 3);
    let x_bytes = 2 * 10 * 2048;
    let out_bytes = 2 * 3 * out_format.tile_bytes();
    built.core(
        CONSUMER_AT,
        &[("packets", 0), ("freed", 0), ("loaded", 0), ("done", 0)],
        &[
            ("ring", 2 * PACKET_BYTES),
            ("x", x_bytes),
            ("bias", bias_bytes().len() as u32),
            ("out", out_bytes),
        ],
    );
    built.ring(CONSUMER, "ring", 2);
    built.buffer("x", ROWS, INPUTS, BlockFormat::Bf16);
    built.buffer("out", ROWS, OUTPUTS, out_format);
    built.inputs.push(numbers(1, (ROWS * INPUTS) as usize));
    built.banks[5] = bias_bytes();
    let region = |built: &Built, name: &str| built.address(CONSUMER, name);
    let (x, bias, out) = (region(&built, "x"), region(&built, "bias"), region(&built, "out"));

    built.segment("products", FIRST_PASS, PASSES);
    let bytes = bias_bytes().len() as u32;
    let mut moves = vec![Instruction::ReadArena { bank: 5, offset: 0, bytes, address: bias }];
    moves.extend((0..2).map(|row| read([0, row * 10, 1, 10, 0, 2048, x + row * 2048, 2 * 2048])));
    moves.push(signal(CONSUMER_AT, 2));
    built.push(CONSUMER, Engine::Mover, 0, &moves);
    let tile = out_format.tile_bytes();
    let mut moves = vec![wait(3, 1)];
    moves.extend((0..2).map(|row| write([1, row * 3, 1, 3, 0, tile, out + row * tile, 2 * tile])));
    built.push(CONSUMER, Engine::Mover, 3, &moves);

    built.push(CONSUMER, Engine::Compute, 0, &[wait(2, 1)]);
    for (index, shard) in shards().enumerate() {
        let product = Instruction::Matmul {
            x,
            row_tiles: 2,
            first_row: 0,
            rows: ROWS,
            inputs: INPUTS,
            columns: shard.columns as u32,
            weights: shard.format,
            bias: Some(bias + 64 * index as u32),
            vector_step: 192,
            activation: activation(index),
            out: out + 2 * tile * index as u32,
            out_format,
            x_format: BlockFormat::Bf16,
        };
        built.push(CONSUMER, Engine::Compute, index as u32, &[product]);
    }
    built.push(CONSUMER, Engine::Compute, 3, &[Instruction::EndStream {}, signal(CONSUMER_AT, 3)]);

    for (number, packet) in (0..).zip(packets()) {
        let (offset, bytes) = (number * PACKET_BYTES, packet.len() as u32);
        let bytes = bytes.next_multiple_of(64);
        built.banks[3].extend(packet);
        let stream = Instruction::StreamPacket { offset, bytes, consumer: CONSUMER_AT, credit: 0 };
        built.push(READER, Engine::Mover, 0, &[stream]);
    }
    let end = built.banks[3].len().next_multiple_of(64);
    built.banks[3].resize(end, 0);
    let count = packets().len() as u32;
    let back = Instruction::ReturnCredits { reader: READER_AT, credit: 0, count };
    built.push(CONSUMER, Engine::Feeder, 0, &[back]);
    built
}

/// The same product in one piece, by the kernel of the CPU backend.
fn expected(numerics: &CardNumerics, x: &[f32]) -> Vec<f32> {
    let (rows, inputs, outputs) = (ROWS as usize, INPUTS as usize, OUTPUTS as usize);
    let mut out = vec![0.0; rows * outputs];
    let pass = (FIRST_PASS + PASSES - 1) as usize;
    for (index, shard) in shards().enumerate() {
        let mut weights = vec![bf16::ZERO; inputs * shard.columns];
        unpack_matrix(&packed(&shard), shard.format, inputs, shard.columns, &mut weights).unwrap();
        for weight in &mut weights {
            let bits = weight.to_bits() & numerics.fidelity.weight_mask();
            *weight = bf16::from_bits(bits);
        }
        let bias = &biases()[pass * 96 + index * 32..][..shard.columns];
        linear(
            Mat::new(x, rows, inputs, inputs),
            WeightBlock::new(&weights, inputs, shard.columns, Orientation::InOut),
            Bias::Bf16(bias),
            activation(index),
            numerics,
            MatMut::new(&mut out[shard.first..], rows, shard.columns, outputs),
        );
    }
    out
}

#[test]
fn products_have_the_bits_of_the_kernel() {
    for fidelity in [MathFidelity::LoFi, MathFidelity::HiFi2, MathFidelity::HiFi4] {
        for accumulation in [Accumulation::F32, Accumulation::Bf16] {
            let numerics = CardNumerics { fidelity, accumulation, ..CardNumerics::default() };
            let built = built(numerics, BlockFormat::F32);
            assert_eq!(run(&built), [expected(&numerics, &built.inputs[0])]);
        }
    }
}

#[test]
fn results_are_rounded_for_their_block() {
    let numerics = CardNumerics::default();
    let built = built(numerics, BlockFormat::Bf16);
    let expected = expected(&numerics, &built.inputs[0]);
    let rounded: Vec<f32> = expected.iter().map(|v| bf16::from_f32(*v).to_f32()).collect();
    assert_eq!(run(&built), [rounded]);
}

#[test]
fn three_packets_hold_the_three_shards() {
    let lengths: Vec<usize> = packets().iter().map(Vec::len).collect();
    assert_eq!(lengths, [16_384, 16_384, 9 * 1088]);
}
