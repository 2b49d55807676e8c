//! The frames of the N1.5 goldens: drawn with integers, so that a size and a seed are enough (spec n15 section 9.3).

use gr00t_blackhole::contract::Frame;

fn splitmix64(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Gradients in a checkerboard, noise in the lower right, eight squares, a white row and a black column.
pub fn pattern(seed: u64, width: u32, height: u32) -> Frame {
    let (w, h) = (width as usize, height as usize);
    let mut rgb = vec![0u8; 3 * w * h];
    let cell = (w.min(h) / 8).max(1);
    for (pixel, samples) in rgb.chunks_exact_mut(3).enumerate() {
        let (x, y) = (pixel % w, pixel / w);
        samples.copy_from_slice(&[
            (x * 255 / (w - 1).max(1)) as u8,
            (y * 255 / (h - 1).max(1)) as u8,
            ((x + y) * 255 / (w + h - 2).max(1)) as u8,
        ]);
        if (x / cell + y / cell + seed as usize) % 2 == 1 {
            samples.iter_mut().for_each(|sample| *sample = 255 - *sample);
        }
        if x >= w / 2 && y >= h / 2 {
            for (channel, sample) in samples.iter_mut().enumerate() {
                let index = (pixel * 3 + channel) as u64 + seed * 1_000_003;
                *sample = sample.wrapping_add((splitmix64(index) & 63) as u8);
            }
        }
    }
    let side = (w.min(h) / 10).max(1);
    for k in 0..8 {
        let (left, top) = (w * (2 * k + 1) / 18, h / 4);
        let color = [0, 1, 2].map(|channel| (37 * k + 85 * channel + 29 * seed as usize) as u8);
        for y in top..(top + side).min(h) {
            for x in left..(left + side).min(w) {
                rgb[3 * (y * w + x)..][..3].copy_from_slice(&color);
            }
        }
    }
    rgb[3 * w * (2 * h / 3)..][..3 * w].fill(255);
    for y in 0..h {
        rgb[3 * (y * w + w / 3)..][..3].fill(0);
    }
    Frame::new(width, height, rgb).unwrap()
}
