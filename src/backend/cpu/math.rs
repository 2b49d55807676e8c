//! Functions of one f32, written so that loops over them become vector code.

use crate::program::Activation;

/// `activation(x)`.
pub fn activate(activation: Activation, x: f32) -> f32 {
    match activation {
        Activation::Identity => x,
        Activation::Relu => x.max(0.0),
        Activation::Silu => silu(x),
        Activation::GeluTanh => gelu_tanh(x),
        Activation::GeluErf => gelu_erf(x),
    }
}

/// `activation` of every value in place.
#[inline(always)]
pub fn activate_all(activation: Activation, values: &mut [f32]) {
    if activation != Activation::Identity {
        values.iter_mut().for_each(|value| *value = activate(activation, *value));
    }
}

/// `x / (1 + e^-x)`
pub fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

/// `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`
pub fn gelu_tanh(x: f32) -> f32 {
    let inner = 0.797_884_6 * (x + 0.044715 * x * x * x);
    0.5 * x * (1.0 + inner.tanh())
}

/// `0.5 x (1 + erf(x / sqrt 2))`
pub fn gelu_erf(x: f32) -> f32 {
    // Abramowitz and Stegun 7.1.26, in f64.
    let z = f64::from(x.abs()) * std::f64::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.3275911 * z);
    let poly = t
        * (0.254829592
            + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    let erf = (1.0 - poly * (-z * z).exp()).copysign(f64::from(x));
    (0.5 * f64::from(x) * (1.0 + erf)) as f32
}
