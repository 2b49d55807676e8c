//! The N1.7 frame chain against NVIDIA's outputs on drawn frames, bit for bit, and what it must not do.

use std::path::Path;
use std::sync::Arc;

use gr00t_blackhole::contract::Frame;
use gr00t_blackhole::encode::image::View;
use gr00t_blackhole::encode::image::n17::{
    FrameChain, FrameChainParams, PatchWriter, Picture, Stages,
};
use serde_json::Value;

use super::{counting, drawn, le_bytes, noise, sha256, sha256_view};

fn chain(letterbox: bool) -> FrameChain {
    FrameChain::new(FrameChainParams::default(), letterbox).unwrap()
}

/// `image_chain.json` of the goldens, or `None` (said once per test) where it is not beside the repository.
fn golden() -> Option<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/golden/n17/image_chain.json");
    let Ok(bytes) = std::fs::read(&path) else {
        eprintln!("skipped: ../shared/golden is not here");
        return None;
    };
    Some(serde_json::from_slice(&bytes).unwrap())
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap()).unwrap()
}

/// Encodes the frame of a golden case and compares every stage.
fn check_stages(chain: &mut FrameChain, case: &Value) -> Picture {
    let [width, height, seed] = ["width", "height", "seed"].map(|key| number(&case[key]));
    let frame = drawn::frame(width, height, seed);
    assert_eq!(case["sha256_input"], sha256(frame.rgb()), "the drawing, {frame:?}");
    let mut picture = Picture::default();
    chain.encode(&frame, &mut picture);
    let Stages { resize1, crop, resize2, u8 } = chain.stages(&picture).unwrap();
    let stages = [("resize1", resize1), ("crop", crop), ("resize2", resize2), ("u8", u8)];
    for (name, found) in stages {
        let expected = &case["stages"][name];
        let size = [found.height(), found.width()].map(|side| side as u64);
        assert_eq!(expected["hw"], serde_json::json!(size), "{name} of {frame:?}");
        assert_eq!(expected["sha256"], sha256_view(found), "{name} of {frame:?}");
    }
    picture
}

#[test]
fn accepted_frames_equal_the_reference_at_every_stage() {
    let Some(golden) = golden() else { return };
    let cases = golden["accepted"].as_array().unwrap();
    assert_eq!(cases.len(), 23);
    for case in cases {
        let mut chain = chain(false);
        let picture = check_stages(&mut chain, case);
        assert_eq!(picture.grid(), [16, 28]);
        let mut pixels = vec![f32::NAN; PatchWriter::output_len(picture.grid())];
        PatchWriter::default().write(&picture, &mut pixels);
        assert_eq!(case["pixel_values_sha256_f32le"], sha256(&le_bytes(&pixels)), "{case}");
    }
}

#[test]
fn letterboxed_frames_equal_the_reference_at_every_stage() {
    let Some(golden) = golden() else { return };
    let cases = golden["letterboxed"].as_array().unwrap();
    assert_eq!(cases.len(), 4);
    for case in cases {
        let picture = check_stages(&mut chain(true), case);
        assert_eq!(picture.grid(), [16, 16]);
    }
}

#[test]
fn frames_of_other_shapes_get_the_grids_of_the_reference() {
    let Some(golden) = golden() else { return };
    let cases = golden["rejected_for_droid"].as_array().unwrap();
    assert_eq!(cases.len(), 19);
    let chain = chain(false);
    let [least, largest] = chain.ratios([16, 28]).unwrap();
    for case in cases {
        let [width, height] = ["width", "height"].map(|key| number(&case[key]));
        let [rows, columns] = chain.grid(width, height);
        assert_eq!(case["grid_thw"], serde_json::json!([1, rows, columns]), "{width}x{height}");
        assert_eq!(number(&case["tokens"]) as usize, rows * columns / 4);
        let ratio = f64::from(width) / f64::from(height);
        assert!(!(least..=largest).contains(&ratio), "{width}x{height}");
    }
}

#[test]
fn frames_of_any_size_are_encoded() {
    for letterbox in [false, true] {
        let mut chain = chain(letterbox);
        let mut picture = Picture::default();
        let sides = [64, 65, 97, 243, 256, 257, 455, 512, 768, 1019];
        for (width, height) in sides.into_iter().flat_map(|w| sides.map(|h| (w, h))) {
            chain.encode(&noise(7, width, height), &mut picture);
            assert_eq!(picture.grid(), chain.grid(width, height), "{width}x{height}");
            let view: View<'_> = picture.view();
            assert_eq!(view.to_rgb().len(), 3 * 256 * picture.grid()[0] * picture.grid()[1]);
        }
    }
}

#[test]
fn a_flat_frame_stays_flat() {
    let frame = Frame::new(640, 360, [255u8, 0, 51].repeat(640 * 360)).unwrap();
    let mut picture = Picture::default();
    chain(false).encode(&frame, &mut picture);
    assert!(picture.view().to_rgb().chunks_exact(3).all(|pixel| pixel == [255, 0, 51]));
}

#[test]
fn frames_of_one_size_are_encoded_without_allocating() {
    let sizes = [(320, 180), (640, 360), (1280, 720), (1920, 1080), (448, 256), (640, 480)];
    for (width, height) in sizes {
        for letterbox in [false, true] {
            let frames = [1, 2].map(|seed| Arc::new(noise(seed, width, height)));
            let (mut chain, mut writer) = (chain(letterbox), PatchWriter::default());
            let mut picture = Picture::default();
            chain.encode(&frames[0], &mut picture);
            let mut pixels = vec![0.0; PatchWriter::output_len(picture.grid())];
            writer.write(&picture, &mut pixels);
            let before = counting::requests();
            for frame in frames.iter().cycle().take(6) {
                chain.encode(frame, &mut picture);
                writer.write(&picture, &mut pixels);
            }
            assert_eq!(counting::requests() - before, 0, "{width}x{height}");
        }
    }
}
