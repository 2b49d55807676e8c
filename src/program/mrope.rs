//! Multi-axis rotary positions: text counts up on all three axes, pictures spread over height and width
//! (spec of N1.7, sections 5 and 7.2).

use super::sinusoid;

/// Position of every token on the axes time, height, width.
///
/// The prompt is `prefix` tokens of text, then per picture a start token, `grid[0] * grid[1]` image tokens and an end
/// token, then text up to `tokens`. `grid` is in tokens.
pub fn positions(tokens: usize, prefix: usize, images: usize, grid: [usize; 2]) -> Vec<[usize; 3]> {
    let mut positions = Vec::with_capacity(tokens);
    let mut next = 0;
    let text = |positions: &mut Vec<[usize; 3]>, next: &mut usize, count: usize| {
        positions.extend((*next..*next + count).map(|position| [position; 3]));
        *next += count;
    };
    text(&mut positions, &mut next, prefix);
    for _ in 0..images {
        text(&mut positions, &mut next, 1);
        for row in 0..grid[0] {
            positions.extend((0..grid[1]).map(|col| [next, next + row, next + col]));
        }
        next += grid[0].max(grid[1]);
        text(&mut positions, &mut next, 1);
    }
    let rest = tokens.saturating_sub(positions.len());
    text(&mut positions, &mut next, rest);
    positions
}

/// Cosines and sines, each `[tokens, head_dim / 2]`; the frequencies are dealt out to the axes in turn.
pub fn tables(
    positions: &[[usize; 3]],
    head_dim: usize,
    theta: f64,
    sections: [usize; 3],
) -> (Vec<f32>, Vec<f32>) {
    let half = head_dim / 2;
    let mut cos = Vec::with_capacity(positions.len() * half);
    let mut sin = Vec::with_capacity(positions.len() * half);
    for axes in positions {
        let per_axis = axes.map(|position| sinusoid::rotary_at(position, head_dim / 2, theta));
        for frequency in 0..half {
            let (c, s) = &per_axis[axis_of(frequency, sections)];
            cos.push(c[frequency]);
            sin.push(s[frequency]);
        }
    }
    (cos, sin)
}

/// Axis (0 time, 1 height, 2 width) of a rotary frequency.
fn axis_of(frequency: usize, sections: [usize; 3]) -> usize {
    let axis = frequency % 3;
    let within = frequency < 3 * sections[axis];
    if axis > 0 && within { axis } else { 0 }
}
