//! Rectangles of pixels that are looked at where they lie.

use super::CHANNELS;
use crate::contract::Frame;

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub width: usize,
    pub height: usize,
}

impl Size {
    pub fn square(side: usize) -> Self {
        Self { width: side, height: side }
    }

    pub fn of(frame: &Frame) -> Self {
        Self { width: frame.width() as usize, height: frame.height() as usize }
    }

    /// Bytes of an RGB picture of this size.
    pub fn bytes(self) -> usize {
        CHANNELS * self.width * self.height
    }
}

/// A rectangle inside a picture, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub left: usize,
    pub top: usize,
    pub size: Size,
}

impl Window {
    /// The whole of a picture.
    pub fn whole(size: Size) -> Self {
        Self { left: 0, top: 0, size }
    }

    /// `size` in the middle of a larger `picture`; an odd remainder goes to the right and the bottom.
    pub fn centred(size: Size, picture: Size) -> Self {
        Self {
            left: (picture.width - size.width) / 2,
            top: (picture.height - size.height) / 2,
            size,
        }
    }
}

/// An 8-bit RGB picture, or a rectangle of one, `[height, width, 3]`.
#[derive(Clone, Copy)]
pub struct View<'a> {
    rgb: &'a [u8],
    size: Size,
    /// Bytes from one row to the next.
    stride: usize,
}

impl<'a> View<'a> {
    /// `rgb` holds at least `size` tightly packed pixels.
    pub(super) fn new(rgb: &'a [u8], size: Size) -> Self {
        debug_assert!(rgb.len() >= size.bytes());
        Self { rgb, size, stride: CHANNELS * size.width }
    }

    /// The part of this picture under `window`, which lies inside it.
    pub(super) fn crop(self, window: Window) -> Self {
        debug_assert!(window.left + window.size.width <= self.size.width);
        debug_assert!(window.top + window.size.height <= self.size.height);
        let start = window.top * self.stride + CHANNELS * window.left;
        Self { rgb: &self.rgb[start..], size: window.size, stride: self.stride }
    }

    pub(super) fn size(&self) -> Size {
        self.size
    }

    pub fn width(&self) -> usize {
        self.size.width
    }

    pub fn height(&self) -> usize {
        self.size.height
    }

    /// Row `y`, `[width, 3]`, for `y` below [`View::height`].
    pub fn row(&self, y: usize) -> &'a [u8] {
        let start = y * self.stride;
        &self.rgb[start..start + CHANNELS * self.size.width]
    }

    /// Row `y` and whatever lies behind it, `len` samples in all: in place where the buffer goes on that far,
    /// otherwise in `scratch`, which is at least `len` long.
    pub(super) fn row_and_beyond<'s>(&self, y: usize, len: usize, scratch: &'s mut [u8]) -> &'s [u8]
    where
        'a: 's,
    {
        let start = y * self.stride;
        if let Some(row) = self.rgb.get(start..start + len) {
            return row;
        }
        let row = self.row(y);
        scratch[..row.len()].copy_from_slice(row);
        &scratch[..len]
    }

    /// A tightly packed copy, `[height, width, 3]`.
    pub fn to_rgb(&self) -> Vec<u8> {
        let mut rgb = Vec::with_capacity(self.size.bytes());
        for y in 0..self.height() {
            rgb.extend_from_slice(self.row(y));
        }
        rgb
    }
}
