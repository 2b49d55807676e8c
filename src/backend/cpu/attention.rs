//! Softmax attention.

use super::mat::{Mat, MatMut};
use crate::program::AttentionShape;

/// `out = softmax(scale q k^T) v`, head by head and sequence by sequence.
///
/// `q` and `out` are `[rows, heads * head_dim]`, `k` and `v` `[key rows, kv_heads * head_dim]`.
pub fn attention(q: Mat<'_>, k: Mat<'_>, v: Mat<'_>, shape: &AttentionShape, mut out: MatMut<'_>) {
    let AttentionShape { heads, kv_heads, head_dim, scale, causal, sequences } = *shape;
    assert_eq!(q.cols(), heads * head_dim, "attention: queries");
    assert_eq!(k.cols(), kv_heads * head_dim, "attention: keys");
    assert_eq!((k.rows(), k.cols()), (v.rows(), v.cols()), "attention: values");
    assert_eq!((q.rows(), q.cols()), (out.rows(), out.cols()), "attention: result");
    assert!(
        kv_heads > 0 && heads.is_multiple_of(kv_heads),
        "attention: {heads} heads on {kv_heads}"
    );
    assert!(
        sequences > 0 && q.rows().is_multiple_of(sequences) && k.rows().is_multiple_of(sequences)
    );
    assert!(!causal || q.rows() == k.rows(), "attention: causal with {} keys", k.rows());
    let (queries, keys) = (q.rows() / sequences, k.rows() / sequences);
    let mut scores = vec![0.0; keys];
    for sequence in 0..sequences {
        for head in 0..heads {
            let own = head * head_dim;
            let shared = head / (heads / kv_heads) * head_dim;
            for i in 0..queries {
                let row = sequence * queries + i;
                let seen = if causal { i + 1 } else { keys };
                let query = &q.row(row)[own..own + head_dim];
                for (j, score) in scores[..seen].iter_mut().enumerate() {
                    let key = &k.row(sequence * keys + j)[shared..shared + head_dim];
                    *score = scale * query.iter().zip(key).map(|(q, k)| q * k).sum::<f32>();
                }
                let max = scores[..seen].iter().copied().fold(f32::NEG_INFINITY, f32::max);
                scores[..seen].iter_mut().for_each(|score| *score = (*score - max).exp());
                let total: f32 = scores[..seen].iter().sum();
                let result = &mut out.row_mut(row)[own..own + head_dim];
                result.fill(0.0);
                for (j, score) in scores[..seen].iter().enumerate() {
                    let value = &v.row(sequence * keys + j)[shared..shared + head_dim];
                    result.iter_mut().zip(value).for_each(|(out, v)| *out += score / total * v);
                }
            }
        }
    }
}
