//! The picture: one panel per dimension, one row of panels or more per group, chunks drawn over each other.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ImageError, RgbImage};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::panels::{Panel, PanelGroup, Panels, panels};
use super::scale::chunk_colour;
use super::{ChunkView, Observed, one_line};
use crate::whole;

/// Width of the picture, pixels.
const WIDTH: u32 = 1600;
/// Everything is drawn this many times larger and averaged, which smooths lines and letters.
const OVERSAMPLING: u32 = 2;
const BORDER: i32 = 24;
const HEADER: u32 = 104;
const GROUP_HEADING: u32 = 30;
const PANEL_HEIGHT: u32 = 158;
const PANELS_PER_ROW: usize = 7;
/// More dimensions than this are refused: the picture would be taller than viewers show.
pub const MAX_PANELS: usize = 140;
const MAX_TITLE: usize = 110;
const MAX_PANEL_TITLE: usize = 30;

/// Name of the built-in font, once it is registered.
pub const FONT: &str = "plot";
const INK: RGBColor = RGBColor(32, 36, 44);
const FAINT_INK: RGBColor = RGBColor(96, 102, 112);
const GRID: RGBColor = RGBColor(228, 231, 236);
const HEADING_BAND: RGBColor = RGBColor(240, 242, 246);
const OBSERVED: RGBColor = RGBColor(20, 22, 26);

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    #[error("there is no chunk to plot")]
    NoChunks,
    #[error("{0} dimensions are too many for one picture; up to {MAX_PANELS} are drawn")]
    TooManyPanels(usize),
    #[error("cannot draw the plot: {0}")]
    Draw(String),
    #[error("cannot write {path}: {error}")]
    Save { path: PathBuf, error: ImageError },
}

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for PlotError {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        PlotError::Draw(error.to_string())
    }
}

/// Writes the picture of all `chunks`, each at its own time, over what the robot reported. Dimensions are matched
/// with observations by their labels.
///
/// # Errors
/// No chunks, more than `MAX_PANELS` dimensions, or a file that cannot be written.
pub fn save_png(chunks: &[ChunkView], observed: &[Observed], path: &Path) -> Result<(), PlotError> {
    encode_png(&draw(chunks, observed)?, path)
}

/// Writes a picture as small as it gets; pictures are rare.
///
/// # Errors
/// A file that cannot be written.
pub fn encode_png(picture: &RgbImage, path: &Path) -> Result<(), PlotError> {
    let save_error = |error| PlotError::Save { path: path.into(), error };
    let mut bytes = Vec::new();
    // Smaller by half than the encoder's default.
    let encoder =
        PngEncoder::new_with_quality(&mut bytes, CompressionType::Best, FilterType::Adaptive);
    picture.write_with_encoder(encoder).map_err(save_error)?;
    whole::write(path, &bytes).map_err(|error| save_error(ImageError::IoError(error)))
}

type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;

fn draw(chunks: &[ChunkView], observed: &[Observed]) -> Result<RgbImage, PlotError> {
    let (Some(first), panels) = (chunks.first(), panels(chunks, observed)) else {
        return Err(PlotError::NoChunks);
    };
    let count: usize = panels.groups.iter().map(|group| group.panels.len()).sum();
    if count > MAX_PANELS {
        return Err(PlotError::TooManyPanels(count));
    }
    register_font()?;
    let height = HEADER + panels.groups.iter().map(group_height).sum::<u32>() + BORDER as u32;
    let size = (WIDTH * OVERSAMPLING, height * OVERSAMPLING);
    let mut pixels = vec![0; 3 * size.0 as usize * size.1 as usize];
    {
        let root = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
        root.fill(&WHITE)?;
        draw_header(&root, first, chunks, has_observed(&panels))?;
        let mut top = HEADER;
        for group in &panels.groups {
            draw_group(&root, top, group, &panels, chunks.len())?;
            top += group_height(group);
        }
        root.present()?;
    }
    let large = RgbImage::from_raw(size.0, size.1, pixels)
        .ok_or_else(|| PlotError::Draw(format!("no room for {}x{} pixels", size.0, size.1)))?;
    Ok(image::imageops::thumbnail(&large, WIDTH, height))
}

/// Makes the built-in font known to the drawing library.
///
/// # Errors
/// The font is damaged.
pub fn register_font() -> Result<(), PlotError> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let font = epaint_default_fonts::UBUNTU_LIGHT;
    let registered = *REGISTERED
        .get_or_init(|| plotters::style::register_font(FONT, FontStyle::Normal, font).is_ok());
    if registered { Ok(()) } else { Err(PlotError::Draw("the built-in font is damaged".into())) }
}

fn has_observed(panels: &Panels) -> bool {
    panels.groups.iter().flat_map(|group| &group.panels).any(|panel| !panel.observed.is_empty())
}

