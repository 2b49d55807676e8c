//! `sensor_msgs/msg/Image` to [`Frame`].
//!
//! The encoding string alone decides what the bytes mean; nothing is guessed from the data. 16-bit channels keep their
//! high byte (`v >> 8`, that is, rounding down); `is_bigendian` says which byte that is and is ignored for 8-bit
//! channels. Alpha is dropped, grey is replicated. `data` has to be exactly `step * height` bytes, as for cv_bridge.

use std::fmt;
use std::str::FromStr;

use crate::contract::{FRAME_SIDE, Frame, FrameError};

/// Encodings whose name says what the channels are.
pub const ENCODINGS: [&str; 10] =
    ["rgb8", "bgr8", "rgba8", "bgra8", "mono8", "rgb16", "bgr16", "rgba16", "bgra16", "mono16"];

/// What the fields of a message say about its bytes.
#[derive(Clone, Copy, Debug)]
pub struct ImageFields<'a> {
    pub encoding: &'a str,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Bytes from the start of one row to the start of the next.
    pub step: u32,
    pub is_bigendian: bool,
}

/// A picture, and what its user should be told about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    pub frame: Frame,
    pub notes: Vec<Note>,
}

/// Something about a picture that is accepted but worth one warning.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Note {
    #[error("the picture is grey; its values are repeated for red, green and blue")]
    Grey,
    #[error(
        "format '{format}' says that red and blue were swapped before compression; the colours are taken as the codec \
         defines them (to swap them, set the camera's `order` to bgr)"
    )]
    SwappedLabel { format: String },
    #[error("format '{format}' does not match the data, which is {codec}; the data decides")]
    CodecLabel { format: String, codec: &'static str },
}

/// Order of the channels, for data that does not say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColourOrder {
    Rgb,
    Bgr,
    Rgba,
    Bgra,
    Mono,
}

impl ColourOrder {
    pub const ALL: [ColourOrder; 5] = [
        ColourOrder::Rgb,
        ColourOrder::Bgr,
        ColourOrder::Rgba,
        ColourOrder::Bgra,
        ColourOrder::Mono,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ColourOrder::Rgb => "rgb",
            ColourOrder::Bgr => "bgr",
            ColourOrder::Rgba => "rgba",
            ColourOrder::Bgra => "bgra",
            ColourOrder::Mono => "mono",
        }
    }

    pub fn channels(self) -> usize {
        match self {
            ColourOrder::Mono => 1,
            ColourOrder::Rgb | ColourOrder::Bgr => 3,
            ColourOrder::Rgba | ColourOrder::Bgra => 4,
        }
    }
}

impl fmt::Display for ColourOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ColourOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        ColourOrder::ALL
            .into_iter()
            .find(|order| order.name() == text)
            .ok_or_else(|| format!("order '{text}' is not one of rgb, bgr, rgba, bgra, mono"))
    }
}

/// Why a message is not a [`Frame`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    #[error(
        "encoding '{encoding}' is not supported; accepted are {}, and 8UC1, 8UC3, 8UC4 where the camera's `order` says \
         what their channels are",
        ENCODINGS.join(", ")
    )]
    Encoding { encoding: String },
    #[error(
        "encoding '{encoding}' carries depth or another measurement, not colour; give a colour topic"
    )]
    NotColour { encoding: String },
    #[error(
        "encoding '{encoding}' does not say what its channels are; set the camera's `order` parameter ({accepted})"
    )]
    OrderNeeded { encoding: String, accepted: &'static str },
    #[error(
        "encoding '{encoding}' has {channels} channels, but the camera's `order` is '{order}'; set it to {accepted}"
    )]
    OrderMismatch { encoding: String, channels: usize, order: ColourOrder, accepted: &'static str },
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("step is {step} bytes, but a row of {width} pixels in {encoding} takes {needed}")]
    Step { step: u32, width: u32, encoding: String, needed: usize },
    #[error("data has {found} bytes, but step {step} times height {height} is {expected}")]
    Length { found: usize, step: u32, height: u32, expected: u64 },
}

