//! `sensor_msgs/msg/CompressedImage` to [`Frame`](crate::contract::Frame): JPEG and PNG.
//!
//! The picture is decoded by [`crate::picture`]. The `format` label is free text that drivers fill in differently: it is
//! read only to refuse depth and to warn where it contradicts the data.

use super::image::{ColourOrder, Decoded, Note, swap_red_and_blue};
use crate::picture::{self, Codec, PictureError};

/// Words of a label that mean a measurement instead of colour.
const DEPTH_WORDS: [&str; 6] = ["16uc1", "16sc1", "32sc1", "32fc1", "64fc1", "compresseddepth"];

/// Why a message is not a frame.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompressedError {
    #[error("format '{format}' carries depth, not colour; give a colour topic")]
    Depth { format: String },
    #[error(
        "the data (format '{format}', {length} bytes, starting {start:02x?}) is neither JPEG nor PNG"
    )]
    Codec { format: String, length: usize, start: Vec<u8> },
    #[error(transparent)]
    Picture(PictureError),
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
    let mut picture = picture::decode(data).map_err(|error| match error {
        PictureError::Codec { length, start } => {
            CompressedError::Codec { format: format.to_owned(), length, start }
        }
        other => CompressedError::Picture(other),
    })?;
    let (codec, grey) = (picture.codec, picture.grey);
    let blue_first = matches!(order, Some(ColourOrder::Bgr | ColourOrder::Bgra));
    if blue_first {
        swap_red_and_blue(&mut picture.rgb);
    }

    let mut notes = Vec::new();
    if grey {
        notes.push(Note::Grey);
    }
    if order.is_none() && !grey && label.contains("compressed rgb") {
        notes.push(Note::SwappedLabel { format: format.to_owned() });
    }
    if label.contains(other_word(codec)) {
        notes.push(Note::CodecLabel { format: format.to_owned(), codec: codec.name() });
    }
    let frame = picture.into_frame().map_err(|error| CompressedError::Picture(error.into()))?;
    Ok(Decoded { frame, notes })
}

/// What a label that names another codec than the data's contains, in lower case: `jpeg` and `jpg`, or `png`.
fn other_word(codec: Codec) -> &'static str {
    match codec {
        Codec::Jpeg => "png",
        Codec::Png => "jp",
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use image::{
        DynamicImage, GrayImage, ImageBuffer, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage,
    };
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
    fn damage_is_refused() {
        let jpeg = encoded(red_card(), ImageFormat::Jpeg);
        let cut = &jpeg[..jpeg.len() - 2];
        let error = PictureError::CutOff { length: cut.len() };
        assert_eq!(decode("jpeg", cut, None), Err(CompressedError::Picture(error)));
        let padded: Vec<u8> = jpeg.iter().copied().chain([0; 100]).collect();
        assert!(decode("jpeg", &padded, None).is_ok());

        let png = encoded(red_card(), ImageFormat::Png);
        decode("png", &png[..png.len() / 2], None).expect_err("half a PNG");
        // A header that promises 60000x60000 pixels over a few bytes of data.
        let mut png = encoded(RgbImage::new(64, 64), ImageFormat::Png);
        png[16..20].copy_from_slice(&60_000u32.to_be_bytes());
        png[20..24].copy_from_slice(&60_000u32.to_be_bytes());
        assert!(decode("png", &png, None).is_err());
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
            let prefix: &[u8] = [&b"\xFF\xD8\xFF"[..], b"\x89PNG\r\n\x1a\n", &[]][start];
            let _ = decode("", &[prefix, &data].concat(), None);
        }
    }
}