fn group_height(group: &PanelGroup) -> u32 {
    GROUP_HEADING + group.panels.len().div_ceil(PANELS_PER_ROW) as u32 * PANEL_HEIGHT
}

/// A length in pixels of the finished picture, as drawn.
const fn px(length: i32) -> i32 {
    length * OVERSAMPLING as i32
}

fn text_style(size: i32, colour: RGBColor) -> TextStyle<'static> {
    TextStyle { color: colour.to_backend_color(), ..(FONT, px(size)).into_font().into() }
}

/// Writes `text` with its middle at `at` downwards, and gives the place where it ends to the right.
fn write(
    root: &Area,
    text: &str,
    at: (i32, i32),
    size: i32,
    colour: RGBColor,
) -> Result<i32, PlotError> {
    let style = text_style(size, colour).pos(Pos::new(HPos::Left, VPos::Center));
    root.draw_text(text, &style, (px(at.0), px(at.1)))?;
    let (width, _) = root.estimate_text_size(text, &style)?;
    Ok(at.0 + (width / OVERSAMPLING) as i32)
}

fn draw_header(
    root: &Area,
    first: &ChunkView,
    chunks: &[ChunkView],
    observed: bool,
) -> Result<(), PlotError> {
    let mut instructions: Vec<&str> = chunks.iter().map(|chunk| &*chunk.instruction).collect();
    instructions.dedup();
    let title = format!(
        "{}: \u{201c}{}\u{201d}",
        first.embodiment,
        instructions.join("\u{201d}, \u{201c}")
    );
    write(root, &one_line(&title, MAX_TITLE), (BORDER, 26), 25, INK)?;
    let rows = first.groups.iter().map(|group| group.rows()).max().unwrap_or(0);
    let seed = first.seed.map_or("given noise".into(), |seed| format!("seed {seed}"));
    let summary = format!(
        "GR00T {}, {seed}; {} of {rows} steps every {:.0} ms; time in seconds since the first observation",
        first.version,
        if chunks.len() == 1 { "1 chunk".into() } else { format!("{} chunks", chunks.len()) },
        first.dt_s * 1e3,
    );
    write(root, &summary, (BORDER, 54), 16, FAINT_INK)?;
    draw_legend(root, chunks.len(), observed)
}

fn draw_legend(root: &Area, count: usize, observed: bool) -> Result<(), PlotError> {
    const Y: i32 = 80;
    const SWATCH: i32 = 16;
    const MAX_SWATCHES: usize = 24;
    /// Between a sign and its text, and between one entry and the next.
    const NEAR: i32 = 8;
    const APART: i32 = 32;
    let mut x = write(root, "chunk 1", (BORDER, Y), 16, INK)? + NEAR;
    let swatches = count.min(MAX_SWATCHES);
    for index in 0..swatches {
        let colour = chunk_colour(index, swatches);
        let corners = [(px(x), px(Y - 2)), (px(x + SWATCH - 2), px(Y + 2))];
        root.draw(&Rectangle::new(corners, colour.filled()))?;
        x += SWATCH;
    }
    if count > 1 {
        x = write(root, &format!("chunk {count}"), (x + NEAR, Y), 16, INK)?;
    }
    x += APART;
    root.draw(&Circle::new((px(x), px(Y)), px(3), chunk_colour(0, count).filled()))?;
    x = write(root, "first step of a chunk", (x + NEAR, Y), 16, INK)? + APART;
    if observed {
        root.draw(&PathElement::new(vec![(px(x), px(Y)), (px(x + 30), px(Y))], observed_style()))?;
        write(root, "reported by the robot", (x + 30 + NEAR, Y), 16, INK)?;
    }
    Ok(())
}

fn observed_style() -> ShapeStyle {
    OBSERVED.stroke_width(px(1) as u32 + 1)
}

fn draw_group(
    root: &Area,
    top: u32,
    group: &PanelGroup,
    all: &Panels,
    chunks: usize,
) -> Result<(), PlotError> {
    let top = top as i32;
    let band = [(px(BORDER), px(top + 3)), (px(WIDTH as i32 - BORDER), px(top + 25))];
    root.draw(&Rectangle::new(band, HEADING_BAND.filled()))?;
    let unit = if group.unit.is_empty() { String::new() } else { format!(" [{}]", group.unit) };
    let x = write(root, &one_line(&group.name, MAX_TITLE), (BORDER + 8, top + 14), 18, INK)?;
    write(root, &format!("{}{unit}", group.meaning), (x + 16, top + 14), 16, FAINT_INK)?;
    let width = (WIDTH as i32 - 2 * BORDER) / PANELS_PER_ROW as i32;
    for (index, panel) in group.panels.iter().enumerate() {
        let (row, column) = (index / PANELS_PER_ROW, index % PANELS_PER_ROW);
        let corner = (
            px(BORDER + column as i32 * width),
            px(top + GROUP_HEADING as i32 + row as i32 * PANEL_HEIGHT as i32),
        );
        let area = root.clone().shrink(corner, (px(width) as u32, px(PANEL_HEIGHT as i32) as u32));
        draw_panel(&area, panel, all, chunks)?;
    }
    Ok(())
}

