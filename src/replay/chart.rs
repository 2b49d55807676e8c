//! What a diagram shows, whoever draws it.

use std::ops::Range;

/// A diagram over the time of the recording, seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    pub title: String,
    /// Of the values; empty where nobody knows it.
    pub unit: String,
    pub lines: Vec<Line>,
    /// Times during which an input kept the policy from predicting.
    pub outages: Vec<[f64; 2]>,
    /// Moments of another instruction or of a jump of the clock.
    pub marks: Vec<f64>,
}

/// Values over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub name: String,
    pub style: Style,
    /// Parts without a connection between them: time, value.
    pub parts: Vec<Vec<(f64, f64)>>,
}

/// What a line means, which decides how it looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    Predicted,
    /// The rows of a chunk that the next one replaces.
    Replaced,
    Recorded,
    /// One of several of the same kind, by number.
    Numbered(usize),
}

/// Points of a part that are drawn, at most; a screen shows no more.
const MAX_POINTS: usize = 4000;
/// An axis spans at least this share of its values, so that noise in the last digit does not look like motion.
const MIN_SPAN: f64 = 1e-3;
const MARGIN: f64 = 0.06;

impl Chart {
    fn values(&self) -> impl Iterator<Item = f64> {
        let points = self.lines.iter().flat_map(|line| line.parts.iter().flatten());
        points.map(|(_, value)| *value).filter(|value| value.is_finite())
    }

    /// Range of the values with a margin.
    pub fn value_range(&self) -> Range<f64> {
        let (low, high) = self
            .values()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            return 0.0..1.0;
        }
        let middle = low + (high - low) / 2.0;
        let least = (MIN_SPAN * middle.abs()).max(MIN_SPAN);
        let half = ((high - low) / 2.0).max(least) * (1.0 + 2.0 * MARGIN);
        middle - half..middle + half
    }

    /// Where the axis of the values has its marks, and with how many digits after the point.
    pub fn value_ticks(&self) -> (Vec<f64>, usize) {
        ticks(&self.value_range(), 4)
    }
}

impl Line {
    pub fn new(name: &str, style: Style, parts: Vec<Vec<(f64, f64)>>) -> Self {
        let parts = parts.into_iter().map(thinned).filter(|part| !part.is_empty()).collect();
        Self { name: name.to_owned(), style, parts }
    }
}

/// Points in parts: where the time from one to the next is much longer than usual, nothing connects them.
pub fn parted(points: Vec<(f64, f64)>) -> Vec<Vec<(f64, f64)>> {
    /// Times the median distance.
    const GAP: f64 = 2.5;
    let mut steps: Vec<f64> = points.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    steps.sort_by(f64::total_cmp);
    let usual = steps.get(steps.len() / 2).copied().unwrap_or(f64::INFINITY);
    let mut parts: Vec<Vec<(f64, f64)>> = Vec::new();
    for point in points {
        match parts.last_mut() {
            Some(part) if part.last().is_some_and(|last| point.0 - last.0 <= GAP * usual) => {
                part.push(point);
            }
            _ => parts.push(vec![point]),
        }
    }
    parts
}

/// Every so many points, and the last.
fn thinned(part: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let step = part.len().div_ceil(MAX_POINTS).max(1);
    let last = part.len().saturating_sub(1);
    let kept = |(at, point): (usize, (f64, f64))| (at % step == 0 || at == last).then_some(point);
    part.into_iter().enumerate().filter_map(kept).collect()
}

/// About `count` round numbers in a range, and their digits after the point.
pub fn ticks(range: &Range<f64>, count: usize) -> (Vec<f64>, usize) {
    let span = (range.end - range.start).max(f64::MIN_POSITIVE);
    let raw = span / count.max(1) as f64;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| *step >= raw).unwrap_or(10.0 * power);
    let digits = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    let first = (range.start / step).ceil();
    let ticks = (0..=2 * count).map(|number| (first + number as f64) * step);
    (ticks.filter(|tick| range.contains(tick)).collect(), digits)
}

/// The number without a sign where it rounds to zero.
pub fn number(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let is_zero = text.chars().all(|c| matches!(c, '-' | '0' | '.'));
    if is_zero { text.trim_start_matches('-').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let (found, digits) = ticks(&(-0.13..0.37), 4);
        let texts: Vec<String> = found.iter().map(|tick| number(*tick, digits)).collect();
        assert_eq!(texts, ["0.0", "0.2"]);
        let (found, digits) = ticks(&(0.0..12.0), 4);
        assert_eq!((found, digits), (vec![0.0, 5.0, 10.0], 0));
        assert_eq!(number(-0.0001, 2), "0.00");
    }

    #[test]
    fn ranges_hold_all_values_and_are_never_empty() {
        assert_eq!(Chart::default().value_range(), 0.0..1.0);
        let line = |values: &[f64]| {
            let part = values.iter().enumerate().map(|(at, value)| (at as f64, *value)).collect();
            Chart { lines: vec![Line::new("x", Style::Predicted, vec![part])], ..Chart::default() }
        };
        let range = line(&[1.0, 3.0, f64::NAN]).value_range();
        assert!(range.start < 1.0 && range.end > 3.0);
        let flat = line(&[5.0, 5.0]).value_range();
        assert!(flat.start < 5.0 && flat.end > 5.0);
    }

    #[test]
    fn a_long_gap_is_not_bridged() {
        let at = |seconds: f64| (seconds, 1.0);
        let parts = parted([0.0, 0.5, 1.0, 1.6, 3.5, 4.0].map(at).into());
        assert_eq!(parts, [vec![at(0.0), at(0.5), at(1.0), at(1.6)], vec![at(3.5), at(4.0)]]);
        assert_eq!(parted(vec![at(1.0)]), [vec![at(1.0)]]);
        assert_eq!(parted(vec![]), [] as [Vec<(f64, f64)>; 0]);
    }

    #[test]
    fn long_lines_keep_their_ends() {
        let part: Vec<(f64, f64)> = (0..10_001).map(|at| (f64::from(at), 0.0)).collect();
        let line = Line::new("x", Style::Recorded, vec![part, vec![]]);
        assert_eq!(line.parts.len(), 1);
        assert!(line.parts[0].len() <= MAX_POINTS + 1);
        assert_eq!(line.parts[0].last(), Some(&(10_000.0, 0.0)));
    }
}
