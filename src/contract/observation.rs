//! What the robot saw and felt at one moment.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;

/// Accepted width and height of a camera frame, in pixels.
pub const FRAME_SIDE: RangeInclusive<u32> = 64..=4096;

/// One camera frame: 8-bit RGB, rows from top to bottom, no padding. Its pixels may lie in a message that it keeps.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame {
    width: u32,
    height: u32,
    rgb: Bytes,
}

impl Frame {
    /// Wraps `rgb`, `[height, width, 3]`.
    ///
    /// # Errors
    /// A side outside [`FRAME_SIDE`], or a buffer that is not `3 * width * height` bytes long.
    pub fn new(width: u32, height: u32, rgb: impl Into<Bytes>) -> Result<Self, FrameError> {
        let rgb = rgb.into();
        if !FRAME_SIDE.contains(&width) || !FRAME_SIDE.contains(&height) {
            return Err(FrameError::Size { width, height });
        }
        let expected = 3 * width as usize * height as usize;
        if rgb.len() != expected {
            return Err(FrameError::Length { width, height, expected, found: rgb.len() });
        }
        Ok(Self { width, height, rgb })
    }

    pub fn width(&self) -> u32 {
        self.width
    }

    pub fn height(&self) -> u32 {
        self.height
    }

    /// The pixels, `[height, width, 3]`.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }
}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frame({}x{})", self.width, self.height)
    }
}

/// Why a buffer is not a [`Frame`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error(
        "frame is {width}x{height}; each side must be {} to {} pixels",
        FRAME_SIDE.start(),
        FRAME_SIDE.end()
    )]
    Size { width: u32, height: u32 },
    #[error("a {width}x{height} RGB frame needs {expected} bytes, got {found}")]
    Length { width: u32, height: u32, expected: usize, found: usize },
}

/// Everything that one prediction depends on, besides its noise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Time of the observation in nanoseconds since the epoch of its clock: the newest header stamp that went in.
    pub stamp_ns: i64,
    /// Per camera key: one frame per frame delta of the embodiment, oldest first.
    pub frames: BTreeMap<String, Vec<Arc<Frame>>>,
    /// Per state group: raw physical values (radians, metres; as the checkpoint's data set has them), unnormalised.
    pub state: BTreeMap<String, Vec<f64>>,
    /// What the robot is to do, as the user wrote it.
    pub instruction: String,
}
