//! Time and memory to pack all matrices of N1.6's DiT, 1.1 G weights, for the card.
//!
//! `benches/reference/ttnn_pack.py` does the same with the wheel. Both draw the same weights and print the CRC-32 of the
//! first matrix, so that a run of both compares bytes too. 256 MiB of weights are used again and again: all of them next to
//! all tiles would not fit in the memory that this may take.

use std::time::Instant;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gr00t_blackhole::backend::blackhole::numerics::{MatrixView, TileFormat, pack_matrix};
use half::bf16;

/// `[out, in]` and how many there are: attention's q and out, and k and v of self-attention; k and v of
/// cross-attention; the two of the feed-forward; AdaLN.
const MATRICES: [([usize; 2], usize); 5] = [
    ([1536, 1536], 96),
    ([1536, 2048], 32),
    ([6144, 1536], 32),
    ([1536, 6144], 32),
    ([3072, 1536], 32),
];

const DRAWN: usize = 128 << 20;

/// Any sign and fraction, exponents as those of weights.
fn drawn(index: usize) -> bf16 {
    let mixed = (index as u32).wrapping_mul(2_654_435_761);
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(2_246_822_519);
    let exponent = 115 + (mixed >> 8 & 7);
    bf16::from_bits((mixed >> 31 << 15 | exponent << 7 | mixed >> 24 & 0x7f) as u16)
}

/// Every matrix with the weights before it, modulo what is drawn.
fn matrices(values: &[bf16]) -> impl Iterator<Item = MatrixView<'_, bf16>> {
    let shapes = MATRICES.iter().flat_map(|(shape, count)| std::iter::repeat_n(*shape, *count));
    shapes.scan(0, |start, [rows, cols]| {
        let len = rows * cols;
        if *start + len > values.len() {
            *start = 0;
        }
        let matrix =
            MatrixView::new(&values[*start..], rows, cols, cols).expect("there are enough");
        *start += len;
        Some(matrix)
    })
}

fn pack_all<'a>(
    matrices: impl Iterator<Item = MatrixView<'a, bf16>>,
    format: TileFormat,
    mut target: &mut [u8],
) {
    for matrix in matrices {
        let bytes = format.matrix_bytes(matrix.rows(), matrix.cols()).expect("not too large");
        let (packed, rest) = target.split_at_mut(bytes);
        pack_matrix(matrix, format, packed, &|_, _| ()).expect("sizes are right");
        target = rest;
    }
}

fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix("VmHWM:")?.trim().to_owned()))
}

fn dit(criterion: &mut Criterion) {
    let values: Vec<bf16> = (0..DRAWN).map(drawn).collect();
    let weights: usize = MATRICES.iter().map(|([rows, cols], count)| rows * cols * count).sum();
    let mut group = criterion.benchmark_group("pack_dit");
    group.sample_size(10);
    group.throughput(Throughput::Elements(weights as u64));
    for format in [TileFormat::Bfp4B, TileFormat::Bfp8B] {
        let mut target = vec![0; weights / 1024 * format.tile_bytes()];
        let start = Instant::now();
        pack_all(matrices(&values), format, &mut target);
        let first = start.elapsed();
        let [rows, cols] = MATRICES[0].0;
        let checksum = crc32fast::hash(&target[..rows * cols / 1024 * format.tile_bytes()]);
        let name = format.name();
        println!("{name}: {first:.3?} with the pages of the target, CRC-32 {checksum:08x}");
        group.bench_function(format!("{name} as stored"), |bencher| {
            bencher.iter(|| pack_all(matrices(&values), format, &mut target));
        });
        group.bench_function(format!("{name} transposed"), |bencher| {
            let transposed = || matrices(&values).map(MatrixView::transposed);
            bencher.iter(|| pack_all(transposed(), format, &mut target));
        });
        if let Some(memory) = peak_memory() {
            println!("{name}: {memory} at most");
        }
    }
    group.finish();
}

criterion_group!(benches, dit);
criterion_main!(benches);