/// Reads a picture; `order` is used by encodings that do not say what their channels are, and by no other.
///
/// `data` is taken over: `rgb8` without padding becomes the frame as it stands.
///
/// # Errors
/// See [`ImageError`]. Everything is checked before anything is allocated.
pub fn decode(
    fields: &ImageFields<'_>,
    data: Vec<u8>,
    order: Option<ColourOrder>,
) -> Result<Decoded, ImageError> {
    let pixel = PixelLayout::of(fields, order)?;
    let &ImageFields { width, height, step, .. } = fields;
    if !FRAME_SIDE.contains(&width) || !FRAME_SIDE.contains(&height) {
        return Err(FrameError::Size { width, height }.into());
    }
    let row = width as usize * pixel.bytes();
    if (step as usize) < row {
        let encoding = fields.encoding.to_owned();
        return Err(ImageError::Step { step, width, encoding, needed: row });
    }
    let expected = u64::from(step) * u64::from(height);
    if data.len() as u64 != expected {
        return Err(ImageError::Length { found: data.len(), step, height, expected });
    }
    let rgb = pixel.to_rgb(data, row, step as usize);
    let notes = if pixel.channels == 1 { vec![Note::Grey] } else { Vec::new() };
    Ok(Decoded { frame: Frame::new(width, height, rgb)?, notes })
}

/// Where the colours of one pixel are.
#[derive(Clone, Copy)]
struct PixelLayout {
    channels: usize,
    blue_first: bool,
    /// Bytes per channel, and which of them is the most significant one.
    width: usize,
    high: usize,
}

impl PixelLayout {
    fn of(fields: &ImageFields<'_>, order: Option<ColourOrder>) -> Result<Self, ImageError> {
        let encoding = || fields.encoding.to_owned();
        let (order, width) = match fields.encoding {
            "rgb8" => (ColourOrder::Rgb, 1),
            "bgr8" => (ColourOrder::Bgr, 1),
            "rgba8" => (ColourOrder::Rgba, 1),
            "bgra8" => (ColourOrder::Bgra, 1),
            "mono8" => (ColourOrder::Mono, 1),
            "rgb16" => (ColourOrder::Rgb, 2),
            "bgr16" => (ColourOrder::Bgr, 2),
            "rgba16" => (ColourOrder::Rgba, 2),
            "bgra16" => (ColourOrder::Bgra, 2),
            "mono16" => (ColourOrder::Mono, 2),
            "8UC1" | "8UC3" | "8UC4" => {
                let (channels, accepted) = match fields.encoding {
                    "8UC1" => (1, "mono"),
                    "8UC3" => (3, "rgb or bgr"),
                    _ => (4, "rgba or bgra"),
                };
                let order = order
                    .ok_or_else(|| ImageError::OrderNeeded { encoding: encoding(), accepted })?;
                if order.channels() != channels {
                    return Err(ImageError::OrderMismatch {
                        encoding: encoding(),
                        channels,
                        order,
                        accepted,
                    });
                }
                (order, 1)
            }
            "16UC1" | "16SC1" | "32SC1" | "32FC1" | "64FC1" => {
                return Err(ImageError::NotColour { encoding: encoding() });
            }
            _ => return Err(ImageError::Encoding { encoding: encoding() }),
        };
        let blue_first = matches!(order, ColourOrder::Bgr | ColourOrder::Bgra);
        let high = if width == 2 && !fields.is_bigendian { 1 } else { 0 };
        Ok(Self { channels: order.channels(), blue_first, width, high })
    }

    fn bytes(self) -> usize {
        self.channels * self.width
    }

    /// `data` is `[height, step]`, of which the first `row` bytes of each row are pixels.
    fn to_rgb(self, mut data: Vec<u8>, row: usize, step: usize) -> Vec<u8> {
        if self.channels == 1 {
            return self.grey_to_rgb(&data, row, step);
        }
        if self.bytes() == 3 {
            close_gaps(&mut data, row, step);
            if self.blue_first {
                swap_red_and_blue(&mut data);
            }
            return data;
        }
        // No row becomes longer, so each is written over what has been read.
        let rgb_row = row / self.bytes() * 3;
        let mut from = vec![0; row + 1];
        for y in 0..data.len() / step {
            from[..row].copy_from_slice(&data[y * step..y * step + row]);
            self.pick_row(
                &from[self.high..self.high + row],
                &mut data[y * rgb_row..(y + 1) * rgb_row],
            );
        }
        data.truncate(data.len() / step * rgb_row);
        data
    }

    fn grey_to_rgb(self, data: &[u8], row: usize, step: usize) -> Vec<u8> {
        let rgb_row = row / self.width * 3;
        let mut rgb = vec![0; data.len() / step * rgb_row];
        for (from, to) in data.chunks_exact(step).zip(rgb.chunks_exact_mut(rgb_row)) {
            match self.width {
                1 => repeat_grey::<1>(&from[..row], to, self.high),
                _ => repeat_grey::<2>(&from[..row], to, self.high),
            }
        }
        rgb
    }

