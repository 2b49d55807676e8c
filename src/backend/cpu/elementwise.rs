//! Kernels that touch every element once.

use half::bf16;

use super::mat::{Mat, MatMut};
use super::math;
use crate::program::Activation;

fn check_shape(name: &str, x: (usize, usize), out: (usize, usize)) {
    assert_eq!(x, out, "{name}: shapes differ");
}

/// `out = activation(x)`
pub fn map(x: Mat<'_>, activation: Activation, mut out: MatMut<'_>) {
    check_shape("map", (x.rows(), x.cols()), (out.rows(), out.cols()));
    for row in 0..x.rows() {
        for (out, x) in out.row_mut(row).iter_mut().zip(x.row(row)) {
            *out = math::activate(activation, *x);
        }
    }
}

/// `out = silu(gate) * up`
pub fn silu_mul(gate: Mat<'_>, up: Mat<'_>, mut out: MatMut<'_>) {
    check_shape("silu_mul", (gate.rows(), gate.cols()), (out.rows(), out.cols()));
    check_shape("silu_mul", (up.rows(), up.cols()), (out.rows(), out.cols()));
    for row in 0..gate.rows() {
        for ((out, gate), up) in out.row_mut(row).iter_mut().zip(gate.row(row)).zip(up.row(row)) {
            *out = math::silu(*gate) * up;
        }
    }
}

/// `out += x`; an `x` of fewer rows is repeated.
pub fn add(x: Mat<'_>, mut out: MatMut<'_>) {
    assert!(
        x.rows() > 0 && out.rows().is_multiple_of(x.rows()),
        "add: {} onto {}",
        x.rows(),
        out.rows()
    );
    assert_eq!(x.cols(), out.cols(), "add: widths differ");
    for row in 0..out.rows() {
        for (out, x) in out.row_mut(row).iter_mut().zip(x.row(row % x.rows())) {
            *out += x;
        }
    }
}

/// `out += weight`, the first rows of a table `[>= rows, cols]` of the checkpoint.
pub fn add_weight(table: &[bf16], mut out: MatMut<'_>) {
    assert!(table.len() >= out.rows() * out.cols(), "add_weight: the table is too short");
    let cols = out.cols();
    for row in 0..out.rows() {
        for (out, weight) in out.row_mut(row).iter_mut().zip(&table[row * cols..]) {
            *out += weight.to_f32();
        }
    }
}

/// `out += factor * x`
pub fn add_scaled(x: Mat<'_>, factor: f32, mut out: MatMut<'_>) {
    check_shape("add_scaled", (x.rows(), x.cols()), (out.rows(), out.cols()));
    for row in 0..x.rows() {
        for (out, x) in out.row_mut(row).iter_mut().zip(x.row(row)) {
            *out += factor * x;
        }
    }
}

/// Rotates the halves `(a, b)` of each head of `x` in place: `(a cos - b sin, b cos + a sin)`.
///
/// `cos` and `sin` are `[rows, head_dim / 2]`; `x` is `[rows, heads * head_dim]`.
pub fn rope(mut x: MatMut<'_>, cos: Mat<'_>, sin: Mat<'_>) {
    let half = cos.cols();
    check_shape("rope", (cos.rows(), cos.cols()), (sin.rows(), sin.cols()));
    assert_eq!(cos.rows(), x.rows(), "rope: rows of the table");
    assert!(
        half > 0 && x.cols().is_multiple_of(2 * half),
        "rope: heads of {} in {}",
        2 * half,
        x.cols()
    );
    for row in 0..x.rows() {
        let (cos, sin) = (cos.row(row), sin.row(row));
        for head in x.row_mut(row).chunks_exact_mut(2 * half) {
            let (a, b) = head.split_at_mut(half);
            for (((a, b), cos), sin) in a.iter_mut().zip(b).zip(cos).zip(sin) {
                (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
            }
        }
    }
}
