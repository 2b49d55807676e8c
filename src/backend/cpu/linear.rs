//! Products with the matrices of the checkpoint.

use super::mat::{Bias, Mat, MatMut, WeightBlock};
use super::math;
use crate::program::{Activation, Orientation};

/// `out = activation(x W^T + bias)`, or `x W` for a weight stored `[in, out]`.
pub fn linear(
    x: Mat<'_>,
    w: WeightBlock<'_>,
    bias: Bias<'_>,
    activation: Activation,
    mut out: MatMut<'_>,
) {
    assert_eq!(x.cols(), w.inputs(), "linear: inputs");
    assert_eq!((x.rows(), w.outputs()), (out.rows(), out.cols()), "linear: result");
    assert!(bias.columns().is_none_or(|columns| columns == w.outputs()), "linear: bias");
    for row in 0..x.rows() {
        let x = x.row(row);
        for (column, out) in out.row_mut(row).iter_mut().enumerate() {
            let sum = match w.orientation() {
                Orientation::OutIn => {
                    x.iter().zip(w.row(column)).map(|(x, w)| x * w.to_f32()).sum::<f32>()
                }
                Orientation::InOut => {
                    x.iter().enumerate().map(|(k, x)| x * w.row(k)[column].to_f32()).sum()
                }
            };
            *out = math::activate(activation, sum + bias.at(column));
        }
    }
}