    /// `from` starts at the high byte of the first channel.
    fn pick_row(self, from: &[u8], to: &mut [u8]) {
        match (self.bytes(), self.blue_first) {
            (4, false) => pick_three::<4, 0, 1, 2>(from, to),
            (4, true) => pick_three::<4, 2, 1, 0>(from, to),
            (6, false) => pick_three::<6, 0, 2, 4>(from, to),
            (6, true) => pick_three::<6, 4, 2, 0>(from, to),
            (_, false) => pick_three::<8, 0, 2, 4>(from, to),
            (_, true) => pick_three::<8, 4, 2, 0>(from, to),
        }
    }
}

/// Moves the rows of `[height, step]` together so that `[height, row]` is left.
fn close_gaps(data: &mut Vec<u8>, row: usize, step: usize) {
    if row == step {
        return;
    }
    let height = data.len() / step;
    for y in 1..height {
        data.copy_within(y * step..y * step + row, y * row);
    }
    data.truncate(height * row);
}

/// Exchanges the first and the third byte of every three.
pub(super) fn swap_red_and_blue(rgb: &mut [u8]) {
    // By way of a copy that stays in the cache: a conversion in place does not become vector instructions.
    let mut from = [0; 3 * 1024];
    for to in rgb.chunks_mut(from.len()) {
        let from = &mut from[..to.len()];
        from.copy_from_slice(to);
        pick_three::<3, 2, 1, 0>(from, to);
    }
}

/// One grey value of `WIDTH` bytes per pixel, its byte number `high` three times.
#[multiversion::multiversion(targets("x86_64+avx2", "x86_64+ssse3"))]
fn repeat_grey<const WIDTH: usize>(from: &[u8], to: &mut [u8], high: usize) {
    for (value, pixel) in from.as_chunks::<WIDTH>().0.iter().zip(to.as_chunks_mut::<3>().0) {
        *pixel = [value[high]; 3];
    }
}

