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
mod lanes;
mod letterbox;
pub mod n16;
mod normalize;
mod pillow;
mod view;

pub use view::View;

/// Samples of one pixel.
const CHANNELS: usize = 3;
