//! Softmax attention over whole rows of scores.

use super::super::attention::{for_heads, largest};
use super::super::mat::{Mat, MatMut, WeightBlock};
use super::super::math;
use super::super::parallel::{for_rows, vectorized};
use super::CardNumerics;
use super::linear::{products, value_operand, weight_operand};
use super::rounding::{ALL_BITS, rounded};
use crate::program::{AttentionShape, Orientation};

/// [`attend`] head by head and sequence by sequence; shapes are those of [`crate::backend::cpu::attention::attention`].
pub fn attention(
    q: Mat<'_>,
    k: Mat<'_>,
    v: Mat<'_>,
    shape: &AttentionShape,
    numerics: &CardNumerics,
    out: MatMut<'_>,
) {
    for_heads(q, k, v, shape, out, &|head, out| {
        attend(head.q, head.k, head.v, head.scale, head.causal, numerics, out);
    });
}

/// `out = softmax(scale q k^T) v` of one head: `q` is `[queries, head_dim]`, `k` `[keys, head_dim]`, `v` `[keys, any]`.
/// With `causal`, the number of keys before the first query, a row sees no key after its own.
///
/// 1. `s = bf16(scale * (q k^T))`, `q` cut to the bits of values and `k` to those of weights
/// 2. `p = bf16(exp(s - max s))` of the keys that are seen, 0 of the others; `total = sum p`, ascending, in f32
/// 3. `out = bf16((p v) * (1 / total))`, `p` cut to the bits of values and `v` to those of weights
///
/// Both products are those of [`linear`](super::linear), accumulation included. A row does not depend on the rows beside
/// it, nor on keys that it does not see. Panics when the shapes do not fit together.
pub fn attend(
    q: Mat<'_>,
    k: Mat<'_>,
    v: Mat<'_>,
    scale: f32,
    causal: Option<usize>,
    numerics: &CardNumerics,
    mut out: MatMut<'_>,
) {
    let (queries, keys) = (q.rows(), k.rows());
    assert!(keys > 0 && v.rows() == keys, "attend: {keys} keys and {} values", v.rows());
    assert_eq!((queries, v.cols()), (out.rows(), out.cols()), "attend: result");
    let fits = causal.is_none_or(|before| before + queries <= keys);
    assert!(fits, "attend: {queries} queries after {causal:?} of {keys} keys");
    let CardNumerics { fidelity, accumulation, .. } = *numerics;
    let (value_mask, weight_mask) = (fidelity.value_mask(), fidelity.weight_mask());

    let operand = value_operand(q, value_mask);
    let q = Mat::new(&operand, queries, q.cols(), q.cols());
    let operand = weight_operand(k, weight_mask);
    let k = WeightBlock::new(&operand, keys, k.cols(), Orientation::OutIn);
    let mut scores = vec![0.0; queries * keys];
    products(q, k, accumulation, MatMut::new(&mut scores, queries, keys, keys));

    let mut factors = vec![0.0; queries];
    vectorized(
        #[inline(always)]
        || {
            let rows = scores.chunks_exact_mut(keys).zip(&mut factors);
            for (row, (scores, factor)) in rows.enumerate() {
                let seen = causal.map_or(keys, |before| before + row + 1);
                *factor = 1.0 / weigh(scores, seen, scale, value_mask);
            }
        },
    );

    let operand = weight_operand(v, weight_mask);
    let v = WeightBlock::new(&operand, keys, v.cols(), Orientation::InOut);
    let weights = Mat::new(&scores, queries, keys, keys);
    products(weights, v, accumulation, out.reborrow());
    for_rows(
        out,
        #[inline(always)]
        |row, out| {
            for value in out {
                *value = rounded(*value * factors[row], ALL_BITS);
            }
        },
    );
}