/// Of pixels that are `BYTES` long, the bytes at `RED`, `GREEN` and `BLUE`.
#[multiversion::multiversion(targets("x86_64+avx2", "x86_64+ssse3"))]
fn pick_three<const BYTES: usize, const RED: usize, const GREEN: usize, const BLUE: usize>(
    from: &[u8],
    to: &mut [u8],
) {
    for (value, pixel) in from.as_chunks::<BYTES>().0.iter().zip(to.as_chunks_mut::<3>().0) {
        *pixel = [value[RED], value[GREEN], value[BLUE]];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WIDTH: u32 = 70;
    const HEIGHT: u32 = 66;

    fn fields(encoding: &str, step: u32) -> ImageFields<'_> {
        ImageFields { encoding, width: WIDTH, height: HEIGHT, step, is_bigendian: false }
    }

    /// A different value in every channel of every pixel, as far as 8 bits go.
    fn picture() -> Vec<u8> {
        (0..3 * WIDTH * HEIGHT).map(|i| (i * 7 + i / 251) as u8).collect()
    }

    /// `picture` with every pixel rewritten by `pixel`.
    fn rewritten(pixel: impl Fn([u8; 3]) -> Vec<u8>) -> Vec<u8> {
        picture().chunks_exact(3).flat_map(|p| pixel([p[0], p[1], p[2]])).collect()
    }

    fn rgb_of(fields: &ImageFields<'_>, data: Vec<u8>, order: Option<ColourOrder>) -> Vec<u8> {
        decode(fields, data, order).expect("decodes").frame.rgb().to_vec()
    }

    #[test]
    fn case_38_every_colour_order_gives_the_same_pixels() {
        let cases = [
            ("rgb8", 3, rewritten(|[r, g, b]| vec![r, g, b])),
            ("bgr8", 3, rewritten(|[r, g, b]| vec![b, g, r])),
            ("rgba8", 4, rewritten(|[r, g, b]| vec![r, g, b, 9])),
            ("bgra8", 4, rewritten(|[r, g, b]| vec![b, g, r, 9])),
            ("rgb16", 6, rewritten(|[r, g, b]| vec![255, r, 255, g, 255, b])),
            ("bgr16", 6, rewritten(|[r, g, b]| vec![0, b, 0, g, 0, r])),
            ("rgba16", 8, rewritten(|[r, g, b]| vec![1, r, 2, g, 3, b, 4, 5])),
            ("bgra16", 8, rewritten(|[r, g, b]| vec![1, b, 2, g, 3, r, 4, 5])),
        ];
        for (encoding, bytes, data) in cases {
            let decoded = decode(&fields(encoding, bytes * WIDTH), data, None).expect(encoding);
            assert_eq!(decoded.frame.rgb(), picture(), "{encoding}");
            assert_eq!(decoded.notes, [], "{encoding}");
        }
    }

    #[test]
    fn case_02_padded_rows() {
        for (encoding, bytes) in
            [("rgb8", 3), ("bgr8", 3), ("bgra8", 4), ("mono8", 1), ("mono16", 2), ("rgba16", 8)]
        {
            let row = bytes * WIDTH as usize;
            let packed: Vec<u8> =
                (0..row * HEIGHT as usize).map(|i| (i * 13 + i / 97) as u8).collect();
            let padded: Vec<u8> =
                packed.chunks_exact(row).flat_map(|r| r.iter().copied().chain([0xEE; 6])).collect();
            assert_eq!(
                rgb_of(&fields(encoding, row as u32 + 6), padded, None),
                rgb_of(&fields(encoding, row as u32), packed, None),
                "{encoding}"
            );
        }
    }

    #[test]
    fn case_02_the_reported_size() {
        let (width, height, step) = (638, 480, 1920);
        let fields = ImageFields { encoding: "rgb8", width, height, step, is_bigendian: false };
        let data: Vec<u8> = (0..step * height).map(|i| (i % step % 251) as u8).collect();
        let frame = decode(&fields, data, None).expect("decodes").frame;
        assert_eq!(frame.rgb().len(), 3 * 638 * 480);
        let last_row = &frame.rgb()[3 * 638 * 479..];
        assert!(last_row.iter().enumerate().all(|(x, &value)| value == (x % 251) as u8));
    }

    #[test]
    fn case_55_grey_is_replicated_and_flagged() {
        let grey: Vec<u8> = (0..WIDTH * HEIGHT).map(|i| (i * 3) as u8).collect();
        let expected: Vec<u8> = grey.iter().flat_map(|&v| [v, v, v]).collect();
        let decoded = decode(&fields("mono8", WIDTH), grey, None).expect("decodes");
        assert_eq!(decoded.frame.rgb(), expected);
        assert_eq!(decoded.notes, [Note::Grey]);
    }

    #[test]
    fn case_55_generic_encodings_need_an_explicit_order() {
        let bgr = rewritten(|[r, g, b]| vec![b, g, r]);
        let c3 = fields("8UC3", 3 * WIDTH);
        let error = decode(&c3, bgr.clone(), None).expect_err("no order");
        assert!(error.to_string().contains("`order` parameter (rgb or bgr)"), "{error}");
        assert_eq!(rgb_of(&c3, bgr.clone(), Some(ColourOrder::Bgr)), picture());
        assert_eq!(rgb_of(&c3, picture(), Some(ColourOrder::Rgb)), picture());
        let error = decode(&c3, bgr, Some(ColourOrder::Bgra)).expect_err("four channels for three");
        assert!(matches!(error, ImageError::OrderMismatch { channels: 3, .. }), "{error}");

        let grey: Vec<u8> = vec![7; (WIDTH * HEIGHT) as usize];
        let c1 = fields("8UC1", WIDTH);
        assert!(matches!(decode(&c1, grey.clone(), None), Err(ImageError::OrderNeeded { .. })));
        assert_eq!(
            rgb_of(&c1, grey, Some(ColourOrder::Mono)),
            vec![7; 3 * (WIDTH * HEIGHT) as usize]
        );

        let bgra = rewritten(|[r, g, b]| vec![b, g, r, 0]);
        assert_eq!(rgb_of(&fields("8UC4", 4 * WIDTH), bgra, Some(ColourOrder::Bgra)), picture());
    }

    #[test]
    fn an_order_never_overrides_an_encoding_that_says_it() {
        assert_eq!(
            rgb_of(&fields("rgb8", 3 * WIDTH), picture(), Some(ColourOrder::Bgr)),
            picture()
        );
    }

    #[test]
    fn case_57_endianness_matters_for_16_bits_alone() {
        let big = ImageFields { is_bigendian: true, ..fields("mono16", 2 * WIDTH) };
        let data: Vec<u8> = (0..WIDTH * HEIGHT).flat_map(|i| [i as u8, 0x55]).collect();
        let expected: Vec<u8> = (0..WIDTH * HEIGHT).flat_map(|i| [i as u8; 3]).collect();
        assert_eq!(rgb_of(&big, data, None), expected);

        let big = ImageFields { is_bigendian: true, ..fields("rgb8", 3 * WIDTH) };
        assert_eq!(rgb_of(&big, picture(), None), picture());
    }

    #[test]
    fn sixteen_bits_round_down() {
        let values = [0u16, 255, 256, 511, 32_767, 65_280, 65_535];
        let data: Vec<u8> = (0..(WIDTH * HEIGHT) as usize)
            .flat_map(|i| values[i % values.len()].to_le_bytes())
            .collect();
        let rgb = rgb_of(&fields("mono16", 2 * WIDTH), data, None);
        let expected = [0, 0, 1, 1, 127, 255, 255];
        assert!(
            rgb.chunks_exact(3).enumerate().all(|(i, p)| p == [expected[i % expected.len()]; 3])
        );
    }

    #[test]
    fn case_59_data_of_another_length_is_refused() {
        let step = 3 * WIDTH;
        for length in [0, step * (HEIGHT - 1), step * HEIGHT - 1, step * HEIGHT + 1] {
            let error =
                decode(&fields("rgb8", step), vec![0; length as usize], None).expect_err("length");
            assert!(matches!(error, ImageError::Length { .. }), "{error}");
            assert!(error.to_string().contains(&format!("{length} bytes")), "{error}");
        }
    }

    #[test]
    fn a_step_shorter_than_a_row_is_refused() {
        for step in [0, 3 * WIDTH - 1] {
            let error = decode(&fields("rgb8", step), vec![0; (step * HEIGHT) as usize], None);
            assert!(matches!(error, Err(ImageError::Step { needed: 210, .. })), "{error:?}");
        }
    }

    #[test]
    fn case_50_unknown_encodings_name_the_accepted_ones() {
        for encoding in ["yuv422_yuy2", "bayer_rggb8", "", "RGB8", "8UC2", "rgb8 "] {
            let error = decode(&fields(encoding, 3 * WIDTH), picture(), None).expect_err(encoding);
            assert!(error.to_string().contains("rgb8, bgr8"), "{error}");
        }
        for depth in ["16UC1", "32FC1"] {
            let error = decode(&fields(depth, 4 * WIDTH), vec![], Some(ColourOrder::Mono))
                .expect_err(depth);
            assert!(error.to_string().contains("depth"), "{error}");
        }
    }

    #[test]
    fn sizes_outside_of_the_range_are_refused_before_anything_is_allocated() {
        for (width, height) in
            [(63, 64), (64, 63), (4097, 64), (64, 4097), (u32::MAX, u32::MAX), (0, 0)]
        {
            let fields = ImageFields {
                encoding: "rgba16",
                width,
                height,
                step: u32::MAX,
                is_bigendian: false,
            };
            let error = decode(&fields, vec![], None).expect_err("size");
            assert!(matches!(error, ImageError::Frame(FrameError::Size { .. })), "{error}");
        }
        let smallest =
            ImageFields { encoding: "rgb8", width: 64, height: 64, step: 192, is_bigendian: false };
        assert!(decode(&smallest, vec![0; 64 * 192], None).is_ok());
    }

    #[test]
    fn unpadded_rgb8_is_moved_and_not_copied() {
        let data = picture();
        let address = data.as_ptr();
        let frame = decode(&fields("rgb8", 3 * WIDTH), data, None).expect("decodes").frame;
        assert_eq!(frame.rgb().as_ptr(), address);
    }

    proptest! {
        #[test]
        fn never_panics(
            encoding in prop_oneof![
                proptest::sample::select(ENCODINGS.to_vec()).prop_map(str::to_owned),
                proptest::sample::select(vec!["8UC1", "8UC3", "8UC4", "16UC1"]).prop_map(str::to_owned),
                ".{0,12}",
            ],
            width in prop_oneof![60u32..80, any::<u32>()],
            height in prop_oneof![60u32..80, any::<u32>()],
            padding in 0u32..9,
            bytes in 1u32..9,
            is_bigendian: bool,
            order in proptest::sample::select(
                ColourOrder::ALL.into_iter().map(Some).chain([None]).collect::<Vec<_>>()),
            missing in 0usize..3,
        ) {
            let step = width.wrapping_mul(bytes).wrapping_add(padding);
            let length = (u64::from(step) * u64::from(height)).min(1 << 16) as usize;
            let data = vec![0x5A; length.saturating_sub(missing)];
            let fields = ImageFields { encoding: &encoding, width, height, step, is_bigendian };
            if let Ok(decoded) = decode(&fields, data, order) {
                prop_assert_eq!(decoded.frame.rgb().len(), 3 * (width * height) as usize);
            }
        }
    }
}
