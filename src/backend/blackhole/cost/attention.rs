//! Attention: heads and rows of query tiles are dealt to cores.

use super::spread::Spread;
use super::work::{Place, Work, tiles, value_tile_bytes};
use crate::backend::blackhole::numerics::tile::SIDE;
use crate::program::{AttentionShape, View};

/// Passes for a tile of scores besides the exponential: the largest so far (load, compare and exchange, which takes two),
/// its distance, the sum.
const SOFTMAX: f64 = 5.0;
/// Passes for a tile of the result, which is divided by the sum: load, multiply, store, next address.
const DIVIDE: f64 = 4.0;

/// `softmax(scale q k^T) v`.
///
/// A unit is one tile of scores: so many products for `q k^T` and for `p v`, and the softmax between them. A core that
/// has several rows of queries reads keys and values for each.
pub fn attention(
    place: &Place<'_>,
    [q, k, v]: [View; 3],
    shape: AttentionShape,
    out: View,
) -> Work {
    let head_tiles = tiles(shape.head_dim);
    let visible = visible_tiles(q.rows / shape.sequences, k.rows / shape.sequences, shape.causal);
    let scores: u64 = visible.iter().sum();
    let copies = shape.sequences * shape.heads;
    let units = visible.iter().copied().cycle().take(copies * visible.len()).collect();
    let spread = Spread::dealt(units, place.execution.heads());
    let query_rows = spread.block[0];
    let results = visible.len() as u64 * head_tiles;
    let divide = DIVIDE * results as f64 / scores.max(1) as f64;
    let mut work = Work {
        tile_matmuls: 2 * head_tiles,
        vector_passes: place.rates.exponential + SOFTMAX + divide,
        handovers: 1,
        first_core: place.execution.first_head(),
        ..Work::default()
    };
    work.read(place, q, query_rows * head_tiles);
    for view in [k, v] {
        if place.placement.is_read_from_dram(place.position, view) {
            work.move_view(view);
        }
    }
    work.transfer(2 * spread.busiest() * head_tiles, value_tile_bytes());
    work.write(place, out, query_rows * head_tiles);
    work.spread = spread;
    work
}

/// For every row of query tiles, how many tiles of keys it sees. Queries are the last rows of a causal sequence.
fn visible_tiles(queries: usize, keys: usize, causal: bool) -> Vec<u64> {
    let before = keys.saturating_sub(queries);
    (0..tiles(queries))
        .map(|row| {
            let last = (before + (row as usize + 1) * SIDE).min(keys);
            tiles(if causal { last } else { keys })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_queries_sees_what_is_before_it() {
        assert_eq!(visible_tiles(64, 448, false), [14, 14]);
        assert_eq!(visible_tiles(96, 96, true), [1, 2, 3]);
        // 44 rows went before: the first tile of queries ends at row 76.
        assert_eq!(visible_tiles(84, 128, true), [3, 4, 4]);
        assert_eq!(visible_tiles(16, 16, true), [1]);
    }
}
