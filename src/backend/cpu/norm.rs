//! Layer norm and RMS norm.

use half::bf16;

use super::mat::{Mat, MatMut};
use super::parallel::for_rows;

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
pub fn layer_norm(x: Mat<'_>, scaling: Scaling<'_>, eps: f32, out: MatMut<'_>) {
    check_shapes("layer_norm", x, &out);
    for_rows(
        out,
        #[inline(always)]
        |row, out| {
            let x = x.row(row);
            let width = x.len() as f64;
            let mean = sum(x, |v| v) / width;
            let variance = sum(x, |v| (v - mean) * (v - mean)) / width;
            let factor = (1.0 / (variance + f64::from(eps)).sqrt()) as f32;
            scale(x, mean as f32, factor, scaling, out);
        },
    );
}

pub(super) fn check_shapes(name: &str, x: Mat<'_>, out: &MatMut<'_>) {
    assert_eq!((x.rows(), x.cols()), (out.rows(), out.cols()), "{name}: shapes differ");
}

/// `scaling((x - mean) * factor)` of a row.
#[inline(always)]
pub fn scale(x: &[f32], mean: f32, factor: f32, scaling: Scaling<'_>, out: &mut [f32]) {
    match scaling {
        Scaling::None => {
            for (out, x) in out.iter_mut().zip(x) {
                *out = (x - mean) * factor;
            }
        }
        Scaling::Affine { weight, bias } => {
            for (((out, x), weight), bias) in out.iter_mut().zip(x).zip(weight).zip(bias) {
                *out = (x - mean) * factor * weight.to_f32() + bias.to_f32();
            }
        }
        Scaling::Modulated { scale, shift } => {
            for (((out, x), scale), shift) in out.iter_mut().zip(x).zip(scale).zip(shift) {
                *out = (x - mean) * factor * (1.0 + scale) + shift;
            }
        }
    }
}

/// `out = weight * x / sqrt(mean(x^2) + eps)` over groups of `weight.len()` columns: whole rows, or heads.
pub fn rms_norm(x: Mat<'_>, weight: &[bf16], eps: f32, out: MatMut<'_>) {
    check_shapes("rms_norm", x, &out);
    check_groups(x, weight);
    let width = weight.len();
    for_rows(
        out,
        #[inline(always)]
        |row, out| {
            let groups = x.row(row).chunks_exact(width);
            for (out, x) in out.chunks_exact_mut(width).zip(groups) {
                let square = sum(x, |v| v * v) / width as f64;
                let factor = (1.0 / (square + f64::from(eps)).sqrt()) as f32;
                scale_rms(x, factor, weight, out);
            }
        },
    );
}

pub(super) fn check_groups(x: Mat<'_>, weight: &[bf16]) {
    let (width, cols) = (weight.len(), x.cols());
    assert!(width > 0 && cols.is_multiple_of(width), "rms_norm: groups of {width} in {cols}");
}

/// `weight * (x * factor)` of a group.
#[inline(always)]
pub(super) fn scale_rms(x: &[f32], factor: f32, weight: &[bf16], out: &mut [f32]) {
    for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
        *out = weight.to_f32() * (x * factor);
    }
}

/// Sums kept side by side, so that the additions need not wait for each other.
const LANES: usize = 8;

