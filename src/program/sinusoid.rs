//! Sinusoid tables: timesteps and rotary positions.
//!
//! The reference computes frequencies and angles in f32; so does this, since at timestep 750 the last bit of a
//! frequency moves an angle by 6e-5.

/// Half the width of the DiT's timestep projection: 128 frequencies at every model size.
const DIT_FREQUENCIES: usize = 128;
/// Half the width of the released models' action timestep encoding.
const ACTION_FREQUENCIES: usize = 768;

/// Two frequencies lie so close to the middle between two f32 values that the reference's `exp`, which is not
/// correctly rounded, takes the other neighbour. Entry 4 of the DiT's table is one unit lower, entry 72 of the
/// action encoder's one unit higher (spec of N1.6, section 8).
const DIT_ROUNDED_DOWN: usize = 4;
const ACTION_ROUNDED_UP: usize = 72;

fn ln_10000() -> f32 {
    10000.0_f64.ln() as f32
}

/// `e^x`, correctly rounded but for ties.
fn exp(x: f32) -> f32 {
    f64::from(x).exp() as f32
}

fn sin(angle: f32) -> f32 {
    f64::from(angle).sin() as f32
}

fn cos(angle: f32) -> f32 {
    f64::from(angle).cos() as f32
}

/// `[sin, cos]` of width `width`: the action encoder's timestep encoding, frequencies `exp(-i (ln(10000) / half))`.
pub fn action_timestep(timestep: f32, width: usize) -> Vec<f32> {
    let half = width / 2;
    let step = ln_10000() / half as f32;
    let mut frequencies: Vec<f32> = (0..half).map(|i| exp(-(i as f32) * step)).collect();
    if half == ACTION_FREQUENCIES {
        frequencies[ACTION_ROUNDED_UP] = frequencies[ACTION_ROUNDED_UP].next_up();
    }
    let angles = || frequencies.iter().map(|frequency| timestep * frequency);
    angles().map(sin).chain(angles().map(cos)).collect()
}

/// `[cos, sin]`, 256 wide: the DiT's timestep projection, frequencies `exp(-i ln(10000) / 127)`. Note the order
/// and the divisor.
pub fn dit_timestep(timestep: f32) -> Vec<f32> {
    let last = (DIT_FREQUENCIES - 1) as f32;
    let mut frequencies: Vec<f32> =
        (0..DIT_FREQUENCIES).map(|i| exp(-(i as f32) * ln_10000() / last)).collect();
    frequencies[DIT_ROUNDED_DOWN] = frequencies[DIT_ROUNDED_DOWN].next_down();
    let angles = || frequencies.iter().map(|frequency| timestep * frequency);
    angles().map(cos).chain(angles().map(sin)).collect()
}

/// Width of [`dit_timestep`].
pub const DIT_TIMESTEP_WIDTH: usize = 2 * DIT_FREQUENCIES;

/// Cosines and sines of the rotary embedding at one position, each `count` long: frequencies `theta^(-j / count)`.
pub fn rotary_at(position: usize, count: usize, theta: f64) -> (Vec<f32>, Vec<f32>) {
    let angles = (0..count).map(|j| {
        let frequency = (1.0 / theta.powf(j as f64 / count as f64)) as f32;
        position as f32 * frequency
    });
    angles.map(|angle| (cos(angle), sin(angle))).unzip()
}

/// Cosines and sines at positions `0..positions`, each `[positions, head_dim / 2]`.
pub fn rotary(positions: usize, head_dim: usize, theta: f64) -> (Vec<f32>, Vec<f32>) {
    let (mut cosines, mut sines) = (Vec::new(), Vec::new());
    for position in 0..positions {
        let (cos, sin) = rotary_at(position, head_dim / 2, theta);
        cosines.extend(cos);
        sines.extend(sin);
    }
    (cosines, sines)
}
