//! The frame chains against NVIDIA's outputs, against OpenCV and Pillow, and against a plain transcription
//! of the spec. Everything is compared bit for bit.

mod counting;
mod drawn;
mod golden;
mod n17;
mod oracle;

use gr00t_blackhole::contract::Frame;
use gr00t_blackhole::encode::image::View;
use gr00t_blackhole::encode::image::n16::{FrameChain, FrameChainParams};
use oracle::Picture;
use sha2::{Digest, Sha256};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

fn splitmix64(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// White noise, the same as in `benches/reference/image_chain.py`.
fn noise(seed: u64, width: u32, height: u32) -> Frame {
    let length = 3 * width as usize * height as usize;
    let words = (0..length.div_ceil(8) as u64).map(|index| splitmix64((seed << 32) + index));
    let mut rgb: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    rgb.truncate(length);
    Frame::new(width, height, rgb).unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sha256_view(view: View<'_>) -> String {
    sha256(&view.to_rgb())
}

fn le_bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn chain(shortest_edge: u32, crop_fraction: f64) -> FrameChain {
    FrameChain::new(FrameChainParams { shortest_edge, crop_fraction }).unwrap()
}

fn encoded(chain: &mut FrameChain, frame: &Frame) -> Vec<f32> {
    let mut out = vec![f32::NAN; chain.output_len()];
    chain.encode(frame, &mut out).unwrap();
    out
}

/// Position of the first difference, for messages that can be read.
fn first_difference<T: PartialEq>(found: &[T], expected: &[T]) -> Option<usize> {
    if found.len() != expected.len() {
        return Some(found.len().min(expected.len()));
    }
    found.iter().zip(expected).position(|(found, expected)| found != expected)
}

fn assert_same_as_oracle(chain: &mut FrameChain, params: FrameChainParams, frame: &Frame) {
    let pixels = encoded(chain, frame);
    let picture = Picture {
        width: frame.width() as usize,
        height: frame.height() as usize,
        rgb: frame.rgb().to_vec(),
    };
    let FrameChainParams { shortest_edge, crop_fraction } = params;
    let expected =
        oracle::chain(picture, shortest_edge as usize, crop_fraction, chain.output_side());
    let stages = chain.stages();
    let compared = [
        ("resize1", stages.resize1, expected.resize1),
        ("crop", stages.crop, expected.crop),
        ("resize2", stages.resize2, expected.resize2),
        ("u8", stages.u8, expected.u8),
    ];
    for (stage, found, expected) in compared {
        assert_eq!((found.width(), found.height()), (expected.width, expected.height));
        let difference = first_difference(&found.to_rgb(), &expected.rgb);
        assert_eq!(difference, None, "{stage} of {frame:?} with {params:?}");
    }
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let difference = first_difference(&bits(&pixels), &bits(&expected.pixels));
    assert_eq!(difference, None, "pixels of {frame:?} with {params:?}");
}

#[test]
fn equals_the_transcription_at_chosen_sizes() {
    let params = FrameChainParams::default();
    let mut chain = FrameChain::new(params).unwrap();
    let mut sizes = vec![
        (4096, 64),
        (64, 4096),
        (4095, 65),
        (65, 4095),
        (64, 64),
        (255, 254),
        (255, 64),
        (256, 64),
        (64, 256),
        (256, 256),
        (256, 251),
        (257, 257),
        (640, 480),
        (1280, 720),
        (719, 1281),
        (1919, 1079),
    ];
    // Whole multiples of 256 and their neighbours, thin to keep the transcription quick.
    for k in 2..=16 {
        sizes.extend([(256 * k, 70 + 3 * k), (61 + 3 * k, 256 * k), (256 * k - 1, 64 + k)]);
    }
    for (seed, (width, height)) in sizes.into_iter().enumerate() {
        assert_same_as_oracle(&mut chain, params, &noise(seed as u64, width, height));
    }
}

#[test]
fn equals_the_transcription_at_random_sizes() {
    let params = FrameChainParams::default();
    let mut chain = FrameChain::new(params).unwrap();
    for seed in 1000..1060u64 {
        // Log-uniform between 64 and 1500, so that both enlargement and reduction are met often.
        let side = |salt: u64| {
            let unit = (splitmix64(2 * seed + salt) >> 11) as f64 / (1u64 << 53) as f64;
            (64.0 * (1500.0f64 / 64.0).powf(unit)) as u32
        };
        assert_same_as_oracle(&mut chain, params, &noise(seed, side(0), side(1)));
    }
}

#[test]
fn case_20_other_values_of_the_processor_file_are_followed() {
    let cases =
        [(28, 0.95), (64, 0.5), (224, 0.95), (230, 0.875), (240, 1.0), (252, 0.9), (448, 0.01)];
    for (seed, (shortest_edge, crop_fraction)) in cases.into_iter().enumerate() {
        let params = FrameChainParams { shortest_edge, crop_fraction };
        let mut chain = FrameChain::new(params).unwrap();
        for (width, height) in [(320, 180), (448, 448), (97, 131)] {
            assert_same_as_oracle(&mut chain, params, &noise(seed as u64, width, height));
        }
    }
}

#[test]
fn case_60_cameras_of_different_sizes_do_not_disturb_each_other() {
    let frames = [noise(1, 640, 480), noise(2, 100, 180), noise(3, 256, 256), noise(4, 512, 100)];
    let mut shared = chain(256, 0.95);
    for round in 0..2 {
        for frame in &frames {
            let alone = encoded(&mut chain(256, 0.95), frame);
            assert_eq!(first_difference(&encoded(&mut shared, frame), &alone), None, "{round}");
        }
    }
}

#[test]
fn flat_frames_without_a_border_stay_flat() {
    let frame = Frame::new(777, 777, [255u8, 0, 51].repeat(777 * 777)).unwrap();
    let mut chain = chain(256, 0.95);
    let pixels = encoded(&mut chain, &frame);
    let plane = pixels.len() / 3;
    assert!(pixels[..plane].iter().all(|&value| value == 1.0));
    assert!(pixels[plane..2 * plane].iter().all(|&value| value == -1.0));
    assert!(pixels[2 * plane..].iter().all(|&value| value == -0.6));
}

#[test]
fn every_side_is_encoded() {
    let mut chain = chain(256, 0.95);
    for side in (64..=4096).step_by(7) {
        for (width, height) in [(side, 64), (64, side)] {
            let pixels = encoded(&mut chain, &noise(u64::from(side), width, height));
            let in_range = pixels.iter().all(|value| (-1.0..=1.0).contains(value));
            assert!(in_range, "{width}x{height}");
        }
    }
}

#[test]
fn frames_of_one_size_are_encoded_without_allocating() {
    let sizes = [(256, 256), (200, 100), (640, 480), (1280, 720), (512, 512), (1919, 1080)];
    for (seed, (width, height)) in sizes.into_iter().enumerate() {
        let frames = [noise(seed as u64, width, height), noise(seed as u64 + 99, width, height)];
        let mut chain = chain(256, 0.95);
        let mut out = vec![0.0; chain.output_len()];
        chain.encode(&frames[0], &mut out).unwrap();
        let before = counting::requests();
        for frame in frames.iter().cycle().take(6) {
            chain.encode(frame, &mut out).unwrap();
        }
        assert_eq!(counting::requests() - before, 0, "{width}x{height}");
    }
}
