//! Softmax attention.

use std::cell::Cell;

use super::mat::{Mat, MatMut};
use super::math;
use super::parallel::{for_column_blocks, for_row_blocks, vectorized};
use crate::program::AttentionShape;

/// Query rows worked on at a time, so that their scores stay in the second-level cache. A fixed number: it changes
/// how much of a causal product is skipped.
const MAX_QUERY_ROWS: usize = 108;

thread_local! {
    /// Kept between calls, so that a running network does not allocate.
    static SCORES: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// `out = softmax(scale q k^T) v`, head by head and sequence by sequence.
///
/// `q` and `out` are `[rows, heads * head_dim]`, `k` and `v` `[key rows, kv_heads * head_dim]`. The same input gives
/// the same bytes on any number of threads. Panics when the shapes do not fit together.
pub fn attention(q: Mat<'_>, k: Mat<'_>, v: Mat<'_>, shape: &AttentionShape, out: MatMut<'_>) {
    for_heads(q, k, v, shape, out, &|head, out| head.attend(out));
}

/// Calls `work` with the operands and the result of every head of every sequence, in parallel.
pub(super) fn for_heads(
    q: Mat<'_>,
    k: Mat<'_>,
    v: Mat<'_>,
    shape: &AttentionShape,
    out: MatMut<'_>,
    work: &(impl Fn(Head<'_>, MatMut<'_>) + Sync),
) {
    let AttentionShape { heads, kv_heads, head_dim, sequences, .. } = *shape;
    assert_eq!(q.cols(), heads * head_dim, "attention: queries");
    assert_eq!(k.cols(), kv_heads * head_dim, "attention: keys");
    assert_eq!((k.rows(), k.cols()), (v.rows(), v.cols()), "attention: values");
    assert_eq!((q.rows(), q.cols()), (out.rows(), out.cols()), "attention: result");
    assert!(
        kv_heads > 0 && heads.is_multiple_of(kv_heads),
        "attention: {heads} heads on {kv_heads}"
    );
    assert!(
        sequences > 0 && q.rows().is_multiple_of(sequences) && k.rows().is_multiple_of(sequences),
        "attention: {} queries and {} keys in {sequences} sequences",
        q.rows(),
        k.rows()
    );
    assert!(k.rows() > 0, "attention: no keys");
    assert!(!shape.causal || q.rows() <= k.rows(), "attention: causal with {} keys", k.rows());
    if q.rows() == 0 {
        return;
    }
    let (queries, keys) = (q.rows() / sequences, k.rows() / sequences);
    for_row_blocks(out, queries, &|first_row, out| {
        let sequence = first_row / queries;
        for_column_blocks(out, head_dim, &|first_col, out| {
            let shared = first_col / head_dim / (heads / kv_heads) * head_dim;
            let head = Head {
                q: q.block(first_row, queries, first_col, head_dim),
                k: k.block(sequence * keys, keys, shared, head_dim),
                v: v.block(sequence * keys, keys, shared, head_dim),
                scale: shape.scale,
                causal: shape.causal.then(|| keys - queries),
            };
            work(head, out);
        });
    });
}

/// One head of one sequence: every operand is `head_dim` wide.
pub(super) struct Head<'a> {
    pub q: Mat<'a>,
    pub k: Mat<'a>,
    pub v: Mat<'a>,
    pub scale: f32,
    /// Where a row sees no key after its own: keys of rows that come before the first query.
    pub causal: Option<usize>,
}

