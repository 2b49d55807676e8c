//! `sensor_msgs/msg/CompressedImage` to [`Frame`]: JPEG and PNG.
//!
//! The codec is found from the bytes. The `format` label is free text that drivers fill in differently: it is read only
//! to refuse depth and to warn where it contradicts the data. 16-bit PNG channels keep their high byte, alpha is
//! dropped.

use std::io::Cursor;

use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};

use super::image::{ColourOrder, Decoded, Note, swap_red_and_blue};
use crate::contract::{FRAME_SIDE, Frame, FrameError};

/// Bytes that a decoder may allocate: the largest accepted picture with four 16-bit channels, and half as much again.
const MAX_ALLOC: u64 = 3 * (*FRAME_SIDE.end() as u64) * (*FRAME_SIDE.end() as u64) * 8 / 2;

const JPEG_START: [u8; 3] = [0xFF, 0xD8, 0xFF];
const PNG_START: [u8; 8] = *b"\x89PNG\r\n\x1a\n";
/// Second byte of the JPEG marker in front of the compressed picture, and of the one after it.
const JPEG_SCAN: u8 = 0xDA;
const JPEG_END: u8 = 0xD9;

/// Words of a label that mean a measurement instead of colour.
const DEPTH_WORDS: [&str; 6] = ["16uc1", "16sc1", "32sc1", "32fc1", "64fc1", "compresseddepth"];

/// First bytes that an error shows of data that is no picture.
const SHOWN_BYTES: usize = 8;

