//! Kernels that touch every element once.

use half::bf16;

use super::mat::{Mat, MatMut};
use super::math;
use super::parallel::for_rows;
use crate::program::Activation;

fn check_shape(name: &str, x: (usize, usize), out: (usize, usize)) {
    assert_eq!(x, out, "{name}: shapes differ");
}

/// `out = activation(x)`
pub fn map(x: Mat<'_>, activation: Activation, out: MatMut<'_>) {
    check_shape("map", (x.rows(), x.cols()), (out.rows(), out.cols()));
    for_rows(
        out,
        #[inline(always)]
        |row, out| {
            out.copy_from_slice(x.row(row));
            math::activate_all(activation, out);
        },
    );
}

/// `out = silu(gate) * up`
pub fn silu_mul(gate: Mat<'_>, up: Mat<'_>, out: MatMut<'_>) {
    check_shape("silu_mul", (gate.rows(), gate.cols()), (out.rows(), out.cols()));
    check_shape("silu_mul", (up.rows(), up.cols()), (out.rows(), out.cols()));
    for_rows(
        out,
        #[inline(always)]
        |row, out| {
            for ((out, gate), up) in out.iter_mut().zip(gate.row(row)).zip(up.row(row)) {
                *out = math::silu(*gate) * up;
            }
        },
    );
}

/// `out += x`; an `x` of fewer rows is repeated.
pub fn add(x: Mat<'_>, out: MatMut<'_>) {
    assert!(
        x.rows() > 0 && out.rows().is_multiple_of(x.rows()),
        "add: {} rows onto {}",
        x.rows(),
        out.rows()
    );
    assert_eq!(x.cols(), out.cols(), "add: widths differ");
    for_rows(
        out,
        #[inline(always)]
        |row, out| {
            for (out, x) in out.iter_mut().zip(x.row(row % x.rows())) {
                *out += x;
            }
        },
    );
}

/// `out += weight`, the first rows of a table `[>= rows, cols]` of the checkpoint.
pub fn add_weight(table: &[bf16], out: MatMut<'_>) {
    assert!(table.len() >= out.rows() * out.cols(), "add_weight: the table is too short");
    for_rows(
        out,
        #[inline(always)]
        |row, out| {
            let weights = &table[row * out.len()..];
            for (out, weight) in out.iter_mut().zip(weights) {
                *out += weight.to_f32();
            }
        },
    );
}

/// `out += factor * x`
pub fn add_scaled(x: Mat<'_>, factor: f32, out: MatMut<'_>) {
    check_shape("add_scaled", (x.rows(), x.cols()), (out.rows(), out.cols()));
    for_rows(
        out,
        #[inline(always)]
        |row, out| {
            for (out, x) in out.iter_mut().zip(x.row(row)) {
                *out += factor * x;
            }
        },
    );
}

