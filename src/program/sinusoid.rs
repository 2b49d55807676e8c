//! Sinusoid tables: timesteps and rotary positions.
//!
//! The reference computes frequencies and angles in f32; so does this, since at timestep 750 the last bit of a
//! frequency moves an angle by 6e-5.

/// Angles `t * exp(-i ln(10000) / divisor)` for `i` in `0..count`.
fn angles(timestep: f32, count: usize, divisor: f32) -> impl Iterator<Item = f32> {
    let log = 10000.0_f64.ln() as f32;
    (0..count).map(move |i| timestep * (-(i as f32) * log / divisor).exp())
}

fn sin(angle: f32) -> f32 {
    f64::from(angle).sin() as f32
}

fn cos(angle: f32) -> f32 {
    f64::from(angle).cos() as f32
}

/// `[sin, cos]` of width `width`: the action encoder's timestep encoding.
pub fn action_timestep(timestep: f32, width: usize) -> Vec<f32> {
    let half = width / 2;
    let angles: Vec<f32> = angles(timestep, half, half as f32).collect();
    angles.iter().map(|a| sin(*a)).chain(angles.iter().map(|a| cos(*a))).collect()
}

/// `[cos, sin]` of width `width`: the DiT's timestep projection. Note the order and the divisor.
pub fn dit_timestep(timestep: f32, width: usize) -> Vec<f32> {
    let half = width / 2;
    let angles: Vec<f32> = angles(timestep, half, (half - 1) as f32).collect();
    angles.iter().map(|a| cos(*a)).chain(angles.iter().map(|a| sin(*a))).collect()
}

/// Cosines and sines of the rotary embedding at positions `0..positions`, each `[positions, head_dim / 2]`.
pub fn rotary(positions: usize, head_dim: usize, theta: f64) -> (Vec<f32>, Vec<f32>) {
    let frequencies: Vec<f32> = (0..head_dim / 2)
        .map(|j| (1.0 / theta.powf(2.0 * j as f64 / head_dim as f64)) as f32)
        .collect();
    let angle_of = |position: usize| frequencies.iter().map(move |f| position as f32 * f);
    let cosines = (0..positions).flat_map(|p| angle_of(p).map(cos)).collect();
    let sines = (0..positions).flat_map(|p| angle_of(p).map(sin)).collect();
    (cosines, sines)
}