fn draw_panel(area: &Area, panel: &Panel, all: &Panels, chunks: usize) -> Result<(), PlotError> {
    let title = one_line(panel.label.trim_end_matches("_joint"), MAX_PANEL_TITLE);
    let style = text_style(15, INK).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw_text(&title, &style, (px(46), px(9)))?;
    let range = panel.value_range();
    let decimals = decimals(range.end - range.start);
    let mut chart = ChartBuilder::on(area)
        .margin_top(px(19))
        .margin_right(px(10))
        .x_label_area_size(px(20))
        .y_label_area_size(px(46))
        .build_cartesian_2d(all.time.clone(), range)?;
    let time_decimals = decimals_of_time(all.time.end - all.time.start);
    chart
        .configure_mesh()
        .disable_mesh()
        .x_labels(4)
        .y_labels(4)
        .x_label_formatter(&|time| format!("{time:.time_decimals$} s"))
        .y_label_formatter(&|value| number(*value, decimals))
        .label_style(text_style(13, FAINT_INK))
        .axis_style(GRID.stroke_width(px(1) as u32))
        .draw()?;
    chart
        .configure_mesh()
        .x_labels(4)
        .y_labels(4)
        .disable_axes()
        .bold_line_style(GRID.stroke_width(1))
        .light_line_style(TRANSPARENT)
        .draw()?;
    chart.draw_series(LineSeries::new(panel.observed.iter().copied(), observed_style()))?;
    for (index, curve) in &panel.chunks {
        let colour = chunk_colour(*index, chunks);
        let line = colour.stroke_width(px(1) as u32 + 1);
        chart.draw_series(LineSeries::new(curve.iter().copied(), line))?;
        let first = curve.first().map(|start| Circle::new(*start, px(3), colour.filled()));
        chart.draw_series(first)?;
    }
    Ok(())
}

/// The number without a sign where it rounds to zero.
fn number(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let is_zero = text.chars().all(|c| matches!(c, '-' | '0' | '.'));
    if is_zero { text.trim_start_matches('-').into() } else { text }
}

/// Digits after the point that tell the ticks of an axis apart.
fn decimals(span: f64) -> usize {
    (1.0 - span.log10().floor()).clamp(0.0, 4.0) as usize
}

fn decimals_of_time(span: f64) -> usize {
    if span < 0.4 { 2 } else { usize::from(span < 8.0) }
}

#[cfg(test)]
mod tests {
    use super::super::tests::chunk;
    use super::*;

    #[test]
    fn the_picture_has_a_row_per_group_and_the_chunks_in_their_colours() {
        let chunks = [chunk(0, 16), chunk(500_000_000, 16)];
        let picture = draw(&chunks, &[]).unwrap();
        let rows = 2 * (GROUP_HEADING + PANEL_HEIGHT);
        assert_eq!(picture.dimensions(), (WIDTH, HEADER + rows + BORDER as u32));
        for index in 0..2 {
            let RGBColor(r, g, b) = chunk_colour(index, 2);
            let drawn = |y0: u32| {
                (y0..y0 + PANEL_HEIGHT)
                    .any(|y| (0..WIDTH).any(|x| picture.get_pixel(x, y).0 == [r, g, b]))
            };
            assert!(drawn(HEADER + GROUP_HEADING), "chunk {index} in the first row");
            assert!(
                drawn(HEADER + 2 * GROUP_HEADING + PANEL_HEIGHT),
                "chunk {index} in the second row"
            );
        }
    }

    #[test]
    fn ticks_have_no_negative_zero() {
        assert_eq!(number(-0.001, 2), "0.00");
        assert_eq!(number(-0.01, 2), "-0.01");
        assert_eq!(number(-0.0, 0), "0");
    }

    #[test]
    fn odd_input_is_drawn_or_refused_without_a_panic() {
        assert!(matches!(draw(&[], &[]), Err(PlotError::NoChunks)));
        let mut odd = chunk(i64::MAX, 2);
        odd.instruction = "\n\u{1F350}".repeat(400);
        odd.dt_s = f64::NAN;
        odd.groups[0].values[3] = f32::NAN;
        odd.groups[0].values[4] = f32::MAX;
        odd.groups[1].values.clear();
        assert!(draw(&[chunk(i64::MIN, 2), odd.clone()], &[]).is_ok());
        odd.groups.clear();
        assert!(draw(&[odd], &[]).is_ok());
        let many: Vec<_> = (0..20)
            .map(|index| {
                let mut view = chunk(0, 1);
                view.groups.iter_mut().for_each(|group| group.name += &index.to_string());
                view
            })
            .collect();
        assert!(matches!(draw(&many, &[]), Err(PlotError::TooManyPanels(200))));
    }
}
