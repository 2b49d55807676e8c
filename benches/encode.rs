//! Time to encode camera frames on one thread: one of N1.6, the four of an N1.7 observation of DROID.
//!
//! `benches/reference/image_chain.py time` runs this next to the reference's own libraries.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use gr00t_blackhole::contract::Frame;
use gr00t_blackhole::encode::image::n15;
use gr00t_blackhole::encode::image::n16::{FrameChain, FrameChainParams};
use gr00t_blackhole::encode::image::n17::{self, PatchWriter, Picture};

const SIZES: [(u32, u32); 4] = [(256, 256), (640, 480), (1280, 720), (1920, 1080)];

/// Bytes without structure: nothing for a branch predictor to learn.
fn noise(width: u32, height: u32) -> Frame {
    let mut state = 1u64;
    let sample = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let length = 3 * width as usize * height as usize;
    let rgb: Vec<u8> = std::iter::repeat_with(sample).take(length).collect();
    Frame::new(width, height, rgb).expect("the sizes above are within the limits")
}

fn n15_frame_chain(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("n15_frame_chain");
    for (width, height) in SIZES {
        let frame = noise(width, height);
        let mut chain = n15::FrameChain::new();
        let mut out = Box::new([0.0; n15::OUTPUT_LEN]);
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("{width}x{height}"), |bencher| {
            bencher.iter(|| chain.encode(&frame, &mut out));
        });
    }
    group.finish();
}

fn n16_frame_chain(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("n16_frame_chain");
    for (width, height) in SIZES {
        let frame = noise(width, height);
        let mut chain = FrameChain::new(FrameChainParams::default()).expect("released values");
        let mut out = vec![0.0; chain.output_len()];
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("{width}x{height}"), |bencher| {
            bencher.iter(|| chain.encode(&frame, &mut out));
        });
    }
    group.finish();
}

/// Sizes of DROID's frames, before and after its client has resized them.
const DROID_SIZES: [(u32, u32); 3] = [(320, 180), (1280, 720), (1920, 1080)];
/// Two cameras, two times.
const DROID_FRAMES: usize = 4;

fn n17_droid(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("n17_droid");
    for (width, height) in DROID_SIZES {
        let frame = noise(width, height);
        let mut chain =
            n17::FrameChain::new(FrameChainParams::default(), false).expect("released values");
        let (mut picture, mut writer) = (Picture::default(), PatchWriter::default());
        let values = PatchWriter::output_len(chain.grid(width, height));
        let mut pixels = vec![0.0; DROID_FRAMES * values];
        group.throughput(Throughput::Elements(DROID_FRAMES as u64));
        group.bench_function(format!("{width}x{height}"), |bencher| {
            bencher.iter(|| {
                for out in pixels.chunks_exact_mut(values) {
                    chain.encode(&frame, &mut picture);
                    writer.write(&picture, out);
                }
            });
        });
        // What is left for a request whose frames were encoded as they arrived.
        group.bench_function(format!("{width}x{height} arrived before"), |bencher| {
            bencher.iter(|| {
                for out in pixels.chunks_exact_mut(values) {
                    writer.write(&picture, out);
                }
            });
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    // Medians of a few seconds say enough; the default number of resamples takes longer than the measurement.
    config = Criterion::default().nresamples(5_000);
    targets = n15_frame_chain, n16_frame_chain, n17_droid
}
criterion_main!(benches);
