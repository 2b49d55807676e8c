//! What is changed: cases that are accepted as they stand.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gr00t_blackhole::serve::arrays::{Array, Dtype, write_npy};
use image::{DynamicImage, ImageFormat};
use serde_json::json;

use crate::stored;
use crate::targets::{self, camera, model};

/// The smallest side of a frame.
const SIDE: u32 = 64;

fn picture(format: ImageFormat, image: &DynamicImage) -> Vec<u8> {
    let mut data = Cursor::new(vec![]);
    image.write_to(&mut data, format).unwrap();
    data.into_inner()
}

/// A picture whose neighbouring pixels are alike, as those of a camera.
fn image() -> DynamicImage {
    DynamicImage::from(image::RgbImage::from_fn(SIDE, SIDE, |x, y| {
        image::Rgb([x as u8, y as u8, (x / 8 * y / 8) as u8])
    }))
}

pub fn pictures() -> Vec<Vec<u8>> {
    let image = image();
    let grey = DynamicImage::from(image.to_luma8());
    let mut all = vec![
        picture(ImageFormat::Jpeg, &image),
        picture(ImageFormat::Jpeg, &grey),
        picture(ImageFormat::Png, &image),
        picture(ImageFormat::Png, &grey),
        picture(ImageFormat::Png, &DynamicImage::from(image.to_rgba8())),
        picture(ImageFormat::Png, &DynamicImage::from(image.to_rgb16())),
    ];
    all.push(palette());
    all
}

/// A PNG of four colours, with two bits a pixel.
fn palette() -> Vec<u8> {
    let mut data = vec![];
    let mut encoder = png::Encoder::new(&mut data, SIDE, SIDE);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Two);
    encoder.set_palette((0..12).map(|value| value * 20).collect::<Vec<u8>>());
    let rows = vec![0b00_01_10_11; (SIDE * SIDE / 4) as usize];
    encoder.write_header().unwrap().write_image_data(&rows).unwrap();
    data
}

pub fn base64() -> Vec<Vec<u8>> {
    let text = |data: &[u8]| STANDARD.encode(data).into_bytes();
    let mut all: Vec<Vec<u8>> = pictures().iter().map(|data| text(data)).collect();
    let broken = all[0].chunks(76).map(<[u8]>::to_vec).collect::<Vec<_>>().join(&b"\r\n"[..]);
    let bare = all[1].iter().copied().filter(|byte| *byte != b'=').collect();
    all.extend([broken, bare]);
    all
}

/// Bodies with everything that a request can have.
pub fn bodies() -> Vec<Vec<u8>> {
    let text = STANDARD.encode(picture(ImageFormat::Jpeg, &image()));
    let plain = targets::body(&text);
    let mut seeded = plain.clone();
    seeded["images"] = json!({ camera(): [text] });
    seeded["seed"] = json!(7);
    seeded["state_dtype"] = json!("float64");
    seeded["return_normalized"] = json!(true);
    seeded["embodiment"] = json!(model().embodiment.tag);
    let mut noisy = plain.clone();
    let [rows, cols] = model().noise_shape;
    noisy["noise"] = json!(vec![vec![0.25; cols]; rows]);
    [plain, seeded, noisy].map(|body| body.to_string().into_bytes()).into()
}

pub fn messages() -> Vec<Vec<u8>> {
    let of = |messages: Vec<Vec<u8>>| messages.into_iter().filter(|bytes| targets::message(bytes));
    let requests = stored::exchanges().into_iter().map(|exchange| exchange.request).collect();
    let arrays = stored::arrays().into_iter().map(|(_, bytes)| bytes).collect();
    // Among the stored are some that are to be refused, and npy files.
    let (requests, arrays): (Vec<_>, Vec<_>) = (of(requests).collect(), of(arrays).collect());
    // There are many arrays, but more can go wrong in a request.
    requests.iter().cycle().take(arrays.len()).cloned().chain(arrays.iter().cloned()).collect()
}

pub fn npy_files() -> Vec<Vec<u8>> {
    let stored = stored::arrays().into_iter();
    let files = stored.filter(|(name, _)| name.starts_with("npy/") || name.starts_with("other/"));
    let text = Array::new(Dtype::Text { chars: 2 }, vec![2], vec![0; 16]).unwrap();
    files.map(|(_, bytes)| bytes).chain([write_npy(&text)]).collect()
}
