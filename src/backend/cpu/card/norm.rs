//! Layer norm and RMS norm from one pass over each row.

use half::bf16;

use super::super::mat::{Mat, MatMut};
use super::super::norm::{Scaling, check_groups, check_shapes, scale, scale_rms};
use super::super::parallel::for_rows;
use super::Moments;

/// `out = scaling((x - mean) * factor)` per row, with mean and factor of [`Moments::of_row`].
pub fn layer_norm(x: Mat<'_>, scaling: Scaling<'_>, eps: f32, out: MatMut<'_>) {
    check_shapes("layer_norm", x, &out);
    for_rows(
        out,
        #[inline(always)]
        |row, out| {
            let x = x.row(row);
            let (mean, factor) = Moments::of_row(x).mean_and_factor(x.len(), eps);
            scale(x, mean, factor, scaling, out);
        },
    );
}

/// `out = weight * (x * factor)` over groups of `weight.len()` columns, with the factor of [`Moments::of_row`].
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
                let factor = Moments::of_row(x).rms_factor(width, eps);
                scale_rms(x, factor, weight, out);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{assert_close, on_threads, random, random_bf16, wide};
    use super::super::moments::PIECE;
    use super::*;

    const EPS: f32 = 1e-5;

    /// Rows, columns, columns between rows; ragged against pieces.
    const SHAPES: [(usize, usize, usize); 5] =
        [(1, 1, 0), (3, 7, 2), (51, 96, 0), (36, 588, 4), (81, 1152, 0)];

    fn run(
        (rows, cols, gap): (usize, usize, usize),
        kernel: impl Fn(Mat<'_>, MatMut<'_>),
    ) -> Vec<f32> {
        let x = random(1, rows * (cols + gap));
        let mut out = vec![0.0; rows * (cols + gap)];
        kernel(Mat::new(&x, rows, cols, cols + gap), MatMut::new(&mut out, rows, cols, cols + gap));
        out
    }

    /// Mean and `1 / sqrt(variance + eps)` by plain loops in f32.
    fn by_hand(row: &[f32]) -> (f32, f32) {
        let (mut sum, mut squares) = (0.0_f32, 0.0_f32);
        for piece in row.chunks(PIECE) {
            let (mut s, mut q) = (0.0_f32, 0.0_f32);
            for v in piece {
                s += v;
                q = v.mul_add(*v, q);
            }
            sum += s;
            squares += q;
        }
        let n = row.len() as f32;
        let mean = sum / n;
        (mean, 1.0 / ((squares / n - mean * mean).max(0.0) + EPS).sqrt())
    }

    #[test]
    fn every_bit_of_a_layer_norm_is_that_of_plain_loops() {
        for (rows, cols, gap) in SHAPES {
            let (weight, bias) = (random_bf16(2, cols), random_bf16(3, cols));
            let (scale, shift) = (random(4, cols), random(5, cols));
            let x = random(1, rows * (cols + gap));
            let scalings = [
                Scaling::None,
                Scaling::Affine { weight: &weight, bias: &bias },
                Scaling::Modulated { scale: &scale, shift: &shift },
            ];
            for scaling in scalings {
                let shape = (rows, cols, gap);
                let found = run(shape, |x, out| layer_norm(x, scaling, EPS, out));
                for row in 0..rows {
                    let x = &x[row * (cols + gap)..][..cols];
                    let (mean, factor) = by_hand(x);
                    for (column, value) in x.iter().enumerate() {
                        let normal = (value - mean) * factor;
                        let expected = match scaling {
                            Scaling::None => normal,
                            Scaling::Affine { weight, bias } => {
                                normal * weight[column].to_f32() + bias[column].to_f32()
                            }
                            Scaling::Modulated { scale, shift } => {
                                normal * (1.0 + scale[column]) + shift[column]
                            }
                        };
                        let found = found[row * (cols + gap) + column];
                        assert_eq!(found.to_bits(), expected.to_bits(), "{shape:?} {row} {column}");
                    }
                }
            }
        }
    }

    #[test]
    fn norms_match_f64() {
        for (rows, cols, gap) in SHAPES {
            let shape = (rows, cols, gap);
            let x = wide(&random(1, rows * (cols + gap)));
            let mut exact = vec![0.0; x.len()];
            for row in 0..rows {
                let x = &x[row * (cols + gap)..][..cols];
                let mean = x.iter().sum::<f64>() / cols as f64;
                let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / cols as f64;
                for (column, x) in x.iter().enumerate() {
                    let factor = 1.0 / (variance + f64::from(EPS)).sqrt();
                    exact[row * (cols + gap) + column] = (x - mean) * factor;
                }
            }
            let found = run(shape, |x, out| layer_norm(x, Scaling::None, EPS, out));
            assert_close(&format!("{shape:?}"), &found, &exact, 1e-5);
        }
    }

    #[test]
    fn rms_norm_takes_groups_on_their_own() {
        for (rows, groups, width, gap) in [(3, 1, 64, 0), (116, 2, 128, 3), (5, 3, 40, 1)] {
            let cols = groups * width;
            let weight = random_bf16(2, width);
            let found = run((rows, cols, gap), |x, out| rms_norm(x, &weight, EPS, out));
            let x = random(1, rows * (cols + gap));
            for row in 0..rows {
                for group in 0..groups {
                    let first = row * (cols + gap) + group * width;
                    let x = &x[first..first + width];
                    let factor = Moments::of_row(x).rms_factor(width, EPS);
                    let exact = wide(x).iter().map(|x| x * x).sum::<f64>() / width as f64;
                    let exact = 1.0 / (exact + f64::from(EPS)).sqrt();
                    assert!((f64::from(factor) / exact - 1.0).abs() < 1e-6);
                    for (column, value) in x.iter().enumerate() {
                        let expected = weight[column].to_f32() * (value * factor);
                        assert_eq!(found[first + column].to_bits(), expected.to_bits());
                    }
                }
            }
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