/// Products of a query with all keys to weights of the first `seen` values, as an operand; gives their sum.
#[inline(always)]
fn weigh(scores: &mut [f32], seen: usize, scale: f32, mask: u16) -> f32 {
    let (scores, masked) = scores.split_at_mut(seen);
    masked.fill(0.0);
    for score in scores.iter_mut() {
        *score = rounded(scale * *score, ALL_BITS);
    }
    let largest = largest(scores);
    for score in scores.iter_mut() {
        *score = rounded(math::exp(*score - largest), ALL_BITS);
    }
    let mut total = 0.0;
    for weight in scores.iter() {
        total += weight;
    }
    for weight in scores {
        *weight = rounded(*weight, mask);
    }
    total
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::super::super::testing::{on_threads, random};
    use super::*;
    use crate::backend::blackhole::numerics::{Accumulation, MathFidelity};

    #[derive(Clone, Copy, Debug)]
    struct Case {
        queries: usize,
        keys: usize,
        head_dim: usize,
        causal: Option<usize>,
    }

    const CASES: [Case; 6] = [
        Case { queries: 1, keys: 1, head_dim: 1, causal: None },
        Case { queries: 51, keys: 81, head_dim: 48, causal: None },
        Case { queries: 49, keys: 3, head_dim: 36, causal: None },
        Case { queries: 116, keys: 116, head_dim: 128, causal: Some(0) },
        Case { queries: 20, keys: 133, head_dim: 64, causal: Some(113) },
        Case { queries: 5, keys: 40, head_dim: 33, causal: Some(7) },
    ];

    fn every_numerics() -> impl Iterator<Item = CardNumerics> {
        let fidelities = [MathFidelity::LoFi, MathFidelity::HiFi2, MathFidelity::HiFi4];
        fidelities.into_iter().flat_map(|fidelity| {
            [Accumulation::F32, Accumulation::Bf16].map(|accumulation| CardNumerics {
                fidelity,
                accumulation,
                ..CardNumerics::default()
            })
        })
    }

    impl Case {
        /// Queries, keys, values; large enough that the softmax is far from flat.
        fn operands(&self) -> [Vec<f32>; 3] {
            let large = |seed, len| random(seed, len).into_iter().map(|v| 3.0 * v).collect();
            let (queries, keys) = (self.queries * self.head_dim, self.keys * self.head_dim);
            [large(1, queries), large(2, keys), random(3, keys)]
        }

        fn scale(&self) -> f32 {
            1.0 / (self.head_dim as f32).sqrt()
        }

        /// The context of the queries from `first` on.
        fn run(&self, first: usize, rows: usize, numerics: &CardNumerics) -> Vec<f32> {
            let [q, k, v] = self.operands();
            let dim = self.head_dim;
            let mut out = vec![f32::NAN; rows * dim];
            attend(
                Mat::new(&q[first * dim..], rows, dim, dim),
                Mat::new(&k, self.keys, dim, dim),
                Mat::new(&v, self.keys, dim, dim),
                self.scale(),
                self.causal.map(|before| before + first),
                numerics,
                MatMut::new(&mut out, rows, dim, dim),
            );
            out
        }

        /// By plain loops, in the order and with every rounding that the text names.
        fn expected(&self, numerics: &CardNumerics) -> Vec<f32> {
            let cut = |value: f32, mask: u16| {
                bf16::from_bits(bf16::from_f32(value).to_bits() & mask).to_f32()
            };
            let values = numerics.fidelity.value_mask();
            let weights = numerics.fidelity.weight_mask();
            let [q, k, v] = self.operands();
            let dim = self.head_dim;
            let sum = |terms: &mut dyn Iterator<Item = (f32, f32)>| match numerics.accumulation {
                Accumulation::F32 => terms.fold(0.0_f32, |sum, (a, b)| a.mul_add(b, sum)),
                Accumulation::Bf16 => {
                    let terms: Vec<(f32, f32)> = terms.collect();
                    terms.chunks(32).fold(0.0, |sum, block| {
                        let block = block.iter().fold(0.0_f32, |sum, (a, b)| a.mul_add(*b, sum));
                        cut(sum + block, 0xffff)
                    })
                }
            };
            let mut out = Vec::new();
            for row in 0..self.queries {
                let seen = self.causal.map_or(self.keys, |before| before + row + 1);
                let scores: Vec<f32> = (0..seen)
                    .map(|key| {
                        let pairs = (0..dim).map(|d| (q[row * dim + d], k[key * dim + d]));
                        let mut cut_pairs = pairs.map(|(q, k)| (cut(q, values), cut(k, weights)));
                        cut(self.scale() * sum(&mut cut_pairs), 0xffff)
                    })
                    .collect();
                let largest = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let p: Vec<f32> =
                    scores.iter().map(|s| cut(math::exp(s - largest), 0xffff)).collect();
                let total = p.iter().fold(0.0, |total, p| total + p);
                for d in 0..dim {
                    let pairs = p.iter().enumerate().map(|(key, p)| (*p, v[key * dim + d]));
                    let mut cut_pairs = pairs.map(|(p, v)| (cut(p, values), cut(v, weights)));
                    out.push(cut(sum(&mut cut_pairs) * (1.0 / total), 0xffff));
                }
            }
            out
        }
    }

    #[test]
    fn every_bit_is_that_of_plain_loops() {
        for case in CASES {
            for numerics in every_numerics() {
                let found = case.run(0, case.queries, &numerics);
                assert_eq!(found, case.expected(&numerics), "{case:?} {numerics}");
            }
        }
    }

    #[test]
    fn the_context_is_that_of_softmax() {
        let exact = CardNumerics { fidelity: MathFidelity::HiFi4, ..CardNumerics::default() };
        for case in CASES {
            let [q, k, v] = case.operands();
            let dim = case.head_dim;
            for (row, found) in case.run(0, case.queries, &exact).chunks_exact(dim).enumerate() {
                let seen = case.causal.map_or(case.keys, |before| before + row + 1);
                let score = |key: usize| {
                    let products =
                        (0..dim).map(|d| f64::from(q[row * dim + d]) * f64::from(k[key * dim + d]));
                    f64::from(case.scale()) * products.sum::<f64>()
                };
                let weights: Vec<f64> = (0..seen).map(|key| score(key).exp()).collect();
                let total: f64 = weights.iter().sum();
                for (d, found) in found.iter().enumerate() {
                    let terms = weights.iter().enumerate();
                    let exact: f64 =
                        terms.map(|(key, w)| w / total * f64::from(v[key * dim + d])).sum();
                    // A score of up to 20 in bf16 is known to 1/16 of itself divided by 16.
                    let close = (f64::from(*found) - exact).abs() <= 0.05;
                    assert!(close, "{case:?} row {row}: {found} instead of {exact}");
                }
            }
        }
    }

    #[test]
    fn rows_do_not_depend_on_how_many_there_are() {
        for case in CASES {
            let numerics = CardNumerics::default();
            let all = case.run(0, case.queries, &numerics);
            for height in [1, 7, 32] {
                let mut parts = Vec::new();
                for first in (0..case.queries).step_by(height) {
                    parts.extend(case.run(first, height.min(case.queries - first), &numerics));
                }
                assert_eq!(parts, all, "{case:?} by {height}");
            }
        }
    }

    #[test]
    fn heads_and_sequences_are_attended_to_alone() {
        let (heads, dim, queries, keys) = (4, 8, 6, 10);
        let shape = AttentionShape {
            heads,
            kv_heads: 2,
            head_dim: dim,
            scale: 0.5,
            causal: true,
            sequences: 3,
        };
        let (wide, narrow) = (heads * dim, 2 * dim);
        let q = random(1, 3 * queries * wide);
        let (k, v) = (random(2, 3 * keys * narrow), random(3, 3 * keys * narrow));
        let q = Mat::new(&q, 3 * queries, wide, wide);
        let (k, v) =
            (Mat::new(&k, 3 * keys, narrow, narrow), Mat::new(&v, 3 * keys, narrow, narrow));
        let numerics = CardNumerics::default();
        let run = || {
            let mut out = vec![0.0; 3 * queries * wide];
            let view = MatMut::new(&mut out, 3 * queries, wide, wide);
            attention(q, k, v, &shape, &numerics, view);
            out
        };
        let all = on_threads(1, run);
        assert_eq!(all, on_threads(2, run));
        let mut alone = vec![0.0; queries * dim];
        attend(
            q.block(2 * queries, queries, 3 * dim, dim),
            k.block(2 * keys, keys, dim, dim),
            v.block(2 * keys, keys, dim, dim),
            0.5,
            Some(keys - queries),
            &numerics,
            MatMut::new(&mut alone, queries, dim, dim),
        );
        for row in 0..queries {
            let found = &all[(2 * queries + row) * wide + 3 * dim..][..dim];
            assert_eq!(found, &alone[row * dim..][..dim], "row {row}");
        }
    }

    #[test]
    fn not_a_number_stays_in_its_row() {
        let q = [0.5, f32::NAN, 1.0];
        let (k, v) = ([1.0, -1.0], [3.0, 5.0]);
        let mut out = [0.0; 3];
        let numerics = CardNumerics::default();
        let (k, v) = (Mat::new(&k, 2, 1, 1), Mat::new(&v, 2, 1, 1));
        attend(Mat::new(&q, 3, 1, 1), k, v, 1.0, None, &numerics, MatMut::new(&mut out, 3, 1, 1));
        assert!(!out[0].is_nan() && out[1].is_nan() && !out[2].is_nan(), "{out:?}");
    }
}
