//! Layer norm and RMS norm.

use half::bf16;

use super::mat::{Mat, MatMut};

/// What a layer norm does after normalising; every slice has one value per column.
#[derive(Clone, Copy)]
pub enum Scaling<'a> {
    None,
    /// `weight * n + bias`
    Affine {
        weight: &'a [bf16],
        bias: &'a [bf16],
    },
    /// `n * (1 + scale) + shift`
    Modulated {
        scale: &'a [f32],
        shift: &'a [f32],
    },
}

/// `out = scaling((x - mean) / sqrt(var + eps))` per row, with the population variance.
pub fn layer_norm(x: Mat<'_>, scaling: Scaling<'_>, eps: f32, mut out: MatMut<'_>) {
    assert_eq!((x.rows(), x.cols()), (out.rows(), out.cols()), "layer_norm: shapes differ");
    let width = x.cols() as f64;
    for row in 0..x.rows() {
        let values = x.row(row);
        let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / width;
        let var = values.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / width;
        let rsqrt = (1.0 / (var + f64::from(eps)).sqrt()) as f32;
        for (column, (out, x)) in out.row_mut(row).iter_mut().zip(values).enumerate() {
            let n = (x - mean as f32) * rsqrt;
            *out = match scaling {
                Scaling::None => n,
                Scaling::Affine { weight, bias } => {
                    weight[column].to_f32() * n + bias[column].to_f32()
                }
                Scaling::Modulated { scale, shift } => n * (1.0 + scale[column]) + shift[column],
            };
        }
    }
}

/// `out = weight * x / sqrt(mean(x^2) + eps)` over groups of `weight.len()` columns: whole rows, or heads.
pub fn rms_norm(x: Mat<'_>, weight: &[bf16], eps: f32, mut out: MatMut<'_>) {
    assert_eq!((x.rows(), x.cols()), (out.rows(), out.cols()), "rms_norm: shapes differ");
    let width = weight.len();
    assert!(
        width > 0 && x.cols().is_multiple_of(width),
        "rms_norm: groups of {width} in {}",
        x.cols()
    );
    for row in 0..x.rows() {
        let groups = x.row(row).chunks_exact(width);
        for (out, x) in out.row_mut(row).chunks_exact_mut(width).zip(groups) {
            let square = x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / width as f64;
            let rsqrt = (1.0 / (square + f64::from(eps)).sqrt()) as f32;
            for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
                *out = weight.to_f32() * (x * rsqrt);
            }
        }
    }
}