impl Head<'_> {
    fn attend(&self, out: MatMut<'_>) {
        let (queries, keys) = (self.q.rows(), self.k.rows());
        let height = queries.div_ceil(queries.div_ceil(MAX_QUERY_ROWS));
        let mut scores = SCORES.take();
        if scores.len() < height * keys {
            scores.resize(height * keys, 0.0);
        }
        let mut rest = out;
        for first in (0..queries).step_by(height) {
            let rows = height.min(queries - first);
            let seen = self.causal.map_or(keys, |before| before + first + rows);
            let (mut out, lower) = rest.split_rows(rows);
            rest = lower;
            let q = self.q.block(first, rows, 0, self.q.cols());
            let k = self.k.block(0, seen, 0, self.k.cols());
            let v = self.v.block(0, seen, 0, self.v.cols());
            let mut weights = MatMut::new(&mut scores, rows, seen, seen);
            product(q, k, Right::Transposed, self.scale, &mut weights);
            vectorized(
                #[inline(always)]
                || {
                    for row in 0..rows {
                        let seen = self.causal.map_or(seen, |before| before + first + row + 1);
                        softmax(weights.row_mut(row), seen);
                    }
                },
            );
            product(Mat::new(&scores, rows, seen, seen), v, Right::Plain, 1.0, &mut out);
        }
        SCORES.set(scores);
    }
}

/// Softmax over the first `seen` scores; the others become zero.
#[inline(always)]
fn softmax(scores: &mut [f32], seen: usize) {
    let (scores, masked) = scores.split_at_mut(seen);
    masked.fill(0.0);
    let largest = largest(scores);
    for score in scores.iter_mut() {
        *score = math::exp(*score - largest);
    }
    let factor = 1.0 / sum(scores);
    for score in scores {
        *score *= factor;
    }
}

/// Values taken side by side, so that the steps need not wait for each other.
const LANES: usize = 16;

#[inline(always)]
pub(super) fn largest(values: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if a > b { a } else { b };
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*value, *lane);
        }
    }
    lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |a, b| larger(*b, a))
}

#[inline(always)]
fn sum(values: &[f32]) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    lanes.iter().chain(rest).sum()
}

/// How the right side of a product is given.
#[derive(Clone, Copy)]
enum Right {
    /// `[k, n]`
    Plain,
    /// `[n, k]`
    Transposed,
}

