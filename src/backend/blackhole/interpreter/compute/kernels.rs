//! Stand-ins for the kernels of the CPU backend's card numerics.

use half::bf16;

use crate::backend::blackhole::numerics::{Accumulation, DtypePolicy, MathFidelity, round_to_bf16};
use crate::backend::cpu::linear::linear as product;
use crate::backend::cpu::mat::{Bias, Mat, MatMut, WeightBlock};
use crate::backend::cpu::math;
use crate::program::{Activation, Orientation};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CardNumerics {
    pub policy: DtypePolicy,
    pub fidelity: MathFidelity,
    pub accumulation: Accumulation,
}

fn masked(value: f32, mask: u16) -> bf16 {
    bf16::from_bits(round_to_bf16(value).to_bits() & mask)
}

fn masked_mat(x: Mat<'_>, mask: u16) -> Vec<bf16> {
    (0..x.rows()).flat_map(|row| x.row(row).iter().map(|v| masked(*v, mask))).collect()
}

fn wide(values: &[bf16]) -> Vec<f32> {
    values.iter().map(|value| value.to_f32()).collect()
}

pub fn linear(
    x: Mat<'_>,
    weight: WeightBlock<'_>,
    bias: Bias<'_>,
    activation: Activation,
    numerics: &CardNumerics,
    mut out: MatMut<'_>,
) {
    let rounded = wide(&masked_mat(x, numerics.fidelity.value_mask()));
    let x = Mat::new(&rounded, x.rows(), x.cols(), x.cols());
    if numerics.accumulation == Accumulation::F32 {
        return product(x, weight, bias, activation, out);
    }
    let (rows, columns) = (out.rows(), out.cols());
    let mut sums = vec![0.0; rows * columns];
    for first in (0..x.cols()).step_by(32) {
        let inputs = (x.cols() - first).min(32);
        let part = &weight.values()[first * columns..][..inputs * columns];
        let block = WeightBlock::new(part, inputs, columns, Orientation::InOut);
        let mut terms = vec![0.0; rows * columns];
        let target = MatMut::new(&mut terms, rows, columns, columns);
        product(x.block(0, rows, first, inputs), block, Bias::None, Activation::Identity, target);
        for (sum, term) in sums.iter_mut().zip(&terms) {
            *sum = round_to_bf16(*sum + term).to_f32();
        }
    }
    for row in 0..rows {
        let target = out.row_mut(row);
        target.copy_from_slice(&sums[row * columns..][..columns]);
        bias.add_to(0, target);
        math::activate_all(activation, target);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    pub sum: f32,
    pub squares: f32,
}

impl Moments {
    pub fn of(values: &[f32]) -> Self {
        let mut moments = Self::default();
        for v in values {
            moments.sum += v;
            moments.squares = v.mul_add(*v, moments.squares);
        }
        moments
    }

    pub fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.squares += other.squares;
    }

    pub fn mean_and_factor(self, n: usize, eps: f32) -> (f32, f32) {
        let n = n as f32;
        let mean = self.sum / n;
        let variance = (self.squares / n - mean * mean).max(0.0);
        (mean, 1.0 / (variance + eps).sqrt())
    }
}

pub fn attend(
    q: Mat<'_>,
    k: Mat<'_>,
    v: Mat<'_>,
    scale: f32,
    causal: Option<usize>,
    numerics: &CardNumerics,
    mut out: MatMut<'_>,
) {
    let (rows, keys, dim) = (q.rows(), k.rows(), q.cols());
    let (left, right) = (numerics.fidelity.value_mask(), numerics.fidelity.weight_mask());
    let q = wide(&masked_mat(q, left));
    let (k, v) = (masked_mat(k, right), masked_mat(v, right));
    let mut scores = vec![0.0; rows * keys];
    product(
        Mat::new(&q, rows, dim, dim),
        WeightBlock::new(&k, keys, dim, Orientation::OutIn),
        Bias::None,
        Activation::Identity,
        MatMut::new(&mut scores, rows, keys, keys),
    );
    let mut totals = Vec::new();
    for (row, scores) in scores.chunks_exact_mut(keys).enumerate() {
        let seen = causal.map_or(keys, |before| before + row + 1).min(keys);
        for score in scores.iter_mut() {
            *score = round_to_bf16(scale * *score).to_f32();
        }
        let largest = scores[..seen].iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut total = 0.0;
        for (key, score) in scores.iter_mut().enumerate() {
            let p = if key < seen {
                round_to_bf16(math::exp(*score - largest)).to_f32()
            } else {
                0.0
            };
            total += p;
            *score = masked(p, left).to_f32();
        }
        totals.push(total);
    }
    let dim = v.len() / keys;
    let mut context = vec![0.0; rows * dim];
    product(
        Mat::new(&scores, rows, keys, keys),
        WeightBlock::new(&v, keys, dim, Orientation::InOut),
        Bias::None,
        Activation::Identity,
        MatMut::new(&mut context, rows, dim, dim),
    );
    for (row, total) in totals.iter().enumerate() {
        for (out, value) in out.row_mut(row).iter_mut().zip(&context[row * dim..]) {
            *out = value * (1.0 / total);
        }
    }
}
