//! The drawn frames of the N1.7 goldens (spec n17 section 10.3): gradients, a chequerboard, stripes, noise, a disc and
//! two lines, each over what was drawn before.

use gr00t_blackhole::contract::Frame;

use super::splitmix64;

/// Draws one frame; every division rounds down.
pub fn frame(width: u32, height: u32, seed: u32) -> Frame {
    let drawing = Drawing { width: width as usize, height: height as usize, seed: seed as usize };
    let mut rgb = Vec::with_capacity(3 * drawing.width * drawing.height);
    for y in 0..drawing.height {
        for x in 0..drawing.width {
            rgb.extend(drawing.pixel(x, y).map(|sample| sample as u8));
        }
    }
    Frame::new(width, height, rgb).unwrap()
}

struct Drawing {
    width: usize,
    height: usize,
    seed: usize,
}

impl Drawing {
    /// Samples from 0 to 255.
    fn pixel(&self, x: usize, y: usize) -> [usize; 3] {
        let &Self { width: w, height: h, seed } = self;
        let shorter = w.min(h);
        let mut pixel = [
            255 * x / (w - 1).max(1),
            255 * y / (h - 1).max(1),
            255 * (x + y) / (w + h - 2).max(1),
        ];
        let cell = (shorter / 24).max(3);
        let in_board = (w / 8..w / 2).contains(&x) && (h / 8..h / 2).contains(&y);
        if in_board && (x / cell + y / cell + seed) % 2 == 1 {
            pixel = pixel.map(|sample| 255 - sample);
        }
        if x >= 5 * w / 8 && y < h / 2 {
            let stripe = ((3 * x + 5 * y + 7 * seed) / 16) & 1;
            pixel = [255 * stripe, 255 - 200 * stripe, 90 * stripe + 40];
        }
        let block = (shorter / 180).max(1);
        if x < w / 2 && y >= 5 * h / 8 {
            let place = (y / block) * 8192 + x / block + seed * 1_000_003;
            let hash = splitmix64(place as u64) as usize;
            for (channel, sample) in pixel.iter_mut().enumerate() {
                *sample = (*sample + ((hash >> (8 * channel)) & 63)) % 256;
            }
        }
        let radius = shorter / 6;
        let (centre_x, centre_y) = (3 * w / 4 - (seed % 5) * (w / 40), 3 * h / 4);
        let (dx, dy) = (x.abs_diff(centre_x), y.abs_diff(centre_y));
        if dx * dx + dy * dy <= radius * radius {
            pixel = [200, 40 + 13 * (seed % 7), 30];
        }
        if y == 2 * h / 3 {
            pixel = [255; 3];
        }
        if x == w / 3 {
            pixel = [0; 3];
        }
        pixel
    }
}
