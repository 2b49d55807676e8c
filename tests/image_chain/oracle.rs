//! The N1.6 frame chain written down plainly, step by step, from the spec (n16 section 4): one sample at a time,
//! the letterbox painted, no shared code with the crate.

pub struct Picture {
    pub width: usize,
    pub height: usize,
    /// `[height, width, 3]`
    pub rgb: Vec<u8>,
}

pub struct Stages {
    pub resize1: Picture,
    pub crop: Picture,
    pub resize2: Picture,
    pub u8: Picture,
    /// `[3, side, side]`
    pub pixels: Vec<f32>,
}

impl Picture {
    fn from_fn(width: usize, height: usize, sample: impl Fn(usize, usize, usize) -> u8) -> Self {
        let mut rgb = Vec::with_capacity(3 * width * height);
        for y in 0..height {
            for x in 0..width {
                rgb.extend((0..3).map(|c| sample(x, y, c)));
            }
        }
        Self { width, height, rgb }
    }

    fn at(&self, x: usize, y: usize, c: usize) -> u8 {
        self.rgb[3 * (y * self.width + x) + c]
    }
}

pub fn chain(frame: Picture, edge: usize, fraction: f64, output: usize) -> Stages {
    let resize1 = area_resize(&letterbox(&frame), edge);
    let cropped = ((edge as f64 * fraction) as usize).max(1);
    let offset = (edge - cropped) / 2;
    let crop = Picture::from_fn(cropped, cropped, |x, y, c| resize1.at(x + offset, y + offset, c));
    let resize2 = area_resize(&crop, edge);
    let u8 = pillow_resize(&resize2, output);
    let value = |c, y, x| (f32::from(u8.at(x, y, c)) - 127.5) / 127.5;
    let rows = (0..3).flat_map(|c| (0..output).map(move |y| (c, y)));
    let pixels = rows.flat_map(|(c, y)| (0..output).map(move |x| value(c, y, x))).collect();
    Stages { resize1, crop, resize2, u8, pixels }
}

fn letterbox(frame: &Picture) -> Picture {
    let n = frame.width.max(frame.height);
    let (left, top) = ((n - frame.width) / 2, (n - frame.height) / 2);
    Picture::from_fn(n, n, |x, y, c| {
        let inside = x >= left && x < left + frame.width && y >= top && y < top + frame.height;
        if inside { frame.at(x - left, y - top, c) } else { 0 }
    })
}

/// A square of any side to a square of side `m`.
fn area_resize(source: &Picture, m: usize) -> Picture {
    let n = source.width;
    let inverse = m as f64 / n as f64;
    let scale = 1.0 / inverse;
    if n == m {
        Picture::from_fn(n, n, |x, y, c| source.at(x, y, c))
    } else if n < m {
        enlarge(source, m, inverse, scale)
    } else if (scale - scale.round()).abs() < 2.2e-16 {
        block_means(source, m, scale.round() as usize)
    } else {
        weighted_means(source, m, scale)
    }
}

fn block_means(source: &Picture, m: usize, k: usize) -> Picture {
    Picture::from_fn(m, m, |x, y, c| {
        let mut sum = 0u32;
        for dy in 0..k {
            for dx in 0..k {
                sum += u32::from(source.at(k * x + dx, k * y + dy, c));
            }
        }
        if k == 2 {
            ((sum + 2) >> 2) as u8
        } else {
            (sum as f32 * (1.0 / (k * k) as f32)).round_ties_even() as u8
        }
    })
}

fn weighted_means(source: &Picture, m: usize, scale: f64) -> Picture {
    let n = source.width;
    let table: Vec<Vec<(usize, f32)>> = (0..m).map(|d| area_entries(d, n, scale)).collect();
    let mut rows = vec![0f32; 3 * m * n];
    for y in 0..n {
        for (d, entries) in table.iter().enumerate() {
            for c in 0..3 {
                let mut acc = 0f32;
                for &(x, w) in entries {
                    acc += f32::from(source.at(x, y, c)) * w;
                }
                rows[3 * (y * m + d) + c] = acc;
            }
        }
    }
    Picture::from_fn(m, m, |x, d, c| {
        let mut out = None;
        for &(y, w) in &table[d] {
            let term = w * rows[3 * (y * m + x) + c];
            out = Some(out.map_or(term, |sum: f32| sum + term));
        }
        out.unwrap().round_ties_even().clamp(0.0, 255.0) as u8
    })
}

