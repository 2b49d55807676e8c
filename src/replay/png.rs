//! Diagrams as a PNG, one below the other.

use std::ops::Range;
use std::path::Path;

use image::RgbImage;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::chart::{Chart, Line, Style, number};
use super::error::ReplayError;
use crate::plot::{FONT, encode_png, register_font};

const WIDTH: u32 = 1400;
const PANEL: u32 = 190;
const HEADER: u32 = 56;
const BORDER: i32 = 20;
/// Drawn this many times larger and averaged.
const OVERSAMPLING: u32 = 2;
/// A taller picture is cut into several.
pub const MAX_PANELS: usize = 24;
const INK: RGBColor = RGBColor(32, 36, 44);
const FAINT: RGBColor = RGBColor(96, 102, 112);
const GRID: RGBColor = RGBColor(226, 229, 234);
const OUTAGE: RGBColor = RGBColor(252, 226, 222);
const MARK: RGBColor = RGBColor(150, 90, 190);
const NUMBERED: [RGBColor; 6] = [
    RGBColor(33, 102, 172),
    RGBColor(214, 96, 20),
    RGBColor(27, 140, 90),
    RGBColor(150, 60, 150),
    RGBColor(120, 110, 20),
    RGBColor(90, 90, 90),
];

/// What the shaded times are.
const OUT: &str = "an input is out";

type Area<'a> = DrawingArea<BitMapBackend<'a>, plotters::coord::Shift>;

/// Writes diagrams that share a title and a range of time.
///
/// # Errors
/// A file that cannot be written.
pub fn save(
    path: &Path,
    title: &str,
    charts: &[Chart],
    time: &Range<f64>,
) -> Result<(), ReplayError> {
    let error = |problem: String| ReplayError::Draw { path: path.to_owned(), problem };
    let picture = draw(title, charts, time).map_err(error)?;
    encode_png(&picture, path).map_err(|problem| error(problem.to_string()))
}

fn draw(title: &str, charts: &[Chart], time: &Range<f64>) -> Result<RgbImage, String> {
    register_font().map_err(|error| error.to_string())?;
    let height = HEADER + PANEL * charts.len() as u32 + BORDER as u32;
    let size = (WIDTH * OVERSAMPLING, height * OVERSAMPLING);
    let mut pixels = vec![0; 3 * size.0 as usize * size.1 as usize];
    {
        let root = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
        let drawn = root
            .fill(&WHITE)
            .map_err(|error| error.to_string())
            .and_then(|()| header(&root, title, charts));
        drawn?;
        for (number, chart) in charts.iter().enumerate() {
            let top = px((HEADER + PANEL * number as u32) as i32);
            let area = root.clone().shrink(
                (px(BORDER), top),
                ((WIDTH - 2 * BORDER as u32) * OVERSAMPLING, PANEL * OVERSAMPLING),
            );
            panel(&area, chart, time)?;
        }
        root.present().map_err(|error| error.to_string())?;
    }
    let large = RgbImage::from_raw(size.0, size.1, pixels).ok_or("no room for the picture")?;
    Ok(image::imageops::thumbnail(&large, WIDTH, height))
}

/// Digits after the point that tell about `labels` marks of an axis apart, wherever the drawing library puts them.
fn digits(range: &Range<f64>, labels: usize) -> usize {
    let step = (range.end - range.start) / labels as f64;
    (-step.log10().floor()).clamp(0.0, 9.0) as usize
}

const fn px(length: i32) -> i32 {
    length * OVERSAMPLING as i32
}

fn style(size: i32, colour: RGBColor) -> TextStyle<'static> {
    TextStyle { color: colour.to_backend_color(), ..(FONT, px(size)).into_font().into() }
}

