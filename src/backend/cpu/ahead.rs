//! Calling up weights from memory before they are needed.

use std::ops::Range;

use half::bf16;

use super::mat::WeightBlock;
use super::tile::STEPS;
use crate::program::Orientation;

/// Elements in a cache line.
pub const LINE: usize = 64 / size_of::<bf16>();

/// Calls of [`Ahead::prefetch`] in which a tile gets as far along `k` as a line reaches.
const CALLS_PER_LINE: usize = LINE / STEPS;

/// Weights that are worked on after those at hand.
pub struct Ahead {
    /// The first of them.
    first: *const bf16,
    columns: usize,
    /// Columns that are called up at a time.
    at_once: usize,
    /// Elements from one column to the next.
    stride: usize,
}

impl Ahead {
    /// The weights of `columns`, as many as the matrix has, from `first_input` on.
    pub fn new(weight: WeightBlock<'_>, columns: Range<usize>, first_input: usize) -> Self {
        let columns = match weight.orientation() {
            Orientation::OutIn => columns.start..columns.end.min(weight.outputs()),
            // The columns beside those at hand lie in the same cache lines.
            Orientation::InOut => 0..0,
        };
        let stride = weight.stride();
        let offset = columns.start * stride + first_input;
        Self {
            first: weight.values().as_ptr().wrapping_add(offset),
            columns: columns.len(),
            at_once: columns.len().div_ceil(CALLS_PER_LINE),
            stride,
        }
    }

    /// To be called after every [`STEPS`] steps of a tile, with the number of calls before.
    #[inline(always)]
    pub fn prefetch(&self, call: usize) {
        self.lines(call).for_each(prefetch);
    }

    /// The next cache line of some of the columns; the calls take turns. May lie beyond the weights: to ask for every
    /// line whether it does costs more than to call it up.
    #[inline(always)]
    fn lines(&self, call: usize) -> impl Iterator<Item = *const bf16> {
        let (line, turn) = (call / CALLS_PER_LINE, call % CALLS_PER_LINE);
        let first = turn * self.at_once;
        (first..self.columns.min(first + self.at_once))
            .map(move |column| self.first.wrapping_add(column * self.stride + line * LINE))
    }
}

/// Calls up a cache line, if there is memory at that address.
#[inline(always)]
fn prefetch(address: *const bf16) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch has no effect that the program can observe, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_every_column_is_called_up_once() {
        let (outputs, inputs, first_input) = (60, 6 * LINE, 2 * LINE);
        let values = vec![bf16::ZERO; outputs * inputs];
        let weight = WeightBlock::new(&values, outputs, inputs, Orientation::OutIn);
        for columns in [0..48, 3..4, 12..19, 48..96, 60..108] {
            let ahead = Ahead::new(weight, columns.clone(), first_input);
            let calls = 0..4 * CALLS_PER_LINE;
            let mut found: Vec<_> = calls.flat_map(|call| ahead.lines(call)).collect();
            found.sort();
            let expected: Vec<_> = (columns.start..columns.end.min(outputs))
                .flat_map(|column| (2..6).map(move |line| column * inputs + line * LINE))
                .map(|offset| values.as_ptr().wrapping_add(offset))
                .collect();
            assert_eq!(found, expected, "{columns:?}");
        }
    }
}