/// `out = factor * a b`
fn product(a: Mat<'_>, b: Mat<'_>, right: Right, factor: f32, out: &mut MatMut<'_>) {
    let (k, n) = match right {
        Right::Plain => (b.rows(), b.cols()),
        Right::Transposed => (b.cols(), b.rows()),
    };
    assert_eq!((a.cols(), a.rows(), n), (k, out.rows(), out.cols()), "product: shapes");
    let (b_column, b_row) = match right {
        Right::Plain => (1, b.stride() as isize),
        Right::Transposed => (b.stride() as isize, 1),
    };
    // SAFETY: the pointers and strides are those of views whose constructors checked that every element lies in
    // memory that they borrow; the shapes were compared above; `out` is borrowed mutably, so it overlaps neither.
    unsafe {
        gemm::gemm(
            out.rows(),
            n,
            k,
            out.as_mut_ptr(),
            1,
            out.stride() as isize,
            false,
            a.as_ptr(),
            1,
            a.stride() as isize,
            b.as_ptr(),
            b_column,
            b_row,
            0.0,
            factor,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{assert_close, on_threads, random, wide};
    use super::*;

    #[derive(Clone, Copy, Debug)]
    struct Case {
        queries: usize,
        keys: usize,
        gap: usize,
        shape: AttentionShape,
    }

    impl Case {
        fn new(queries: usize, keys: usize, heads: usize, head_dim: usize) -> Self {
            let scale = 1.0 / (head_dim as f32).sqrt();
            let shape = AttentionShape {
                heads,
                kv_heads: heads,
                head_dim,
                scale,
                causal: false,
                sequences: 1,
            };
            Self { queries, keys, gap: 0, shape }
        }

        fn widths(&self) -> (usize, usize) {
            let AttentionShape { heads, kv_heads, head_dim, .. } = self.shape;
            (heads * head_dim, kv_heads * head_dim)
        }

        /// Queries, keys, values; large enough that the softmax is far from flat.
        fn operands(&self) -> [Vec<f32>; 3] {
            let (wide, narrow) = self.widths();
            let grow = |values: Vec<f32>| values.into_iter().map(|value| 3.0 * value).collect();
            [
                grow(random(1, self.queries * (wide + self.gap))),
                grow(random(2, self.keys * (narrow + self.gap))),
                random(3, self.keys * (narrow + self.gap)),
            ]
        }

        fn run(&self) -> Vec<f32> {
            let [q, k, v] = self.operands();
            let (wide, narrow) = self.widths();
            let mut out = vec![0.0; self.queries * (wide + self.gap)];
            attention(
                Mat::new(&q, self.queries, wide, wide + self.gap),
                Mat::new(&k, self.keys, narrow, narrow + self.gap),
                Mat::new(&v, self.keys, narrow, narrow + self.gap),
                &self.shape,
                MatMut::new(&mut out, self.queries, wide, wide + self.gap),
            );
            out
        }

        /// Everything in f64; gaps are zero.
        fn exact(&self) -> Vec<f64> {
            let [q, k, v] = self.operands().map(|operand| wide(&operand));
            let AttentionShape { heads, kv_heads, head_dim, scale, causal, sequences } = self.shape;
            let (wide, narrow) = self.widths();
            let (q_stride, k_stride) = (wide + self.gap, narrow + self.gap);
            let (queries, keys) = (self.queries / sequences, self.keys / sequences);
            let mut out = vec![0.0; self.queries * q_stride];
            for row in 0..self.queries {
                for head in 0..heads {
                    let shared = head / (heads / kv_heads) * head_dim;
                    let first = row / queries * keys;
                    let own = keys.saturating_sub(queries) + row % queries;
                    let last = if causal { first + own + 1 } else { first + keys };
                    let score = |key: usize| {
                        let q = &q[row * q_stride + head * head_dim..][..head_dim];
                        let k = &k[key * k_stride + shared..][..head_dim];
                        f64::from(scale) * q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>()
                    };
                    let scores: Vec<f64> = (first..last).map(score).collect();
                    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let total: f64 = scores.iter().map(|score| (score - largest).exp()).sum();
                    for (key, score) in (first..last).zip(&scores) {
                        let weight = (score - largest).exp() / total;
                        for d in 0..head_dim {
                            out[row * q_stride + head * head_dim + d] +=
                                weight * v[key * k_stride + shared + d];
                        }
                    }
                }
            }
            out
        }
    }

    fn cases() -> Vec<Case> {
        let grouped = |mut case: Case| {
            case.shape.kv_heads = case.shape.heads / 2;
            case
        };
        let causal = |mut case: Case| {
            case.shape.causal = true;
            case
        };
        let sequences = |mut case: Case, sequences| {
            case.shape.sequences = sequences;
            case
        };
        vec![
            Case::new(1, 1, 1, 1),
            Case::new(51, 36, 4, 48),
            Case::new(51, 81, 3, 48),
            Case::new(324, 324, 2, 72),
            Case { gap: 5, ..Case::new(49, 3, 2, 36) },
            sequences(Case { gap: 1, ..Case::new(162, 162, 2, 72) }, 2),
            sequences(causal(Case::new(12, 12, 2, 8)), 4),
            causal(grouped(Case { gap: 3, ..Case::new(116, 116, 4, 128) })),
            causal(grouped(Case::new(256, 256, 2, 32))),
            causal(grouped(Case::new(81, 116, 4, 128))),
            sequences(causal(Case { gap: 2, ..Case::new(6, 20, 2, 8) }), 2),
            grouped(Case::new(17, 9, 6, 16)),
        ]
    }

    #[test]
    fn attention_matches_f64() {
        for case in cases() {
            assert_close(&format!("{case:?}"), &case.run(), &case.exact(), 3e-6);
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_byte() {
        for case in cases() {
            let one = on_threads(1, || case.run());
            let two = on_threads(2, || case.run());
            let same = one.iter().zip(&two).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{case:?}");
        }
    }

    #[test]
    fn scores_beyond_the_range_of_exp_are_fine() {
        let mut scores = [1e30, 0.0, -1e30, 1e30];
        softmax(&mut scores, 4);
        assert_eq!(scores, [0.5, 0.0, 0.0, 0.5]);
    }

    #[test]
    fn not_a_number_is_not_lost() {
        let mut scores = [0.0, f32::NAN, 1.0];
        softmax(&mut scores, 3);
        assert!(scores.iter().all(|score| score.is_nan()));
    }
}
