//! Functions of one f32, written so that loops over them become vector code: no branches, no tables, no calls.
//! They are meant for code that is compiled for a processor with fused multiply-add; without one they are slow.

use std::f32::consts::LOG2_E;

use crate::program::Activation;

/// Adding it to a number of less than 2^22 leaves the nearest whole number in the low bits of the sum.
const ROUND: f32 = 12_582_912.0;

/// `ln 2` in two parts; the first has so few bits that its products with exponents are exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// Beyond these `e^x` is infinity and zero.
const EXP_MAX: f32 = 89.0;
const EXP_MIN: f32 = -104.0;

/// `e^x`, within 2 ulp, subnormal results included.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    // Comparisons with NaN are false, so that it passes.
    let x = if x > EXP_MAX { EXP_MAX } else { x };
    let x = if x < EXP_MIN { EXP_MIN } else { x };
    let shifted = x.mul_add(LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(-LN_2_LOW, n.mul_add(-LN_2_HIGH, x));
    // (e^r - 1 - r) / r^2 on |r| <= ln(2) / 2
    let q = 0.001_381_459_9;
    let q = r.mul_add(q, 0.008_368_717);
    let q = r.mul_add(q, 0.041_668_39);
    let q = r.mul_add(q, 0.166_665_21);
    let q = r.mul_add(q, 0.499_999_94);
    let power = (r * r).mul_add(q, r) + 1.0;
    // 2^n in two steps: either factor is a normal number for every n that can occur.
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = exponent >> 1;
    power * power_of_two(half) * power_of_two(exponent - half)
}

#[inline(always)]
fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits((exponent.wrapping_add(127) as u32) << 23)
}

/// The error function, within 2 ulp.
#[inline(always)]
pub fn erf(x: f32) -> f32 {
    let t = x.abs();
    let square = t * t;
    // erf(t) / t - 1 on t < SMALL
    let s = 8.382_391e-5;
    let s = square.mul_add(s, -8.145_597_5e-4);
    let s = square.mul_add(s, 5.201_286e-3);
    let s = square.mul_add(s, -0.026_859_5);
    let s = square.mul_add(s, 0.112_836_97);
    let s = square.mul_add(s, -0.376_126_35);
    let s = square.mul_add(s, 0.128_379_17);
    // -ln(1 - erf(t)) on SMALL <= t <= 4
    const SMALL: f32 = 0.92;
    let u = if t > 4.0 { 4.0 } else { t };
    let l = -1.959_373e-4;
    let l = u.mul_add(l, 3.043_218e-3);
    let l = u.mul_add(l, -0.022_226_922);
    let l = u.mul_add(l, 0.103_931_6);
    let l = u.mul_add(l, 0.637_182_24);
    let l = u.mul_add(l, 1.127_675_7);
    let l = u.mul_add(l, 1.956_749_3e-4);
    let value = if t < SMALL { t.mul_add(s, t) } else { 1.0 - exp(-l) };
    value.copysign(x)
}

/// `x / (1 + e^-x)`
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    x / (1.0 + exp(-x))
}

/// `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`
#[inline(always)]
pub fn gelu_tanh(x: f32) -> f32 {
    // (1 + tanh u) / 2 = 1 / (1 + e^-2u)
    const TWICE_SQRT_2_OVER_PI: f32 = 1.595_769_2;
    let twice_u = TWICE_SQRT_2_OVER_PI * (x * x * x).mul_add(0.044_715, x);
    x / (1.0 + exp(-twice_u))
}

