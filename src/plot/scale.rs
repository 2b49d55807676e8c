//! Ranges of axes and the colours of chunks.

use plotters::style::RGBColor;

/// Share of the range that is left free above and below the values.
const MARGIN: f64 = 0.08;
/// Axes span at least this much, so that noise in the last digit does not look like motion.
const MIN_SPAN: f64 = 0.02;
/// From the first chunk to the last.
const ANCHORS: [[f64; 3]; 5] = [
    [68.0, 40.0, 132.0],
    [42.0, 104.0, 168.0],
    [26.0, 152.0, 128.0],
    [148.0, 170.0, 34.0],
    [240.0, 128.0, 24.0],
];

/// Values beyond this are left out of the picture, like those that are not finite: no joint or pose has them.
const MAX_PLOTTABLE: f64 = 1e9;

pub fn is_plottable(value: f64) -> bool {
    value.abs() <= MAX_PLOTTABLE
}

/// The range of an axis that shows all plottable `values`.
pub fn axis_range(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let finite = values.filter(|value| is_plottable(*value));
    let ends = finite.fold(None, |ends: Option<(f64, f64)>, value| {
        Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
    });
    let (low, high) = ends.unwrap_or_default();
    let middle = low + (high - low) / 2.0;
    let half = ((high - low) / 2.0).max(MIN_SPAN / 2.0) * (1.0 + 2.0 * MARGIN);
    middle - half..middle + half
}

/// Colour of chunk `index` of `count`.
pub fn chunk_colour(index: usize, count: usize) -> RGBColor {
    let last = ANCHORS.len() - 1;
    let place = index as f64 / (count.max(2) - 1) as f64 * last as f64;
    let from = (place as usize).min(last - 1);
    let share = (place - from as f64).min(1.0);
    let channel = |c: usize| {
        (ANCHORS[from][c] + (ANCHORS[from + 1][c] - ANCHORS[from][c]) * share).round() as u8
    };
    RGBColor(channel(0), channel(1), channel(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_their_values_and_never_collapse() {
        let range = axis_range([1.0, f64::NAN, 3.0, f64::INFINITY, 1e12].into_iter());
        assert!(range.start < 1.0 && range.end > 3.0 && range.end < 3.5, "{range:?}");
        for value in [0.0, -0.3, MAX_PLOTTABLE] {
            let flat = axis_range(std::iter::once(value));
            assert!(flat.start < value && value < flat.end, "{flat:?}");
        }
        assert!(!axis_range(std::iter::empty()).is_empty());
    }

    #[test]
    fn colours_run_from_the_first_anchor_to_the_last() {
        let RGBColor(r, g, b) = chunk_colour(0, 9);
        assert_eq!([r, g, b].map(f64::from), ANCHORS[0]);
        let RGBColor(r, g, b) = chunk_colour(8, 9);
        assert_eq!([r, g, b].map(f64::from), ANCHORS[4]);
        assert_eq!(chunk_colour(0, 1), chunk_colour(0, 9));
    }
}
