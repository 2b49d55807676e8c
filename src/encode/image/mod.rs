//! From a camera frame to normalised pixels, one chain per model version, over shared resamplers.
//!
//! The references resize with OpenCV and Pillow; the resamplers here give the same bytes. Pictures are 8-bit
//! RGB, channels interleaved, all the way to the last step, which splits them into planes of f32.
//!
//! Every resampler is built once for a pair of sizes and then run on any number of pictures without
//! allocating.

/// Evaluates `body` with `NAME` a constant equal to `count`, so that loops over it unroll and their sums stay in
/// registers; evaluates `otherwise` for a count that is not listed.
macro_rules! with_known_count {
    ($count:expr, [$($known:literal),*], $name:ident => $body:expr, $otherwise:expr) => {
        match $count {
            $($known => {
                const $name: usize = $known;
                $body
            })*
            _ => $otherwise,
        }
    };
}

mod area;
mod geometry;
mod lanes;
mod letterbox;
pub mod n16;
pub mod n17;
mod normalize;
mod params;
mod patches;
mod pillow;
mod stages;
mod view;

pub use view::View;

/// Samples of one pixel.
const CHANNELS: usize = 3;

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use sha2::{Digest, Sha256};

    use super::area::AreaResizer;
    use super::pillow::{BicubicResizer, Rounding};
    use super::view::{Size, View, Window};

    /// SHA-256 of resized white noise, written by `benches/reference/image_chain.py golden`.
    #[derive(Deserialize)]
    struct ResizeFile {
        cases: Vec<ResizeCase>,
    }

    #[derive(Deserialize)]
    struct ResizeCase {
        seed: u64,
        from: [usize; 2],
        to: [usize; 2],
        opencv_area: String,
        pillow_bicubic: String,
    }

    fn splitmix64(x: u64) -> u64 {
        let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn sha256(bytes: &[u8]) -> String {
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn resizes_of_any_shape_equal_opencv_and_pillow() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/n16/resize.json");
        let file: ResizeFile =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert!(file.cases.len() > 50);
        for case in file.cases {
            let [width, height] = case.from;
            let source = Size { width, height };
            let target = Size { width: case.to[0], height: case.to[1] };
            let words = 0..source.bytes().div_ceil(8) as u64;
            let rgb: Vec<u8> =
                words.flat_map(|i| splitmix64((case.seed << 32) + i).to_le_bytes()).collect();
            let picture = View::new(&rgb[..source.bytes()], source);
            let mut out = vec![0; target.bytes()];
            AreaResizer::new(source, Window::whole(source), target).run(picture, &mut out);
            assert_eq!(sha256(&out), case.opencv_area, "area, {source:?} to {target:?}");
            BicubicResizer::new(source, target, Rounding::Pillow).run(picture, &mut out);
            assert_eq!(sha256(&out), case.pillow_bicubic, "bicubic, {source:?} to {target:?}");
        }
    }
}
