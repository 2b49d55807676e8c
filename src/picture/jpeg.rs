//! JPEG.

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::{Codec, Picture, PictureError, check_size, scan};

/// Second byte of the marker in front of the compressed picture, and of the one after it.
const SCAN: u8 = 0xDA;
const END: u8 = 0xD9;

pub(super) fn decode(data: &[u8]) -> Result<Picture, PictureError> {
    let damaged = |error: zune_jpeg::errors::DecodeErrors| Codec::Jpeg.damaged(error);
    // The sides are checked here, with the error that raw pictures have.
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(usize::MAX)
        .set_max_height(usize::MAX);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(data), options);
    let headers = decoder.decode_headers();
    if headers.is_err() && !ends(data) {
        return Err(PictureError::CutOff { length: data.len() });
    }
    headers.map_err(damaged)?;
    let (width, height) =
        decoder.dimensions().ok_or_else(|| Codec::Jpeg.damaged("it has no size"))?;
    let (width, height) = (width as u32, height as u32); // 16 bits each in the header
    check_size(width, height)?;
    if !ends(data) {
        return Err(PictureError::CutOff { length: data.len() });
    }
    scan::check(data).map_err(|reason| Codec::Jpeg.damaged(reason))?;

    let grey = decoder.input_colorspace() == Some(ColorSpace::Luma);
    let colours = if grey { ColorSpace::Luma } else { ColorSpace::RGB };
    decoder.set_options(decoder.options().jpeg_set_out_colorspace(colours));
    let pixels = decoder.decode().map_err(damaged)?;
    let rgb = if grey { pixels.into_iter().flat_map(|v| [v; 3]).collect() } else { pixels };
    Ok(Picture { codec: Codec::Jpeg, width, height, rgb, grey })
}

/// Whether an end marker stands behind the last scan. Inside of a scan neither marker can occur; a thumbnail's own ones
/// stand in front of it.
fn ends(data: &[u8]) -> bool {
    let is = |pair: &[u8], marker: u8| pair == [0xFF, marker];
    let Some(end) = data.windows(2).rposition(|pair| is(pair, END)) else {
        return false;
    };
    let Some(scan) = data.windows(2).rposition(|pair| is(pair, SCAN)) else {
        return false;
    };
    scan < end
}
