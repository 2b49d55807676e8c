//! The pictures that a policy sees, for people to look at.

use std::sync::Arc;

use super::EncodeError;
use super::frames::{CameraFrame, time_major};
use super::image::View;
use crate::contract::{Embodiment, Frame, Observation};

/// A frame as the policy sees it: cropped, resized, padded, and not yet normalised. The chains of all versions end in
/// 8 bits, so that these are the very pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Number of the camera in the embodiment's list.
    pub camera: usize,
    pub width: usize,
    pub height: usize,
    /// `[height, width, 3]`.
    pub rgb: Vec<u8>,
}

/// Makes the pictures of an observation, from any thread: for every frame delta, every camera in the embodiment's
/// order.
///
/// Fails as a prediction from the observation would.
pub type Viewer = Arc<dyn Fn(&Observation) -> Result<Vec<Seen>, EncodeError> + Send + Sync>;

impl Seen {
    pub fn new(camera: usize, picture: View<'_>) -> Self {
        let (width, height) = (picture.width(), picture.height());
        Self { camera, width, height, rgb: picture.to_rgb() }
    }
}

/// A viewer of frames by `see`, which is given the number of the camera and a frame of it.
pub(super) fn viewer(
    embodiment: Embodiment,
    see: impl Fn(usize, &Arc<Frame>) -> Result<Seen, EncodeError> + Send + Sync + 'static,
) -> Viewer {
    Arc::new(move |observation| {
        let frames = time_major(&embodiment, observation)?;
        frames.into_iter().map(|CameraFrame { camera, frame }| see(camera, frame)).collect()
    })
}

/// All pictures as one: cameras from left to right, frame deltas from top to bottom. A camera is as wide as its widest
/// picture, a row as high as its highest; what is left is black. `None` without pictures.
pub fn side_by_side(pictures: &[Seen]) -> Option<Seen> {
    let columns = pictures.iter().map(|picture| picture.camera + 1).max()?;
    let rows: Vec<&[Seen]> = pictures.chunks(columns).collect();
    let width_of = |camera: usize| {
        let of_camera = pictures.iter().filter(|picture| picture.camera == camera);
        of_camera.map(|picture| picture.width).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width_of).collect();
    let high = |row: &&[Seen]| row.iter().map(|picture| picture.height).max().unwrap_or(0);
    let heights: Vec<usize> = rows.iter().map(high).collect();
    let (width, height) = (widths.iter().sum::<usize>(), heights.iter().sum::<usize>());
    let mut rgb = vec![0; 3 * width * height];
    for (number, row) in rows.iter().enumerate() {
        let top: usize = heights[..number].iter().sum();
        for picture in *row {
            let left: usize = widths[..picture.camera].iter().sum();
            for (y, line) in picture.rgb.chunks_exact(3 * picture.width).enumerate() {
                let start = 3 * ((top + y) * width + left);
                rgb[start..start + line.len()].copy_from_slice(line);
            }
        }
    }
    Some(Seen { camera: 0, width, height, rgb })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(camera: usize, width: usize, height: usize, value: u8) -> Seen {
        Seen { camera, width, height, rgb: vec![value; 3 * width * height] }
    }

    #[test]
    fn cameras_from_left_to_right_times_from_top_to_bottom() {
        assert_eq!(side_by_side(&[]), None);
        let pictures = [plain(0, 2, 1, 1), plain(1, 1, 2, 2), plain(0, 2, 1, 3), plain(1, 1, 1, 4)];
        let made = side_by_side(&pictures).expect("pictures");
        assert_eq!((made.width, made.height), (3, 3));
        let rows: Vec<Vec<u8>> =
            made.rgb.chunks(9).map(|row| row.iter().copied().step_by(3).collect()).collect();
        assert_eq!(rows, [[1, 1, 2], [0, 0, 2], [3, 3, 4]]);
    }
}
