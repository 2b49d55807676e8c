//! The N1.5 frame chain against torch's outputs, bit for bit at every stage.

use std::path::Path;

use gr00t_blackhole::contract::Frame;
use gr00t_blackhole::encode::image::n15::{FrameChain, OUTPUT_LEN, SIDE};
use serde::Deserialize;

use super::pattern::pattern;
use super::{counting, first_difference, le_bytes, noise, sha256, sha256_view};

/// SHA-256 of every stage, from the reference.
#[derive(Deserialize)]
struct Case {
    width: u32,
    height: u32,
    pattern_seed: u64,
    rgb_sha256: String,
    resized_f32_sha256: String,
    u8_sha256: String,
    pixel_values_sha256: String,
}

fn encoded(chain: &mut FrameChain, frame: &Frame) -> Box<[f32; OUTPUT_LEN]> {
    let mut out: Box<[f32; OUTPUT_LEN]> = vec![f32::NAN; OUTPUT_LEN].try_into().unwrap();
    chain.encode(frame, &mut out);
    out
}

fn planes(interleaved: &[f32]) -> Vec<f32> {
    (0..OUTPUT_LEN).map(|i| interleaved[i % (SIDE * SIDE) * 3 + i / (SIDE * SIDE)]).collect()
}

#[test]
fn n15_equals_the_reference_at_every_size() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/n15/image_chain.json");
    let cases: Vec<Case> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(cases.len(), 14);
    // One chain for all, so that every case meets the tables and buffers of another size.
    let mut chain = FrameChain::new();
    for case in cases {
        let frame = pattern(case.pattern_seed, case.width, case.height);
        assert_eq!(sha256(frame.rgb()), case.rgb_sha256, "the frame itself, {frame:?}");
        let pixels = encoded(&mut chain, &frame);
        let stages = chain.stages();
        let resized = le_bytes(&planes(stages.resized));
        assert_eq!(sha256(&resized), case.resized_f32_sha256, "resized {frame:?}");
        assert_eq!(sha256_view(stages.u8), case.u8_sha256, "8 bits of {frame:?}");
        assert_eq!(sha256(&le_bytes(&pixels[..])), case.pixel_values_sha256, "pixels of {frame:?}");
    }
}

/// A grey frame does not stay grey: 15.9999 is rounded down (spec n15 section 4).
#[test]
fn n15_flat_frames_lose_a_level_where_the_reference_does() {
    let frame = Frame::new(1280, 720, vec![16; 3 * 1280 * 720]).unwrap();
    let mut chain = FrameChain::new();
    encoded(&mut chain, &frame);
    let samples = chain.stages().u8.to_rgb();
    assert!(samples.iter().all(|sample| [15, 16].contains(sample)));
    assert_eq!(samples.iter().filter(|sample| **sample == 15).count(), 19_884);
}

#[test]
fn n15_every_side_is_encoded() {
    let mut chain = FrameChain::new();
    for side in (64..=4096).step_by(31) {
        for (width, height) in [(side, 64), (64, side)] {
            let pixels = encoded(&mut chain, &noise(u64::from(side), width, height));
            let in_range = pixels.iter().all(|value| (-1.0..=1.0).contains(value));
            assert!(in_range, "{width}x{height}");
        }
    }
}

#[test]
fn n15_frames_of_one_size_are_encoded_without_allocating() {
    for (seed, (width, height)) in
        [(256, 256), (64, 300), (640, 480), (1280, 720)].into_iter().enumerate()
    {
        let frames = [noise(seed as u64, width, height), noise(seed as u64 + 99, width, height)];
        let mut chain = FrameChain::new();
        let mut out = encoded(&mut chain, &frames[0]);
        let first = out.clone();
        let before = counting::requests();
        for frame in frames.iter().cycle().take(5) {
            chain.encode(frame, &mut out);
        }
        assert_eq!(counting::requests() - before, 0, "{width}x{height}");
        assert_eq!(first_difference(&first[..], &out[..]), None, "{width}x{height}");
    }
}