/// Why a message is not a [`Frame`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompressedError {
    #[error("format '{format}' carries depth, not colour; give a colour topic")]
    Depth { format: String },
    #[error(
        "the data (format '{format}', {length} bytes, starting {start:02x?}) is neither JPEG nor PNG"
    )]
    Codec { format: String, length: usize, start: Vec<u8> },
    #[error("the JPEG data ends after {length} bytes without its end marker: it was cut off")]
    CutOff { length: usize },
    #[error("the {codec} data cannot be decoded: {reason}")]
    Damaged { codec: &'static str, reason: String },
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// Decodes a picture.
///
/// JPEG and PNG define their colours; `order` blue first swaps red and blue of what the codec gives, for drivers that
/// compress with swapped channels.
///
/// # Errors
/// See [`CompressedError`]. The size is checked before the pixels are decoded.
pub fn decode(
    format: &str,
    data: &[u8],
    order: Option<ColourOrder>,
) -> Result<Decoded, CompressedError> {
    let label = format.to_lowercase();
    let mut words = label.split(|c: char| !c.is_alphanumeric());
    if words.any(|word| DEPTH_WORDS.contains(&word)) {
        return Err(CompressedError::Depth { format: format.to_owned() });
    }
    let codec = Codec::of(data).ok_or_else(|| CompressedError::Codec {
        format: format.to_owned(),
        length: data.len(),
        start: data[..data.len().min(SHOWN_BYTES)].to_vec(),
    })?;
    if codec == Codec::Jpeg && !jpeg_is_whole(data) {
        return Err(CompressedError::CutOff { length: data.len() });
    }

    let picture = codec.decode(data)?;
    let (width, height) = (picture.width(), picture.height());
    let grey = !picture.color().has_color();
    let mut rgb = to_rgb8(picture);
    let blue_first = matches!(order, Some(ColourOrder::Bgr | ColourOrder::Bgra));
    if blue_first {
        swap_red_and_blue(&mut rgb);
    }

    let mut notes = Vec::new();
    if grey {
        notes.push(Note::Grey);
    }
    if order.is_none() && !grey && label.contains("compressed rgb") {
        notes.push(Note::SwappedLabel { format: format.to_owned() });
    }
    if label.contains(codec.other().word()) {
        notes.push(Note::CodecLabel { format: format.to_owned(), codec: codec.name() });
    }
    Ok(Decoded { frame: Frame::new(width, height, rgb)?, notes })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Codec {
    Jpeg,
    Png,
}

impl Codec {
    fn of(data: &[u8]) -> Option<Self> {
        if data.starts_with(&JPEG_START) {
            Some(Codec::Jpeg)
        } else if data.starts_with(&PNG_START) {
            Some(Codec::Png)
        } else {
            None
        }
    }

    fn other(self) -> Self {
        match self {
            Codec::Jpeg => Codec::Png,
            Codec::Png => Codec::Jpeg,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Codec::Jpeg => "JPEG",
            Codec::Png => "PNG",
        }
    }

    /// What a label that names the codec contains, in lower case: `jpeg` and `jpg`, or `png`.
    fn word(self) -> &'static str {
        match self {
            Codec::Jpeg => "jp",
            Codec::Png => "png",
        }
    }

    fn decode(self, data: &[u8]) -> Result<DynamicImage, CompressedError> {
        let damaged = |error: image::ImageError| CompressedError::Damaged {
            codec: self.name(),
            reason: error.to_string(),
        };
        let format = match self {
            Codec::Jpeg => ImageFormat::Jpeg,
            Codec::Png => ImageFormat::Png,
        };
        let mut limits = Limits::default();
        limits.max_alloc = Some(MAX_ALLOC);
        let mut reader = ImageReader::with_format(Cursor::new(data), format);
        reader.limits(limits);
        let decoder = reader.into_decoder().map_err(damaged)?;
        let (width, height) = decoder.dimensions();
        if !FRAME_SIDE.contains(&width) || !FRAME_SIDE.contains(&height) {
            return Err(FrameError::Size { width, height }.into());
        }
        DynamicImage::from_decoder(decoder).map_err(damaged)
    }
}

/// Whether an end marker stands behind the last scan. Decoders fill what a cut-off stream lacks with grey and say
/// nothing. Inside of a scan neither marker can occur; a thumbnail's own ones stand in front of it.
fn jpeg_is_whole(data: &[u8]) -> bool {
    let is = |pair: &[u8], marker: u8| pair == [0xFF, marker];
    let Some(end) = data.windows(2).rposition(|pair| is(pair, JPEG_END)) else {
        return false;
    };
    !data[end..].windows(2).any(|pair| is(pair, JPEG_SCAN))
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

#[cfg(test)]
mod tests {
    use super::*;
    use image::{GrayImage, ImageBuffer, Rgb, RgbImage, Rgba, RgbaImage};
    use proptest::prelude::*;

    fn red_card() -> RgbImage {
        RgbImage::from_pixel(96, 80, Rgb([250, 8, 4]))
    }

    fn encoded(picture: impl Into<DynamicImage>, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        picture.into().write_to(&mut bytes, format).expect("encodes");
        bytes.into_inner()
    }

    fn is_red(decoded: &Decoded) -> bool {
        decoded.frame.rgb().chunks_exact(3).all(|p| p[0] > 240 && p[1] < 20 && p[2] < 20)
    }

    #[test]
    fn case_39_labels_never_change_the_colours() {
        let jpeg = encoded(red_card(), ImageFormat::Jpeg);
        for label in [
            "rgb8; jpeg compressed bgr8",
            "bgr8; jpeg compressed bgr8",
            "rgb8; jpeg compressed rgb8",
            "RGB8; JPEG Compressed RGB8",
            "jpeg",
            "jpg",
            "JPEG",
            "png",
            "",
            "something of a driver",
        ] {
            let decoded = decode(label, &jpeg, None).expect(label);
            assert!(is_red(&decoded), "{label}");
            let swapped = Note::SwappedLabel { format: label.to_owned() };
            assert_eq!(
                decoded.notes.contains(&swapped),
                label.to_lowercase().contains("compressed rgb8"),
                "{label}"
            );
            let other_codec = Note::CodecLabel { format: label.to_owned(), codec: "JPEG" };
            assert_eq!(decoded.notes.contains(&other_codec), label == "png", "{label}");
        }
    }

    #[test]
    fn case_39_a_label_is_obeyed_by_parameter_only() {
        let png = encoded(red_card(), ImageFormat::Png);
        let decoded =
            decode("rgb8; png compressed rgb8", &png, Some(ColourOrder::Bgr)).expect("decodes");
        assert!(decoded.frame.rgb().chunks_exact(3).all(|p| p == [4, 8, 250]));
        assert_eq!(decoded.notes, []);
    }

    #[test]
    fn case_39_depth_is_refused() {
        let jpeg = encoded(red_card(), ImageFormat::Jpeg);
        for label in [
            "16UC1; jpeg compressed ",
            "16UC1; compressedDepth",
            "32FC1; compressedDepth png",
            "16uc1",
        ] {
            let error = decode(label, &jpeg, None).expect_err(label);
            assert_eq!(error, CompressedError::Depth { format: label.to_owned() });
        }
    }

    #[test]
    fn png_of_every_kind_of_pixel() {
        let rgb16 = ImageBuffer::<Rgb<u16>, _>::from_pixel(64, 64, Rgb([0xFAFF, 0x0800, 0x04FF]));
        let rgba16 =
            ImageBuffer::<Rgba<u16>, _>::from_pixel(64, 64, Rgba([0xFAFF, 0x0800, 0x04FF, 0x1000]));
        let rgba = RgbaImage::from_pixel(64, 64, Rgba([250, 8, 4, 0]));
        let pictures: [DynamicImage; 3] = [rgb16.into(), rgba16.into(), rgba.into()];
        for picture in pictures {
            let decoded =
                decode("png", &encoded(picture, ImageFormat::Png), None).expect("decodes");
            assert!(decoded.frame.rgb().chunks_exact(3).all(|p| p == [250, 8, 4]));
            assert_eq!(decoded.notes, []);
        }
        let grey = encoded(GrayImage::from_pixel(64, 64, image::Luma([77])), ImageFormat::Png);
        let decoded = decode("mono8; png compressed mono8", &grey, None).expect("decodes");
        assert!(decoded.frame.rgb().iter().all(|&v| v == 77));
        assert_eq!(decoded.notes, [Note::Grey]);
    }

    #[test]
    fn sizes_are_checked_before_the_pixels() {
        for (width, height) in [(63, 64), (64, 4097)] {
            let png = encoded(RgbImage::new(width, height), ImageFormat::Png);
            assert_eq!(decode("png", &png, None), Err(FrameError::Size { width, height }.into()));
        }
        // A header that promises 60000x60000 pixels over a few bytes of data.
        let mut png = encoded(RgbImage::new(64, 64), ImageFormat::Png);
        png[16..20].copy_from_slice(&60_000u32.to_be_bytes());
        png[20..24].copy_from_slice(&60_000u32.to_be_bytes());
        assert!(decode("png", &png, None).is_err());
    }

    #[test]
    fn data_that_was_cut_off_is_refused() {
        let jpeg = encoded(red_card(), ImageFormat::Jpeg);
        let cut = &jpeg[..jpeg.len() - 2];
        assert_eq!(decode("jpeg", cut, None), Err(CompressedError::CutOff { length: cut.len() }));
        let padded: Vec<u8> = jpeg.iter().copied().chain([0; 100]).collect();
        assert!(decode("jpeg", &padded, None).is_ok());

        let png = encoded(red_card(), ImageFormat::Png);
        let error = decode("png", &png[..png.len() / 2], None).expect_err("half a PNG");
        assert!(matches!(error, CompressedError::Damaged { codec: "PNG", .. }), "{error}");
    }

    #[test]
    fn other_data_is_named() {
        let error = decode("h264", &[0, 0, 0, 1, 0x67], None).expect_err("not a picture");
        let text = error.to_string();
        assert!(text.contains("h264") && text.contains("[00, 00, 00, 01, 67]"), "{text}");
        assert!(decode("jpeg", &[], None).is_err());
    }

    proptest! {
        #[test]
        fn never_panics_on_damage(
            png: bool,
            position in any::<proptest::sample::Index>(),
            value: u8,
            cut in any::<proptest::sample::Index>(),
            format in ".{0,20}",
        ) {
            let mut data = encoded(red_card(), if png { ImageFormat::Png } else { ImageFormat::Jpeg });
            let position = position.index(data.len());
            data[position] = value;
            let _ = decode(&format, &data, None);
            data.truncate(cut.index(data.len()));
            let _ = decode(&format, &data, None);
        }

        #[test]
        fn never_panics_on_noise(start in 0usize..3, data in proptest::collection::vec(any::<u8>(), 0..200)) {
            let prefix: &[u8] = [&JPEG_START[..], &PNG_START[..], &[]][start];
            let _ = decode("", &[prefix, &data].concat(), None);
        }
    }
}