fn area_entries(d: usize, n: usize, scale: f64) -> Vec<(usize, f32)> {
    let f1 = d as f64 * scale;
    let f2 = f1 + scale;
    let cell = scale.min(n as f64 - f1);
    let b = f2.floor().min(n as f64 - 1.0);
    let a = f1.ceil().min(b);
    let mut entries = Vec::new();
    if a - f1 > 1e-3 {
        entries.push((a as usize - 1, ((a - f1) / cell) as f32));
    }
    for x in a as usize..b as usize {
        entries.push((x, (1.0 / cell) as f32));
    }
    if f2 - b > 1e-3 {
        entries.push((b as usize, ((f2 - b).min(1.0).min(cell) / cell) as f32));
    }
    entries
}

fn enlarge(source: &Picture, m: usize, inverse: f64, scale: f64) -> Picture {
    let n = source.width;
    let taps: Vec<(usize, usize, i32, i32)> = (0..m)
        .map(|d| {
            let mut x = (d as f64 * scale).floor() as usize;
            let mut f = ((d + 1) as f64 - (x + 1) as f64 * inverse) as f32;
            f = if f <= 0.0 { 0.0 } else { f - f.floor() };
            if x >= n - 1 {
                (x, f) = (n - 1, 0.0);
            }
            let weight = |f: f32| (f * 2048.0).round_ties_even() as i32;
            (x, (x + 1).min(n - 1), weight(1.0 - f), weight(f))
        })
        .collect();
    Picture::from_fn(m, m, |x, y, c| {
        let (x0, x1, a0, a1) = taps[x];
        let (y0, y1, b0, b1) = taps[y];
        let h = |y| a0 * i32::from(source.at(x0, y, c)) + a1 * i32::from(source.at(x1, y, c));
        ((((b0 * (h(y0) >> 4)) >> 16) + ((b1 * (h(y1) >> 4)) >> 16) + 2) >> 2) as u8
    })
}

fn pillow_resize(source: &Picture, m: usize) -> Picture {
    let n = source.width;
    if n == m {
        return Picture::from_fn(n, n, |x, y, c| source.at(x, y, c));
    }
    let table: Vec<(usize, Vec<i64>)> = (0..m).map(|d| pillow_weights(d, n, m)).collect();
    let rounded = |sum: i64| ((sum + (1 << 21)) >> 22).clamp(0, 255) as u8;
    let narrowed = Picture::from_fn(m, n, |x, y, c| {
        let (lo, weights) = &table[x];
        rounded(weights.iter().zip(*lo..).map(|(k, x)| k * i64::from(source.at(x, y, c))).sum())
    });
    Picture::from_fn(m, m, |x, y, c| {
        let (lo, weights) = &table[y];
        rounded(weights.iter().zip(*lo..).map(|(k, y)| k * i64::from(narrowed.at(x, y, c))).sum())
    })
}

fn pillow_weights(d: usize, n: usize, m: usize) -> (usize, Vec<i64>) {
    let s = n as f64 / m as f64;
    let q = s.max(1.0);
    let support = 2.0 * q;
    let centre = (d as f64 + 0.5) * s;
    let lo = ((centre - support + 0.5).trunc() as i64).max(0);
    let hi = ((centre + support + 0.5).trunc() as i64).min(n as i64);
    let kernel = |x: f64| {
        let (a, x) = (-0.5, x.abs());
        if x < 1.0 {
            ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
        } else if x < 2.0 {
            (((x - 5.0) * x + 8.0) * x - 4.0) * a
        } else {
            0.0
        }
    };
    let mut weights = Vec::new();
    let mut sum = 0.0;
    for j in lo..hi {
        let w = kernel((j as f64 - centre + 0.5) * (1.0 / q));
        sum += w;
        weights.push(w);
    }
    let fixed = |w: f64| {
        let scaled = w / sum * 4_194_304.0;
        (if scaled < 0.0 { scaled - 0.5 } else { scaled + 0.5 }).trunc() as i64
    };
    (lo as usize, weights.into_iter().map(fixed).collect())
}