/// `0.5 x (1 + erf(x / sqrt 2))`
#[inline(always)]
pub fn gelu_erf(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// `activation` of every value in place.
#[inline(always)]
pub fn activate_all(activation: Activation, values: &mut [f32]) {
    // One loop each, so that the choice is not made per value.
    match activation {
        Activation::Identity => {}
        Activation::Relu => apply(values, relu),
        Activation::Silu => apply(values, silu),
        Activation::GeluTanh => apply(values, gelu_tanh),
        Activation::GeluErf => apply(values, gelu_erf),
    }
}

#[inline(always)]
fn relu(x: f32) -> f32 {
    // Unlike `max`, keeps NaN.
    if x < 0.0 { 0.0 } else { x }
}

#[inline(always)]
fn apply(values: &mut [f32], function: impl Fn(f32) -> f32) {
    for value in values {
        *value = function(*value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distance in units of the last place of the f32 nearest to `exact`.
    fn ulps(found: f32, exact: f64) -> f64 {
        let nearest = (exact as f32).abs().max(f32::MIN_POSITIVE);
        let unit = f64::from(f32::from_bits(nearest.to_bits() + 1)) - f64::from(nearest);
        (f64::from(found) - exact).abs() / unit
    }

    /// Every `step`-th f32 of both signs up to `limit`.
    fn sweep(limit: f32, step: usize) -> impl Iterator<Item = f32> {
        (0..=limit.to_bits()).step_by(step).map(f32::from_bits).flat_map(|x| [x, -x])
    }

    /// erf by its series and, far out, the continued fraction of erfc; good to 1e-15.
    fn exact_erf(x: f64) -> f64 {
        let t = x.abs();
        let value = if t < 2.5 {
            let (mut term, mut sum) = (t, t);
            for n in 1..100 {
                term *= -t * t / f64::from(n);
                sum += term / f64::from(2 * n + 1);
            }
            sum * std::f64::consts::FRAC_2_SQRT_PI
        } else {
            let fraction = (1..200).rev().fold(t, |f, n| t + f64::from(n) / 2.0 / f);
            1.0 - (-t * t).exp() / (fraction * std::f64::consts::PI.sqrt())
        };
        value.copysign(x)
    }

    #[test]
    fn exp_is_within_two_ulps() {
        let worst = sweep(88.7, 997).map(|x| ulps(exp(x), f64::from(x).exp())).fold(0.0, f64::max);
        assert!(worst <= 2.0, "{worst} ulp");
    }

    #[test]
    fn exp_at_the_ends() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-0.0), 1.0);
        assert_eq!(exp(89.0), f32::INFINITY);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert_eq!(exp(-104.0), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert!(exp(f32::NAN).is_nan());
        for x in [-88.0f32, -95.0, -103.0] {
            let unit = f64::from(f32::from_bits(1));
            assert!((f64::from(exp(x)) - f64::from(x).exp()).abs() <= 2.0 * unit, "e^{x}");
        }
    }

    #[test]
    fn erf_is_within_two_ulps() {
        let worst = sweep(6.0, 4999).map(|x| ulps(erf(x), exact_erf(f64::from(x))));
        let worst = worst.fold(0.0, f64::max);
        assert!(worst <= 2.0, "{worst} ulp");
        assert_eq!(erf(f32::INFINITY), 1.0);
        assert_eq!(erf(f32::NEG_INFINITY), -1.0);
        assert!(erf(f32::NAN).is_nan());
    }

    #[test]
    fn activations_match_their_definitions() {
        for x in sweep(30.0, 9973) {
            let wide = f64::from(x);
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (wide + 0.044715 * wide.powi(3));
            let tolerance = 4e-7 * wide.abs().max(1e-30);
            for (name, found, exact) in [
                ("silu", silu(x), wide / (1.0 + (-wide).exp())),
                ("gelu_tanh", gelu_tanh(x), 0.5 * wide * (1.0 + inner.tanh())),
                (
                    "gelu_erf",
                    gelu_erf(x),
                    0.5 * wide * (1.0 + exact_erf(wide * std::f64::consts::FRAC_1_SQRT_2)),
                ),
                ("relu", relu(x), wide.max(0.0)),
            ] {
                assert!(
                    (f64::from(found) - exact).abs() <= tolerance,
                    "{name}({x}): {found} {exact}"
                );
            }
        }
    }

    #[test]
    fn activations_keep_not_a_number() {
        for activation in
            [Activation::Relu, Activation::Silu, Activation::GeluTanh, Activation::GeluErf]
        {
            let mut values = [f32::NAN; 3];
            activate_all(activation, &mut values);
            assert!(values.iter().all(|value| value.is_nan()), "{activation:?}");
        }
    }
}
