//! Time and memory to pack N1.6's DiT, 1.1 G weights, into an arena file, to open it and to hand it over.
//!
//! The checkpoint is 2.2 GB of drawn weights in the folder for temporary files; `TMPDIR=/dev/shm` leaves the disk out.

use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gr00t_blackhole::backend::blackhole::arena::{
    Arena, ArenaPlan, HoistRules, PartSpec, STAGING_BYTES, Shard, StreamSpec,
};
use gr00t_blackhole::backend::blackhole::numerics::{DtypePolicy, tile};
use gr00t_blackhole::checkpoint::{Checkpoint, SINGLE_FILE};
use gr00t_blackhole::program::{Orientation, WeightId, WeightSpec};
use half::bf16;
use safetensors::Dtype;
use safetensors::tensor::TensorView;

const BLOCKS: usize = 32;

/// `[out, in]` of a block: attention's q, k, v and out, where every other block has its keys and values from the
/// backbone's tokens; the two of the feed-forward; AdaLN.
fn shapes(block: usize) -> [[usize; 2]; 7] {
    let source = if block.is_multiple_of(2) { 2048 } else { 1536 };
    let (square, keys) = ([1536, 1536], [1536, source]);
    [square, keys, keys, square, [6144, 1536], [1536, 6144], [3072, 1536]]
}

const CONSUMERS: usize = 96;
const BANKS: usize = 8;
/// Values that are drawn; all tensors are parts of them.
const DRAWN: usize = 32 << 20;
const KEY: &str = "bench";

/// Any sign and fraction, exponents as those of weights.
fn drawn(index: usize) -> bf16 {
    let mixed = (index as u32).wrapping_mul(2_654_435_761);
    let mixed = (mixed ^ mixed >> 15).wrapping_mul(2_246_822_519);
    let exponent = 115 + (mixed >> 8 & 7);
    bf16::from_bits((mixed >> 31 << 15 | exponent << 7 | mixed >> 24 & 0x7f) as u16)
}

fn weights() -> Vec<WeightSpec> {
    let shapes = (0..BLOCKS).flat_map(|block| {
        shapes(block).into_iter().enumerate().map(move |(layer, shape)| (block, layer, shape))
    });
    shapes
        .map(|(block, layer, [rows, cols])| WeightSpec {
            tensor: format!("head.model.transformer_blocks.{block}.{layer}"),
            offset: 0,
            rows,
            cols,
            orientation: Orientation::OutIn,
        })
        .collect()
}

fn write_checkpoint(dir: &Path, weights: &[WeightSpec]) -> Checkpoint {
    let values: Vec<bf16> = (0..DRAWN).map(drawn).collect();
    let bytes: &[u8] = bytemuck::cast_slice(&values);
    let tensors = weights.iter().enumerate().map(|(number, weight)| {
        let len = 2 * weight.rows * weight.cols;
        let first = number * 4096 % (bytes.len() - len);
        let view =
            TensorView::new(Dtype::BF16, vec![weight.rows, weight.cols], &bytes[first..][..len]);
        (weight.tensor.clone(), view.expect("sizes are right"))
    });
    let file = dir.join(SINGLE_FILE);
    safetensors::serialize_to_file(tensors, None, &file).expect("there is room for 2.2 GB");
    Checkpoint::open(dir).expect("it was just written")
}

/// The columns of each matrix one by one to the consumers.
fn plan(weights: &[WeightSpec]) -> ArenaPlan {
    let mut streams: Vec<StreamSpec> = (0..CONSUMERS)
        .map(|consumer| StreamSpec {
            consumer: consumer as u32,
            bank: (consumer % BANKS) as u8,
            shards: vec![],
        })
        .collect();
    for (id, weight) in weights.iter().enumerate() {
        for column_tile in 0..weight.outputs() / tile::SIDE {
            let shard = Shard { weight: WeightId(id), column_tile };
            streams[(column_tile + 48 * id) % CONSUMERS].shards.push((id as u32, shard));
        }
    }
    let part = PartSpec { name: "dit".to_owned(), short_last: true, streams };
    ArenaPlan::new(weights, DtypePolicy::MixedDit, &[part], vec![], &HoistRules::default())
        .expect("it is valid")
}

fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix("VmHWM:")?.trim().to_owned()))
}

/// Until all is packed and handed to the system; and until the disk has it.
fn write(plan: &ArenaPlan, checkpoint: &Checkpoint, out: &Path) -> (Duration, Duration) {
    let start = Instant::now();
    let packed = Cell::new(Duration::ZERO);
    let progress = |_, _| packed.set(start.elapsed());
    Arena::write(plan, checkpoint, KEY, out, &progress).expect("there is room");
    (packed.get(), start.elapsed())
}

fn dit(criterion: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let weights = weights();
    let checkpoint = write_checkpoint(dir.path(), &weights);
    let out = dir.path().join("arena");
    let plan = plan(&weights);
    println!("{}", plan.report());
    let (packed, stored) = write(&plan, &checkpoint, &out);
    println!("first: packed in {packed:.3?}, on the disk after {stored:.3?}");

    let mut group = criterion.benchmark_group("arena_dit");
    group.sample_size(10);
    let count: usize = weights.iter().map(|weight| weight.rows * weight.cols).sum();
    group.throughput(Throughput::Elements(count as u64));
    group.bench_function("pack", |bencher| {
        bencher.iter_custom(|runs| (0..runs).map(|_| write(&plan, &checkpoint, &out).0).sum());
    });
    if let Some(memory) = peak_memory() {
        println!("packing: {memory} at most");
    }
    group.throughput(Throughput::Bytes(plan.bytes()));
    group.bench_function("open", |bencher| {
        bencher.iter(|| Arena::open(&out, KEY).expect("it was just written"));
    });
    let arena = Arena::open(&out, KEY).expect("it was just written");
    group.bench_function("upload to nowhere", |bencher| {
        bencher.iter(|| arena.upload(STAGING_BYTES, &|_, _| (), |_, _, _| Ok::<_, ()>(())));
    });
    group.finish();
}

criterion_group!(benches, dit);
criterion_main!(benches);