/// Rotates the halves `(a, b)` of each head of `x` in place: `(a cos - b sin, b cos + a sin)`.
///
/// `cos` and `sin` are `[rows, head_dim / 2]`; `x` is `[rows, heads * head_dim]`.
pub fn rope(x: MatMut<'_>, cos: Mat<'_>, sin: Mat<'_>) {
    let half = cos.cols();
    check_shape("rope", (cos.rows(), cos.cols()), (sin.rows(), sin.cols()));
    assert_eq!(cos.rows(), x.rows(), "rope: rows of the table");
    assert!(
        half > 0 && x.cols().is_multiple_of(2 * half),
        "rope: heads of {} in {}",
        2 * half,
        x.cols()
    );
    for_rows(
        x,
        #[inline(always)]
        |row, x| {
            let (cos, sin) = (cos.row(row), sin.row(row));
            for head in x.chunks_exact_mut(2 * half) {
                let (a, b) = head.split_at_mut(half);
                for (((a, b), cos), sin) in a.iter_mut().zip(b).zip(cos).zip(sin) {
                    (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_close, random, random_bf16, wide};
    use super::*;

    /// Rows, columns, columns between rows.
    const SHAPES: [(usize, usize, usize); 5] =
        [(1, 1, 0), (3, 7, 2), (51, 128, 0), (36, 588, 4), (324, 1152, 0)];

    /// Runs a kernel in place on random values, and the same on each value in f64: `expected(value, row, column)`.
    fn check(
        name: &str,
        (rows, cols, gap): (usize, usize, usize),
        kernel: impl Fn(MatMut<'_>),
        expected: impl Fn(f64, usize, usize) -> f64,
    ) {
        let stride = cols + gap;
        let mut out = random(9, rows * stride);
        let exact: Vec<f64> = wide(&out)
            .into_iter()
            .enumerate()
            .map(|(index, value)| match (index / stride, index % stride) {
                (row, column) if column < cols => expected(value, row, column),
                _ => value,
            })
            .collect();
        kernel(MatMut::new(&mut out, rows, cols, stride));
        assert_close(&format!("{name} {rows}x{cols}+{gap}"), &out, &exact, 5e-7);
    }

    #[test]
    fn sums_match_f64() {
        for shape in SHAPES {
            let (rows, cols, gap) = shape;
            let x = random(1, rows * (cols + gap));
            let at = |row: usize, column: usize| f64::from(x[row * (cols + gap) + column]);
            let view = || Mat::new(&x, rows, cols, cols + gap);
            check("add", shape, |out| add(view(), out), |out, r, c| out + at(r, c));
            check(
                "add_scaled",
                shape,
                |out| add_scaled(view(), 0.25, out),
                |out, r, c| out + 0.25 * at(r, c),
            );
            let first = || Mat::new(&x, 1, cols, cols + gap);
            check("repeated", shape, |out| add(first(), out), |out, _, c| out + at(0, c));
            let table = random_bf16(2, (rows + 1) * cols);
            check(
                "add_weight",
                shape,
                |out| add_weight(&table, out),
                |out, r, c| out + table[r * cols + c].to_f64(),
            );
        }
    }

    #[test]
    fn activations_match_f64() {
        let silu = |x: f64| x / (1.0 + (-x).exp());
        for shape in SHAPES {
            let (rows, cols, gap) = shape;
            let (x, y) = (random(1, rows * (cols + gap)), random(2, rows * (cols + gap)));
            let at =
                |v: &[f32], row: usize, column: usize| f64::from(v[row * (cols + gap) + column]);
            let view = |values| Mat::new(values, rows, cols, cols + gap);
            check(
                "map",
                shape,
                |out| map(view(&x), Activation::Silu, out),
                |_, r, c| silu(at(&x, r, c)),
            );
            check(
                "silu_mul",
                shape,
                |out| silu_mul(view(&x), view(&y), out),
                |_, r, c| silu(at(&x, r, c)) * at(&y, r, c),
            );
        }
    }

    #[test]
    fn rope_matches_f64() {
        for (rows, heads, half, gap) in
            [(1, 1, 1, 0), (5, 3, 16, 0), (116, 16, 64, 0), (7, 2, 5, 3)]
        {
            let (cos, sin) = (random(3, rows * half), random(4, rows * half));
            let (cos_view, sin_view) =
                (Mat::new(&cos, rows, half, half), Mat::new(&sin, rows, half, half));
            let cols = heads * 2 * half;
            let before = random(9, rows * (cols + gap));
            check(
                "rope",
                (rows, cols, gap),
                |x| rope(x, cos_view, sin_view),
                |x, row, column| {
                    let j = column % (2 * half);
                    let index = row * half + j % half;
                    let (cos, sin) = (f64::from(cos[index]), f64::from(sin[index]));
                    let here = row * (cols + gap) + column;
                    if j < half {
                        x * cos - f64::from(before[here + half]) * sin
                    } else {
                        x * cos + f64::from(before[here - half]) * sin
                    }
                },
            );
        }
    }
}
