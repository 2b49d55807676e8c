//! A diagram as SVG, to stand inside of an HTML page whose style sheet has its colours.

use std::fmt::Write;
use std::ops::Range;

use super::chart::{Chart, Style, number, ticks};
use crate::page::escaped;

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 24.0;

/// The diagram over this range of time.
pub fn svg(chart: &Chart, time: &Range<f64>) -> String {
    let values = chart.value_range();
    let span = (time.end - time.start).max(f64::MIN_POSITIVE);
    let x = |at: f64| LEFT + (at - time.start) / span * (WIDTH - LEFT - RIGHT);
    let height = HEIGHT - TOP - BOTTOM;
    let y = |value: f64| TOP + (values.end - value) / (values.end - values.start) * height;
    let bottom = HEIGHT - BOTTOM;
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        svg,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escaped(&chart.title)
    );
    for [from, to] in &chart.outages {
        let (from, to) = (x(from.max(time.start)), x(to.min(time.end)));
        let width = (to - from).max(1.0);
        let _ = write!(
            svg,
            "<rect class=\"outage\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }
    let (value_ticks, digits) = chart.value_ticks();
    for tick in value_ticks {
        let at = y(tick);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            number(tick, digits)
        );
    }
    let (time_ticks, digits) = ticks(time, 8);
    for tick in time_ticks {
        let at = x(tick);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{at:.1} {TOP}V{bottom}\"/><text x=\"{at:.1}\" y=\"{:.1}\" class=\"middle\">{} s</text>",
            HEIGHT - 8.0,
            number(tick, digits)
        );
    }
    for mark in &chart.marks {
        let at = x(*mark);
        let _ = write!(svg, "<path class=\"mark\" d=\"M{at:.1} {TOP}V{bottom}\"/>");
    }
    for line in &chart.lines {
        let class = class(line.style);
        for part in &line.parts {
            let points = part.iter().filter(|(_, value)| value.is_finite());
            let mut path = String::new();
            for (number, (at, value)) in points.enumerate() {
                let command = if number == 0 { 'M' } else { 'L' };
                let _ = write!(path, "{command}{:.1} {:.1}", x(*at), y(*value));
            }
            // A single point has no length, and is drawn by the round end of its stroke.
            if part.len() == 1 {
                path.push_str("h0");
            }
            let _ = write!(svg, "<path class=\"{class}\" d=\"{path}\"/>");
        }
    }
    svg.push_str("</svg>");
    svg
}

/// How the page's style sheet calls a line.
pub fn class(style: Style) -> String {
    match style {
        Style::Predicted => "line predicted".to_owned(),
        Style::Replaced => "line replaced".to_owned(),
        Style::Recorded => "line recorded".to_owned(),
        Style::Numbered(number) => format!("line n{}", number % 6),
    }
}

#[cfg(test)]
mod tests {
    use super::super::chart::Line;
    use super::*;

    #[test]
    fn titles_are_escaped_and_values_without_a_number_left_out() {
        let part = vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, 2.0)];
        let chart = Chart {
            title: "<b>\"&".to_owned(),
            lines: vec![Line::new("x", Style::Predicted, vec![part, vec![(1.0, 1.5)]])],
            outages: vec![[-5.0, 0.5]],
            ..Chart::default()
        };
        let svg = svg(&chart, &(0.0..2.0));
        assert!(svg.contains("&lt;b&gt;&quot;&amp;") && !svg.contains("<b>"), "{svg}");
        assert!(!svg.contains("NaN") && svg.contains("h0"), "{svg}");
        assert_eq!(svg.matches("class=\"line predicted\"").count(), 2);
    }
}
