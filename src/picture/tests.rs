use std::io::Cursor;

use image::codecs::jpeg::JpegEncoder;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage};

use super::*;

/// A picture whose every block differs.
fn busy(width: u32, height: u32) -> RgbImage {
    let mut state = 7u32;
    RgbImage::from_fn(width, height, |x, y| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Rgb([(x * 2) as u8, (y * 3) as u8, (state >> 27) as u8 * 4])
    })
}

fn jpeg(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, 88).encode_image(&busy(width, height)).unwrap();
    bytes
}

fn scan_start(data: &[u8]) -> usize {
    data.windows(2).position(|pair| pair == [0xFF, 0xDA]).unwrap() + 14
}

#[test]
fn whole_jpegs_decode() {
    for (width, height) in [(64, 64), (65, 99), (320, 240)] {
        let picture = decode(&jpeg(width, height)).expect("whole");
        assert_eq!((picture.width, picture.height), (width, height));
    }
}

#[test]
fn jpegs_cut_anywhere_are_refused() {
    let whole = jpeg(160, 120);
    for length in (3..whole.len() - 1).step_by(7).chain([whole.len() - 2, whole.len() - 1]) {
        decode(&whole[..length]).expect_err("cut");
        if length > scan_start(&whole) && length + 2 < whole.len() {
            let ended = [&whole[..length], &[0xFF, 0xD9]].concat();
            let error = decode(&ended).expect_err("cut and ended");
            assert!(matches!(error, PictureError::Damaged { codec: Codec::Jpeg, .. }), "{error}");
        }
    }
}

#[test]
fn zeroed_and_most_overwritten_jpegs_are_refused() {
    let whole = jpeg(160, 120);
    let start = scan_start(&whole);
    let mut zeroed = whole.clone();
    let end = zeroed.len() - 2;
    zeroed[start + (end - start) / 2..end].fill(0);
    decode(&zeroed).expect_err("zeroed");
    // The codes may fall into step again with as many blocks as before; that cannot be seen.
    let places: Vec<usize> = (start..end - 40).step_by(101).collect();
    let unseen = places.iter().filter(|&&place| {
        let mut damaged = whole.clone();
        damaged[place..place + 40].fill(0x55);
        decode(&damaged).is_ok()
    });
    let unseen = unseen.count();
    assert!(unseen * 2 < places.len(), "{unseen} of {} unseen", places.len());
}

/// Segments behind a whole scan that cost nothing to write and would cost much to walk.
#[test]
fn scans_of_nothing_and_second_frames_are_refused() {
    let whole = jpeg(160, 120);
    let end = whole.len() - 2;
    let empty_scan = [0xFF, 0xDA, 0x00, 0x03, 0x00];
    let second_frame = [0xFF, 0xC0, 0, 11, 8, 0xFF, 0xFF, 0xFF, 0xFF, 1, 1, 0x11, 0];
    for (segment, reason) in [(&empty_scan[..], "too short"), (&second_frame, "two frames")] {
        let damaged = [&whole[..end], &segment.repeat(1000), &whole[end..]].concat();
        let error = decode(&damaged).expect_err("refused");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn sizes_out_of_range_are_told_alike() {
    for (width, height) in [(63, 64), (64, 4097)] {
        let error = PictureError::from(FrameError::Size { width, height });
        assert_eq!(decode(&jpeg(width, height)), Err(error.clone()));
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::from(RgbImage::new(width, height))
            .write_to(&mut bytes, ImageFormat::Png)
            .unwrap();
        assert_eq!(decode(&bytes.into_inner()), Err(error));
    }
}

/// A 64x64 PNG of palette indices, all `index`.
fn indexed(index: u8, animated: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut bytes, 64, 64);
    encoder.set_color(::png::ColorType::Indexed);
    encoder.set_depth(::png::BitDepth::Four);
    encoder.set_palette(vec![10, 20, 30, 40, 50, 60]);
    if animated {
        encoder.set_animated(1, 0).unwrap();
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&vec![index << 4 | index; 64 * 32]).unwrap();
    writer.finish().unwrap();
    bytes
}

#[test]
fn colours_outside_of_the_palette_are_refused() {
    assert!(decode(&indexed(1, false)).unwrap().rgb.chunks(3).all(|pixel| pixel == [40, 50, 60]));
    let error = PictureError::Palette { index: 2, colours: 2 };
    assert_eq!(decode(&indexed(2, false)), Err(error));
    assert_eq!(decode(&indexed(1, true)), Err(PictureError::Animated));
}

#[test]
fn errors_stand_on_one_line() {
    let whole = jpeg(160, 120);
    for length in 0..whole.len().min(900) {
        let text = decode(&whole[..length]).expect_err("cut").to_string();
        assert!(!text.contains('\n'), "{text}");
    }
}
