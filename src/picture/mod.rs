//! JPEG and PNG data to 8-bit RGB: the one decoder of the node's compressed topics and of observation files.
//!
//! The codec is found from the bytes. 16-bit PNG channels keep their high byte, alpha is dropped, bytes behind the end
//! of the picture are ignored. Decoders fill what damaged data lacks with grey or with zeroes and say nothing, so the
//! data is checked first; see `scan` for what that finds and what it cannot.

mod jpeg;
mod png;
mod scan;

use crate::contract::{FRAME_SIDE, Frame, FrameError};

const JPEG_START: [u8; 3] = [0xFF, 0xD8, 0xFF];
const PNG_START: [u8; 8] = *b"\x89PNG\r\n\x1a\n";

/// First bytes that an error shows of data that is no picture.
const SHOWN_BYTES: usize = 8;

/// Why data is not a picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PictureError {
    #[error("the data ({length} bytes, starting {start:02x?}) is neither JPEG nor PNG")]
    Codec { length: usize, start: Vec<u8> },
    #[error("the JPEG data ends after {length} bytes without its end marker: it was cut off")]
    CutOff { length: usize },
    #[error("the {codec} data is damaged: {reason}")]
    Damaged { codec: Codec, reason: String },
    #[error("the PNG data is an animation; give one still picture")]
    Animated,
    #[error("the PNG data uses colour {index} of a palette of {colours}: it is damaged")]
    Palette { index: u8, colours: usize },
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// How a picture is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Jpeg,
    Png,
}

impl Codec {
    /// What the first bytes say.
    ///
    /// # Errors
    /// They are of neither.
    pub fn of(data: &[u8]) -> Result<Self, PictureError> {
        if data.starts_with(&JPEG_START) {
            Ok(Codec::Jpeg)
        } else if data.starts_with(&PNG_START) {
            Ok(Codec::Png)
        } else {
            let start = data[..data.len().min(SHOWN_BYTES)].to_vec();
            Err(PictureError::Codec { length: data.len(), start })
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Codec::Jpeg => "JPEG",
            Codec::Png => "PNG",
        }
    }

    /// The error for data of this codec that cannot be decoded, on one line.
    fn damaged(self, reason: impl std::fmt::Display) -> PictureError {
        let reason = reason.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        PictureError::Damaged { codec: self, reason }
    }
}

impl std::fmt::Display for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// A decoded picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    pub codec: Codec,
    pub width: u32,
    pub height: u32,
    /// `[height, width, 3]`.
    pub rgb: Vec<u8>,
    /// The data has brightness only; all three channels hold it.
    pub grey: bool,
}

impl Picture {
    /// The picture as a camera frame.
    ///
    /// # Errors
    /// As [`Frame::new`].
    pub fn into_frame(self) -> Result<Frame, FrameError> {
        Frame::new(self.width, self.height, self.rgb)
    }
}

/// Decodes a picture.
///
/// # Errors
/// See [`PictureError`]. The size is checked before anything of that size is allocated.
pub fn decode(data: &[u8]) -> Result<Picture, PictureError> {
    match Codec::of(data)? {
        Codec::Jpeg => jpeg::decode(data),
        Codec::Png => png::decode(data),
    }
}

fn check_size(width: u32, height: u32) -> Result<(), PictureError> {
    if FRAME_SIDE.contains(&width) && FRAME_SIDE.contains(&height) {
        Ok(())
    } else {
        Err(FrameError::Size { width, height }.into())
    }
}

#[cfg(test)]
pub(crate) mod tests;