/// Title, and what the lines mean.
fn header(root: &Area, title: &str, charts: &[Chart]) -> Result<(), String> {
    let left = Pos::new(HPos::Left, VPos::Center);
    let error = |error: DrawingAreaErrorKind<_>| error.to_string();
    root.draw_text(title, &style(20, INK).pos(left), (px(BORDER), px(18))).map_err(error)?;
    let mut names: Vec<&Line> = Vec::new();
    for line in charts.iter().flat_map(|chart| &chart.lines) {
        if !names.iter().any(|known| known.name == line.name) {
            names.push(line);
        }
    }
    let mut x = BORDER;
    for line in names {
        let ends = vec![(px(x), px(42)), (px(x + 26), px(42))];
        root.draw(&PathElement::new(ends, stroke(line.style))).map_err(error)?;
        let text = style(14, FAINT).pos(left);
        root.draw_text(&line.name, &text, (px(x + 32), px(42))).map_err(error)?;
        let (width, _) = root.estimate_text_size(&line.name, &text).map_err(error)?;
        x += 32 + (width / OVERSAMPLING) as i32 + 24;
    }
    let text = style(14, FAINT).pos(left);
    if charts.iter().any(|chart| !chart.outages.is_empty()) {
        let corners = [(px(x), px(35)), (px(x + 26), px(49))];
        root.draw(&Rectangle::new(corners, OUTAGE.filled())).map_err(error)?;
        root.draw_text(OUT, &text, (px(x + 32), px(42))).map_err(error)?;
        let (width, _) = root.estimate_text_size(OUT, &text).map_err(error)?;
        x += 32 + (width / OVERSAMPLING) as i32 + 24;
    }
    if charts.iter().any(|chart| !chart.marks.is_empty()) {
        let ends = vec![(px(x + 13), px(35)), (px(x + 13), px(49))];
        root.draw(&PathElement::new(ends, MARK.stroke_width(px(1) as u32))).map_err(error)?;
        let meaning = "new instruction, or jump of the clock";
        root.draw_text(meaning, &text, (px(x + 32), px(42))).map_err(error)?;
    }
    Ok(())
}

fn stroke(of: Style) -> ShapeStyle {
    match of {
        Style::Predicted => RGBColor(33, 102, 172).stroke_width(px(2) as u32),
        Style::Replaced => RGBColor(160, 196, 228).stroke_width(px(1) as u32),
        Style::Recorded => RGBColor(20, 22, 26).stroke_width(px(1) as u32 + 1),
        Style::Numbered(number) => NUMBERED[number % NUMBERED.len()].stroke_width(px(1) as u32 + 1),
    }
}

fn panel(area: &Area, chart: &Chart, time: &Range<f64>) -> Result<(), String> {
    let error = |error: DrawingAreaErrorKind<_>| error.to_string();
    let unit = if chart.unit.is_empty() { String::new() } else { format!(" [{}]", chart.unit) };
    let left = Pos::new(HPos::Left, VPos::Center);
    let title = format!("{}{unit}", chart.title);
    area.draw_text(&title, &style(15, INK).pos(left), (px(64), px(9))).map_err(error)?;
    let range = chart.value_range();
    let (digits, time_digits) = (digits(&range, 5), digits(time, 10));
    let mut plot = ChartBuilder::on(area)
        .margin_top(px(19))
        .margin_right(px(10))
        .x_label_area_size(px(22))
        .y_label_area_size(px(64))
        .build_cartesian_2d(time.clone(), range.clone())
        .map_err(error)?;
    let shaded = chart.outages.iter().map(|[from, to]| {
        let corners = [(from.max(time.start), range.start), (to.min(time.end), range.end)];
        Rectangle::new(corners, OUTAGE.filled())
    });
    plot.draw_series(shaded).map_err(error)?;
    plot.configure_mesh()
        .x_labels(10)
        .y_labels(5)
        .x_label_formatter(&|at| format!("{} s", number(*at, time_digits)))
        .y_label_formatter(&|value| number(*value, digits))
        .label_style(style(13, FAINT))
        .axis_style(GRID.stroke_width(px(1) as u32))
        .bold_line_style(GRID.stroke_width(1))
        .light_line_style(TRANSPARENT)
        .draw()
        .map_err(error)?;
    let marks = chart.marks.iter().map(|at| {
        PathElement::new(
            vec![(*at, range.start), (*at, range.end)],
            MARK.stroke_width(px(1) as u32),
        )
    });
    plot.draw_series(marks).map_err(error)?;
    for line in &chart.lines {
        for part in &line.parts {
            let points: Vec<(f64, f64)> =
                part.iter().copied().filter(|(_, value)| value.is_finite()).collect();
            match points[..] {
                [only] => {
                    let dot = Circle::new(only, px(2), stroke(line.style).filled());
                    plot.draw_series([dot]).map_err(error)?;
                }
                _ => {
                    let drawn = LineSeries::new(points, stroke(line.style));
                    plot.draw_series(drawn).map_err(error)?;
                }
            }
        }
    }
    Ok(())
}
