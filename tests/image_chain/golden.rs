//! Outputs of the reference: OpenCV and Pillow on white noise (in this repository), NVIDIA's processor on drawn
//! frames (in `../shared`, where that is at hand).

use std::path::{Path, PathBuf};

use gr00t_blackhole::contract::{FRAME_SIDE, Frame};
use gr00t_blackhole::encode::image::View;
use safetensors::SafeTensors;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{chain, encoded, first_difference, le_bytes, noise, sha256, sha256_view};

/// SHA-256 per stage, written by `benches/reference/image_chain.py golden`.
#[derive(Deserialize)]
struct NoiseFile {
    cases: Vec<NoiseCase>,
}

#[derive(Deserialize)]
struct NoiseCase {
    seed: u64,
    width: u32,
    height: u32,
    shortest_edge: u32,
    crop_fraction: f64,
    input: String,
    resize1: String,
    crop: String,
    resize2: String,
    u8: String,
    pixels: String,
}

#[test]
fn equals_opencv_and_pillow_on_white_noise() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file: NoiseFile = read_json(&root.join("tests/data/n16/image_chain.json"));
    assert!(file.cases.len() >= 100, "{} cases", file.cases.len());
    for case in file.cases {
        let frame = noise(case.seed, case.width, case.height);
        assert_eq!(sha256(frame.rgb()), case.input, "the noise itself, seed {}", case.seed);
        let mut chain = chain(case.shortest_edge, case.crop_fraction);
        let pixels = encoded(&mut chain, &frame);
        let stages = chain.stages();
        let what = format!("{frame:?}, {} x {}", case.shortest_edge, case.crop_fraction);
        assert_eq!(sha256_view(stages.resize1), case.resize1, "resize1 of {what}");
        assert_eq!(sha256_view(stages.crop), case.crop, "crop of {what}");
        assert_eq!(sha256_view(stages.resize2), case.resize2, "resize2 of {what}");
        assert_eq!(sha256_view(stages.u8), case.u8, "u8 of {what}");
        assert_eq!(sha256(&le_bytes(&pixels)), case.pixels, "pixels of {what}");
    }
}

#[derive(Deserialize)]
struct DrawnFile {
    cases: Vec<DrawnCase>,
}

#[derive(Deserialize)]
struct DrawnCase {
    width: u32,
    height: u32,
    input: String,
    input_rgb_sha256: String,
    resize2_rgb_sha256: String,
    output_rgb_sha256: String,
    pixel_values_f32le_sha256: String,
}

#[test]
fn equals_the_reference_at_every_size_of_the_golden_image_chain() {
    let Some(golden) = shared_golden() else { return };
    let file: DrawnFile = read_json(&golden.join("image_chain.json"));
    // The 19th, 65x63, is smaller than a `Frame` may be; a unit test of the chain has it.
    let (cases, small): (Vec<_>, Vec<_>) = file
        .cases
        .into_iter()
        .partition(|case| FRAME_SIDE.contains(&case.width) && FRAME_SIDE.contains(&case.height));
    assert_eq!((cases.len(), small.len()), (18, 1));
    for case in cases {
        let frame = read_png(&golden.join(&case.input));
        assert_eq!((frame.width(), frame.height()), (case.width, case.height));
        assert_eq!(sha256(frame.rgb()), case.input_rgb_sha256);
        let mut chain = chain(256, 0.95);
        let pixels = encoded(&mut chain, &frame);
        let stages = chain.stages();
        assert_eq!(sha256_view(stages.resize2), case.resize2_rgb_sha256, "resize2 of {frame:?}");
        assert_eq!(sha256_view(stages.u8), case.output_rgb_sha256, "u8 of {frame:?}");
        assert_eq!(sha256(&le_bytes(&pixels)), case.pixel_values_f32le_sha256, "{frame:?}");
    }
}

#[derive(Deserialize)]
struct PolicyCase {
    frames: Vec<PolicyFrame>,
    image_order: Vec<Image>,
    pixel_values_sha256_f32le: String,
}

#[derive(Deserialize)]
struct PolicyFrame {
    camera: String,
    t: i64,
    png: String,
    sha256_rgb: String,
}

#[derive(Deserialize)]
struct Image {
    camera: String,
    t: i64,
}

#[test]
fn equals_every_stage_of_the_golden_policy_cases() {
    let Some(golden) = shared_golden() else { return };
    let cases =
        ["c0_gr1_256", "c1_gr1_640x480", "c2_gr1_1280x720", "c3_libero_2cam", "c4_eef_2cam_2t"];
    for id in cases {
        let case: PolicyCase = read_json(&golden.join(format!("{id}.json")));
        let bytes = std::fs::read(golden.join(format!("{id}.safetensors"))).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let tensor = |name: &str| tensors.tensor(name).unwrap().data();
        let same = |view: View<'_>, name: &str| {
            assert_eq!(first_difference(&view.to_rgb(), tensor(name)), None, "{name} of {id}");
        };
        let mut all_pixels = Vec::new();
        for (index, image) in case.image_order.iter().enumerate() {
            let source = case
                .frames
                .iter()
                .find(|frame| frame.camera == image.camera && frame.t == image.t)
                .unwrap();
            let frame = read_png(&golden.join(&source.png));
            assert_eq!(sha256(frame.rgb()), source.sha256_rgb);
            let mut chain = chain(256, 0.95);
            let pixels = le_bytes(&encoded(&mut chain, &frame));
            let stages = chain.stages();
            same(stages.u8, &format!("image{index}.u8"));
            if index == 0 {
                same(stages.resize1, "image0.resize1");
                same(stages.crop, "image0.crop");
                same(stages.resize2, "image0.resize2");
                assert_eq!(first_difference(&pixels, tensor("pixel_values")), None, "{id}");
            }
            all_pixels.extend(pixels);
        }
        assert_eq!(sha256(&all_pixels), case.pixel_values_sha256_f32le, "pixels of {id}");
    }
}

/// The N1.6 goldens, or `None` (said once per test) where the shared library is not beside the repository.
fn shared_golden() -> Option<PathBuf> {
    let shared = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/golden");
    if !shared.is_dir() {
        eprintln!("skipped: ../shared/golden is not here");
        return None;
    }
    Some(shared.join("n16/tiny"))
}

fn read_json<T: DeserializeOwned>(path: &Path) -> T {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn read_png(path: &Path) -> Frame {
    let picture = image::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())).to_rgb8();
    Frame::new(picture.width(), picture.height(), picture.into_raw()).unwrap()
}
