//! Which core works on how much of an operation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Units of work, such as tiles of the output, on every core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// By core; those at the end may have nothing.
    pub loads: Vec<u64>,
    /// What the busiest core works on: rows and columns of tiles, or single units and 1.
    pub block: [u64; 2],
}

impl Spread {
    /// Rectangles of `rows` x `cols` tiles: those of which the busiest core has the fewest tiles, and among them the ones
    /// that need the fewest tiles of both factors of a product.
    pub fn blocks(rows: u64, cols: u64, cores: usize) -> Self {
        let cores = cores as u64;
        let blocks = (1..=cores.min(rows)).map(|down| {
            let across = (cores / down).min(cols).max(1);
            [rows.div_ceil(down), cols.div_ceil(across)]
        });
        let block = blocks.min_by_key(|[high, wide]| (high * wide, high + wide)).unwrap_or([0, 0]);
        let pieces = |length: u64, piece: u64| {
            (0..length.div_ceil(piece.max(1))).map(move |at| piece.min(length - at * piece))
        };
        let loads = pieces(rows, block[0])
            .flat_map(|high| pieces(cols, block[1]).map(move |wide| high * wide))
            .collect();
        Self { loads, block }
    }

    /// Units of different size, each on one core: the largest first, to whoever has the least.
    pub fn dealt(mut units: Vec<u64>, cores: usize) -> Self {
        units.sort_unstable_by_key(|unit| Reverse(*unit));
        let mut least: BinaryHeap<Reverse<(u64, u64, usize)>> =
            (0..cores).map(|core| Reverse((0, 0, core))).collect();
        for unit in units {
            if let Some(Reverse((load, count, core))) = least.pop() {
                least.push(Reverse((load + unit, count + 1, core)));
            }
        }
        let mut loads = vec![0; cores];
        let mut busiest = (0, 0);
        for Reverse((load, count, core)) in least {
            loads[core] = load;
            busiest = busiest.max((load, count));
        }
        Self { loads, block: [busiest.1, 1] }
    }

    pub fn busiest(&self) -> u64 {
        self.loads.iter().copied().max().unwrap_or_default()
    }

    pub fn total(&self) -> u64 {
        self.loads.iter().sum()
    }

    /// Cores with something to do.
    pub fn cores(&self) -> usize {
        self.loads.iter().filter(|load| **load > 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_tile_once() {
        for (rows, cols) in [(1, 1), (4, 64), (16, 64), (56, 128), (11, 135), (2, 48), (1, 4)] {
            for cores in [1, 7, 96, 110] {
                let spread = Spread::blocks(rows, cols, cores);
                assert_eq!(spread.total(), rows * cols, "{rows} x {cols} on {cores}");
                assert!(spread.loads.len() <= cores, "{rows} x {cols} on {cores}");
                assert_eq!(spread.busiest(), spread.block[0] * spread.block[1]);
            }
        }
        assert_eq!(Spread::blocks(0, 5, 4).total(), 0);
    }

    #[test]
    fn the_busiest_core_has_little_more_than_its_share() {
        // 1024 tiles are 9.3 a core; 8 rows of cores with 13 each have 2 x 5.
        assert_eq!(Spread::blocks(16, 64, 110).busiest(), 10);
        // As many tiles as cores.
        assert_eq!(Spread::blocks(2, 48, 96).busiest(), 1);
        assert_eq!(Spread::blocks(2, 192, 96).block, [2, 2]);
    }

    #[test]
    fn units_are_dealt_evenly() {
        let spread = Spread::dealt((1..=8).collect(), 4);
        assert_eq!(spread.loads, [9; 4]);
        assert_eq!(spread.block, [2, 1]);
        let few = Spread::dealt(vec![3, 5], 4);
        assert_eq!((few.busiest(), few.total(), few.cores()), (5, 8, 2));
        assert_eq!(Spread::dealt(vec![], 4).busiest(), 0);
    }
}