/// The sum of `term` over the values, in f64 and always in the same order.
#[inline(always)]
fn sum(values: &[f32], term: impl Fn(f64) -> f64) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += term(f64::from(*value));
        }
    }
    let rest: f64 = rest.iter().map(|value| term(f64::from(*value))).sum();
    sums.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_close, on_threads, random, random_bf16, wide};
    use super::*;

    const EPS: f32 = 1e-5;

    /// Rows, columns, columns between rows.
    const SHAPES: [(usize, usize, usize); 6] =
        [(1, 1, 0), (3, 7, 2), (51, 96, 0), (36, 588, 4), (81, 1152, 0), (324, 72, 1)];

    fn input(rows: usize, stride: usize) -> Vec<f32> {
        // Away from zero, so that a variance taken as a difference of squares would be visible.
        random(1, rows * stride).into_iter().map(|value| 20.0 + value).collect()
    }

    fn run(
        (rows, cols, gap): (usize, usize, usize),
        kernel: impl Fn(Mat<'_>, MatMut<'_>),
    ) -> Vec<f32> {
        let x = input(rows, cols + gap);
        let mut out = vec![0.0; rows * (cols + gap)];
        kernel(Mat::new(&x, rows, cols, cols + gap), MatMut::new(&mut out, rows, cols, cols + gap));
        out
    }

    /// `x` normalised row by row in f64, then mapped with its column; gaps are zero.
    fn exact(
        (rows, cols, gap): (usize, usize, usize),
        map: impl Fn(f64, usize) -> f64,
    ) -> Vec<f64> {
        let mut out = Vec::new();
        for row in wide(&input(rows, cols + gap)).chunks_exact(cols + gap) {
            let mean = row[..cols].iter().sum::<f64>() / cols as f64;
            let variance =
                row[..cols].iter().map(|x| (x - mean).powi(2)).sum::<f64>() / cols as f64;
            let normal =
                row[..cols].iter().map(|x| (x - mean) / (variance + f64::from(EPS)).sqrt());
            out.extend(normal.enumerate().map(|(column, n)| map(n, column)));
            out.extend(std::iter::repeat_n(0.0, gap));
        }
        out
    }

    /// A mean of 20 is known to half a unit of its last place; the division by the deviation makes that larger.
    const TOLERANCE: f64 = 8e-6;

    #[test]
    fn layer_norm_matches_f64() {
        for shape in SHAPES {
            let cols = shape.1;
            let (weight, bias) = (random_bf16(2, cols), random_bf16(3, cols));
            let (scale, shift) = (random(4, cols), random(5, cols));
            let plain = run(shape, |x, out| layer_norm(x, Scaling::None, EPS, out));
            assert_close(&format!("plain {shape:?}"), &plain, &exact(shape, |n, _| n), TOLERANCE);
            let affine = Scaling::Affine { weight: &weight, bias: &bias };
            let found = run(shape, |x, out| layer_norm(x, affine, EPS, out));
            let expected = exact(shape, |n, c| n * weight[c].to_f64() + bias[c].to_f64());
            assert_close(&format!("affine {shape:?}"), &found, &expected, TOLERANCE);
            let modulated = Scaling::Modulated { scale: &scale, shift: &shift };
            let found = run(shape, |x, out| layer_norm(x, modulated, EPS, out));
            let expected =
                exact(shape, |n, c| n * (1.0 + f64::from(scale[c])) + f64::from(shift[c]));
            assert_close(&format!("modulated {shape:?}"), &found, &expected, 2.0 * TOLERANCE);
        }
    }

    #[test]
    fn rms_norm_matches_f64() {
        for (shape, width) in [((3, 64, 0), 64), ((116, 256, 3), 128), ((5, 96, 1), 32)] {
            let weight = random_bf16(2, width);
            let (rows, cols, gap) = shape;
            let x = wide(&input(rows, cols + gap));
            let mut expected = vec![0.0; x.len()];
            for row in 0..rows {
                for group in 0..cols / width {
                    let first = row * (cols + gap) + group * width;
                    let values = &x[first..first + width];
                    let square = values.iter().map(|x| x * x).sum::<f64>() / width as f64;
                    for column in 0..width {
                        expected[first + column] = weight[column].to_f64() * values[column]
                            / (square + f64::from(EPS)).sqrt();
                    }
                }
            }
            let found = run(shape, |x, out| rms_norm(x, &weight, EPS, out));
            assert_close(&format!("{shape:?} in {width}"), &found, &expected, 5e-7);
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_byte() {
        for shape in SHAPES {
            let norm = || run(shape, |x, out| layer_norm(x, Scaling::None, EPS, out));
            assert_eq!(on_threads(1, norm), on_threads(2, norm), "{shape:?}");
        }
    }
}
