//! Enlargement: two taps per axis with 11-bit weights, in integers.

use multiversion::multiversion;

use super::super::lanes::{LaneTable, Taps};
use super::super::view::{Size, View, Window};
use super::{Axis, OutputRows, paint_row};

/// Weight of one whole sample.
const ONE: f32 = 2048.0;

#[derive(Clone, Debug)]
pub(super) struct Enlarger {
    canvas: Size,
    window: Window,
    columns: LaneTable<i16>,
    rows: Vec<RowTaps>,
    /// One row of the canvas, and what the last vectors read beyond it.
    source: Vec<u8>,
    /// Widened rows: even ones in the first, odd ones in the second.
    widened: [Vec<i16>; 2],
}

/// The two rows that one output row lies between.
#[derive(Clone, Copy, Debug)]
struct RowTaps {
    rows: [usize; 2],
    weights: [i16; 2],
}

impl Enlarger {
    pub fn new(horizontal: Axis, vertical: Axis, window: Window) -> Self {
        let columns = LaneTable::new(&bilinear_taps(horizontal), horizontal.source);
        let row_taps = |taps: Taps<i16>| RowTaps {
            rows: [taps.start, taps.start + taps.weights.len() - 1],
            weights: [taps.weights[0], taps.weights.get(1).copied().unwrap_or(0)],
        };
        let rows = bilinear_taps(vertical).into_iter().map(row_taps).collect();
        let source = vec![0; columns.input_len()];
        let widened = vec![0; columns.output_len()];
        let canvas = Size { width: horizontal.source, height: vertical.source };
        Self { canvas, window, columns, rows, source, widened: [widened.clone(), widened] }
    }

    pub fn run(&mut self, picture: View<'_>, rows: OutputRows<'_>) {
        let mut held = [None; 2];
        for (taps, out) in self.rows.iter().zip(rows) {
            for y in taps.rows {
                if held[y % 2] != Some(y) {
                    let row = if self.window.size == self.canvas {
                        picture.row_and_beyond(y, self.columns.input_len(), &mut self.source)
                    } else {
                        paint_row(picture, self.window, y, &mut self.source);
                        &self.source
                    };
                    widen(&self.columns, row, &mut self.widened[y % 2]);
                    held[y % 2] = Some(y);
                }
            }
            let [first, second] = taps.rows.map(|y| &self.widened[y % 2]);
            blend(first, second, taps.weights, out);
        }
    }
}

/// Horizontal pass of one row. The result keeps 7 fractional bits, so that it fits 16.
#[multiversion(targets("x86_64+avx+avx2"))]
fn widen(table: &LaneTable<i16>, input: &[u8], output: &mut [i16]) {
    table.run(input, 0, output, |sum| (sum >> 4) as i16);
}

/// Vertical pass of one output row.
#[multiversion(targets("x86_64+avx+avx2"))]
fn blend(first: &[i16], second: &[i16], weights: [i16; 2], out: &mut [u8]) {
    let high_half =
        |weight: i16, sample: i16| ((i32::from(weight) * i32::from(sample)) >> 16) as i16;
    for ((out, first), second) in out.iter_mut().zip(first).zip(second) {
        *out = ((high_half(weights[0], *first) + high_half(weights[1], *second) + 2) >> 2) as u8;
    }
}

/// The one or two inputs that each output lies on or between.
fn bilinear_taps(axis: Axis) -> Vec<Taps<i16>> {
    let (inverse, scale) = (axis.inverse(), axis.scale());
    let fixed_point = |weight: f32| (weight * ONE).round_ties_even() as i16;
    let taps_of = |output: usize| {
        let start = (output as f64 * scale).floor() as usize;
        let last = axis.source - 1;
        if start >= last {
            return Taps { start: last, weights: vec![fixed_point(1.0)] };
        }
        let past = ((output + 1) as f64 - (start + 1) as f64 * inverse) as f32;
        let fraction = if past <= 0.0 { 0.0 } else { past - past.floor() };
        Taps { start, weights: vec![fixed_point(1.0 - fraction), fixed_point(fraction)] }
    };
    (0..axis.target).map(taps_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubling_repeats_every_input_and_blends_none() {
        let taps = bilinear_taps(Axis { source: 2, target: 4 });
        let expected = [
            Taps { start: 0, weights: vec![2048, 0] },
            Taps { start: 0, weights: vec![2048, 0] },
            Taps { start: 1, weights: vec![2048] },
            Taps { start: 1, weights: vec![2048] },
        ];
        assert_eq!(taps, expected);
    }

    #[test]
    fn weights_of_an_output_between_two_inputs() {
        // Output 1 of 4 spans inputs 0.75 to 1.5: a third of it lies in input 0, two thirds in input 1.
        let taps = bilinear_taps(Axis { source: 3, target: 4 });
        assert_eq!(taps[1], Taps { start: 0, weights: vec![683, 1365] });
    }
}
