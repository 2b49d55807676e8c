//! PNG.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, ImageReader, Limits};
use png::{BitDepth, ColorType, Transformations};

use super::{Codec, Picture, PictureError, check_size};
use crate::contract::FRAME_SIDE;

/// Bytes that the decoder may allocate: the largest accepted picture with four 16-bit channels, and half as much again.
const MAX_ALLOC: u64 = 3 * (*FRAME_SIDE.end() as u64) * (*FRAME_SIDE.end() as u64) * 8 / 2;

pub(super) fn decode(data: &[u8]) -> Result<Picture, PictureError> {
    check_structure(data)?;
    let mut reader = ImageReader::with_format(Cursor::new(data), ImageFormat::Png);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_ALLOC);
    reader.limits(limits);
    let picture = reader.decode().map_err(|error| Codec::Png.damaged(error))?;
    Ok(Picture {
        codec: Codec::Png,
        width: picture.width(),
        height: picture.height(),
        grey: !picture.color().has_color(),
        rgb: to_rgb8(picture),
    })
}

/// What the decoder of `image` does not tell: the size before its limits, animations, colours that are not there.
fn check_structure(data: &[u8]) -> Result<(), PictureError> {
    let damaged = |error: png::DecodingError| Codec::Png.damaged(error);
    let limits = png::Limits { bytes: MAX_ALLOC as usize };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(data), limits);
    decoder.set_transformations(Transformations::IDENTITY);
    let header = decoder.read_header_info().map_err(damaged)?;
    check_size(header.width, header.height)?;
    let mut reader = decoder.read_info().map_err(damaged)?;
    if reader.info().animation_control().is_some() {
        return Err(PictureError::Animated);
    }
    if reader.info().color_type != ColorType::Indexed {
        return Ok(());
    }
    let colours = reader.info().palette.as_ref().map_or(0, |palette| palette.len() / 3);
    let depth = reader.info().bit_depth;
    let width = reader.info().width as usize;
    while let Some(row) = reader.next_row().map_err(damaged)? {
        let indices = row.data().iter().flat_map(|&byte| indices(byte, depth)).take(width);
        if let Some(index) = indices.max().filter(|&index| usize::from(index) >= colours) {
            return Err(PictureError::Palette { index, colours });
        }
    }
    Ok(())
}

/// The palette indices in a byte of a row, the first in its highest bits.
fn indices(byte: u8, depth: BitDepth) -> impl Iterator<Item = u8> {
    let bits = depth as u32;
    let mask = u8::MAX >> (8 - bits.min(8));
    (0..8 / bits.min(8)).map(move |place| (byte >> (8 - bits * (place + 1))) & mask)
}

/// `[height, width, 3]`.
fn to_rgb8(picture: DynamicImage) -> Vec<u8> {
    match picture {
        DynamicImage::ImageRgb8(pixels) => pixels.into_raw(),
        DynamicImage::ImageRgb16(_)
        | DynamicImage::ImageRgba16(_)
        | DynamicImage::ImageLuma16(_)
        | DynamicImage::ImageLumaA16(_) => {
            picture.into_rgb16().into_raw().into_iter().map(|value| (value >> 8) as u8).collect()
        }
        other => other.into_rgb8().into_raw(),
    }
}
