//! Resizing a learned position table to the grid of the picture.

/// Resizes `table`, `[from * from, width]` in raster order, to `[to * to, width]`: separable bilinear without corner
/// alignment, widened when it reduces ("antialias"). Source: spec of N1.6, section 7.1.
pub fn resize(table: &[f32], from: usize, to: usize, width: usize) -> Vec<f32> {
    if from == to {
        return table.to_vec();
    }
    let taps = triangle_taps(from, to);
    let along_x = resize_axis(table, from, width, &taps);
    resize_axis(&along_x, from, to * width, &taps)
}

/// For every output position: the first source position and the weights from there on.
fn triangle_taps(from: usize, to: usize) -> Vec<(usize, Vec<f32>)> {
    let scale = from as f64 / to as f64;
    let support = scale.max(1.0);
    (0..to)
        .map(|position| {
            let centre = scale * (position as f64 + 0.5);
            let first = (centre - support + 0.5).max(0.0) as usize;
            let end = ((centre + support + 0.5) as usize).min(from);
            let weights: Vec<f64> = (first..end)
                .map(|source| (1.0 - ((source as f64 - centre + 0.5) / support).abs()).max(0.0))
                .collect();
            let total: f64 = weights.iter().sum();
            (first, weights.iter().map(|weight| (weight / total) as f32).collect())
        })
        .collect()
}

/// Resizes the middle axis of `source`, `[blocks, axis, inner]`.
fn resize_axis(source: &[f32], axis: usize, inner: usize, taps: &[(usize, Vec<f32>)]) -> Vec<f32> {
    let mut out = Vec::with_capacity(source.len() / axis * taps.len());
    for block in source.chunks_exact(axis * inner) {
        for (first, weights) in taps {
            for channel in 0..inner {
                let weighted = weights
                    .iter()
                    .enumerate()
                    .map(|(tap, weight)| weight * block[(first + tap) * inner + channel]);
                out.push(weighted.sum());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_ramp_stays_linear_inside() {
        let from = 16;
        let table: Vec<f32> =
            (0..from * from).map(|i| (i % from) as f32 + 100.0 * (i / from) as f32).collect();
        let resized = resize(&table, from, 18, 1);
        for row in 1..17 {
            for col in 1..17 {
                let x = (col as f32 + 0.5) * 16.0 / 18.0 - 0.5;
                let y = (row as f32 + 0.5) * 16.0 / 18.0 - 0.5;
                let expected = x + 100.0 * y;
                assert!((resized[row * 18 + col] - expected).abs() < 1e-3, "at {row},{col}");
            }
        }
        assert_eq!(resized[0], 0.0, "edges are clamped");
    }

    #[test]
    fn the_same_size_is_untouched_and_channels_stay_apart() {
        let table: Vec<f32> = (0..4 * 4 * 3).map(|i| i as f32).collect();
        assert_eq!(resize(&table, 4, 4, 3), table);
        let constant_channels: Vec<f32> = (0..4 * 4).flat_map(|_| [1.0, 2.0, 3.0]).collect();
        for chunk in resize(&constant_channels, 4, 6, 3).chunks_exact(3) {
            assert_eq!(chunk, [1.0, 2.0, 3.0]);
        }
    }
}
