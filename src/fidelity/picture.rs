//! The picture: how much correlation every intermediate value loses, in the order of the program.

use std::ops::Range;

use image::RgbImage;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::report::Report;
use super::taps::TapFidelity;
use crate::golden::GroupAgreement;
use crate::plot::{FONT, PlotError, register_font};
use crate::program::StageKind;

const WIDTH: u32 = 1400;
const HEIGHT: u32 = 620;
const HEADER: i32 = 84;
const BORDER: i32 = 20;
/// Drawn this many times larger and averaged.
const OVERSAMPLING: u32 = 2;
/// Share of the width behind the values where the action groups stand.
const GROUPS_SHARE: f64 = 0.12;
/// Less is drawn as this: no loss has no place on a logarithmic axis.
const LEAST: f64 = 1e-8;
const MOST: f64 = 2.0;
/// So many times the largest loss are on the axis, for names above it.
const ROOM: f64 = 100.0;

const INK: RGBColor = RGBColor(32, 36, 44);
const FAINT: RGBColor = RGBColor(96, 102, 112);
const GRID: RGBColor = RGBColor(226, 229, 234);
const GROUPS: RGBColor = RGBColor(20, 22, 26);
/// The floor, and the groups that do not reach it.
const BELOW: RGBColor = RGBColor(200, 30, 40);
/// Share of the values' width on which the floor's line begins, under its name.
const FLOOR_NAME_SHARE: f64 = 0.1;

type Area<'a> = DrawingArea<BitMapBackend<'a>, Shift>;
/// Places of values to the right, losses upwards.
type Coordinates = Cartesian2d<RangedCoordf64, LogCoord<f64>>;
type Plot<'a, 'b> = ChartContext<'a, BitMapBackend<'b>, Coordinates>;

const fn colour(stage: StageKind) -> RGBColor {
    match stage {
        StageKind::Vision => RGBColor(33, 102, 172),
        StageKind::Llm => RGBColor(27, 140, 90),
        StageKind::Adapter => RGBColor(150, 60, 150),
        StageKind::Denoise => RGBColor(214, 96, 20),
    }
}

const fn px(length: i32) -> i32 {
    length * OVERSAMPLING as i32
}

fn style(size: i32, colour: RGBColor) -> TextStyle<'static> {
    TextStyle { color: colour.to_backend_color(), ..(FONT, px(size)).into_font().into() }
}

/// Draws the report's values and action groups.
///
/// # Errors
/// The drawing library fails.
pub fn draw(report: &Report) -> Result<RgbImage, PlotError> {
    register_font()?;
    let size = (WIDTH * OVERSAMPLING, HEIGHT * OVERSAMPLING);
    let mut pixels = vec![0; 3 * size.0 as usize * size.1 as usize];
    {
        let root = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
        root.fill(&WHITE)?;
        header(&root, report)?;
        let area = root.clone().shrink(
            (px(BORDER), px(HEADER)),
            (
                (WIDTH as i32 - 2 * BORDER) as u32 * OVERSAMPLING,
                (HEIGHT as i32 - HEADER - BORDER) as u32 * OVERSAMPLING,
            ),
        );
        chart(&area, report)?;
        root.present()?;
    }
    let large = RgbImage::from_raw(size.0, size.1, pixels)
        .ok_or_else(|| PlotError::Draw(format!("no room for {}x{} pixels", size.0, size.1)))?;
    Ok(image::imageops::thumbnail(&large, WIDTH, HEIGHT))
}

/// What was compared, and what the colours mean.
fn header(root: &Area<'_>, report: &Report) -> Result<(), PlotError> {
    let left = Pos::new(HPos::Left, VPos::Center);
    let title = format!("{} {}: {}", report.version, report.embodiment, report.card);
    root.draw_text(&title, &style(20, INK).pos(left), (px(BORDER), px(20)))?;
    let about = format!(
        "1 - PCC against {}, every intermediate value in the order of the program",
        report.reference
    );
    root.draw_text(&about, &style(14, FAINT).pos(left), (px(BORDER), px(44)))?;
    let mut x = BORDER;
    let filled = |name, colour: RGBColor| (name, colour.filled());
    let stages = StageKind::ALL.map(|stage| filled(stage.name(), colour(stage)));
    let equal = format!("no loss, or less than {LEAST:.0e}: drawn there");
    let others = [
        filled("action groups, physical units", GROUPS),
        filled("action groups below the floor", BELOW),
        (&*equal, hollow(FAINT)),
    ];
    for (name, style_of_point) in stages.into_iter().chain(others) {
        root.draw(&Circle::new((px(x + 4), px(68)), px(4), style_of_point))?;
        let text = style(14, FAINT).pos(left);
        root.draw_text(name, &text, (px(x + 14), px(68)))?;
        let (width, _) = root.estimate_text_size(name, &text)?;
        x += 14 + (width / OVERSAMPLING) as i32 + 24;
    }
    Ok(())
}

fn chart(area: &Area<'_>, report: &Report) -> Result<(), PlotError> {
    let count = report.taps.len().max(1) as f64;
    let width = count * (1.0 + GROUPS_SHARE);
    let range = loss_range(report);
    let mut plot = ChartBuilder::on(area)
        .margin_right(px(10))
        .margin_top(px(8))
        .x_label_area_size(px(8))
        .y_label_area_size(px(64))
        .build_cartesian_2d(0.0..width, range.clone().log_scale())?;
    plot.configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_labels(12)
        .y_label_formatter(&loss_label)
        .label_style(style(13, FAINT))
        .axis_style(GRID.stroke_width(px(1) as u32))
        .bold_line_style(GRID.stroke_width(1))
        .light_line_style(TRANSPARENT)
        .draw()?;
    let border = vec![(count, range.start), (count, range.end)];
    plot.draw_series([PathElement::new(border, GRID.stroke_width(px(2) as u32))])?;
    for (place, step) in steps(&report.taps) {
        let line = vec![(place, range.start), (place, range.end)];
        plot.draw_series([PathElement::new(line, GRID.stroke_width(1))])?;
        let text = style(13, FAINT).pos(Pos::new(HPos::Left, VPos::Top));
        plot.draw_series([Text::new(step, (place, range.end), text)])?;
    }
    for stage in StageKind::ALL {
        let taps = report.taps.iter().enumerate().filter(|(_, tap)| tap.stage == stage.name());
        let points = taps.map(|(place, tap)| (place as f64 + 0.5, drawn(tap.loss())));
        plot.draw_series(points.map(|at| {
            let is_equal = at.1 <= LEAST;
            let style = if is_equal { hollow(colour(stage)) } else { colour(stage).filled() };
            Circle::new(at, px(2), style)
        }))?;
    }
    let right = Pos::new(HPos::Center, VPos::Bottom);
    for worst in report.worst_of_stages() {
        let Some(place) = report.taps.iter().position(|tap| tap == worst) else { continue };
        let at = name_place(place as f64 + 0.5, worst, count, &range);
        let text = style(13, INK).pos(right);
        plot.draw_series([Text::new(worst.label(), at, text)])?;
    }
    draw_groups(&mut plot, report, count, width)
}

/// Action groups and their floor, behind the values.
fn draw_groups(
    plot: &mut Plot<'_, '_>,
    report: &Report,
    count: f64,
    width: f64,
) -> Result<(), PlotError> {
    let floor = drawn(1.0 - report.floor);
    let begin = count * (1.0 - FLOOR_NAME_SHARE);
    let line = vec![(begin, floor), (width, floor)];
    plot.draw_series([PathElement::new(line, BELOW.stroke_width(px(1) as u32))])?;
    let above = style(12, BELOW).pos(Pos::new(HPos::Left, VPos::Bottom));
    let name = format!("floor of the groups: {}", report.floor);
    plot.draw_series([Text::new(name, (begin, floor * 1.1), above)])?;
    let step = count * GROUPS_SHARE / (report.groups.0.len() + 1) as f64;
    for (number, group) in report.groups.0.iter().enumerate() {
        let at = (count + step * (number + 1) as f64, drawn(group_loss(group)));
        let colour = if group.reaches(report.floor) { GROUPS } else { BELOW };
        plot.draw_series([TriangleMarker::new(at, px(5), colour.filled())])?;
        let text = style(12, colour).transform(FontTransform::Rotate270);
        let beside = Pos::new(HPos::Left, VPos::Center);
        plot.draw_series([Text::new(group.name.clone(), (at.0, at.1 * 1.6), text.pos(beside))])?;
    }
    Ok(())
}

/// Where each Euler step begins, with its name.
fn steps(taps: &[TapFidelity]) -> Vec<(f64, String)> {
    let step_of = |tap: &TapFidelity| -> Option<u32> {
        tap.name.strip_prefix('k')?.split_once('.')?.0.parse().ok()
    };
    let mut steps = Vec::new();
    let mut known = None;
    for (place, tap) in taps.iter().enumerate() {
        let step = step_of(tap);
        if let Some(number) = step.filter(|_| step != known) {
            steps.push((place as f64, format!("step {number}")));
            known = step;
        }
    }
    steps
}

/// Where the name of a value stands: above it, and not beyond the borders.
fn name_place(place: f64, tap: &TapFidelity, count: f64, range: &Range<f64>) -> (f64, f64) {
    /// Half of a long name, as a share of the values' width.
    const HALF: f64 = 0.08;
    let x = place.clamp(HALF * count, (1.0 - HALF) * count);
    (x, (drawn(tap.loss()) * 1.5).min(range.end / 1.2))
}

fn drawn(loss: f64) -> f64 {
    loss.clamp(LEAST, MOST)
}

fn hollow(colour: RGBColor) -> ShapeStyle {
    colour.stroke_width(px(1) as u32)
}

fn loss_label(loss: &f64) -> String {
    // The values that lie there lose that much or less.
    let sign = if *loss <= LEAST { "< " } else { "" };
    format!("{sign}{loss:.0e}")
}

fn group_loss(group: &GroupAgreement) -> f64 {
    match group.pcc {
        Some(pcc) => 1.0 - pcc,
        None if group.reaches(1.0) => 0.0,
        None => 1.0,
    }
}

/// All losses and the floor, and room for names above them.
fn loss_range(report: &Report) -> Range<f64> {
    let losses = report.taps.iter().map(TapFidelity::loss);
    let losses = losses.chain(report.groups.0.iter().map(group_loss));
    let losses = losses.chain([1.0 - report.floor]).map(drawn);
    let (low, high) =
        losses.fold((MOST, LEAST), |(low, high), loss| (low.min(loss), high.max(loss)));
    low / 2.0..(high * ROOM).max(low * ROOM)
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::{group, report, tap};
    use super::*;

    fn has(picture: &RgbImage, colour: RGBColor) -> bool {
        let RGBColor(r, g, b) = colour;
        picture.pixels().any(|pixel| pixel.0 == [r, g, b])
    }

    #[test]
    fn every_stage_and_group_is_drawn_in_its_colour() {
        let taps = vec![
            tap("vit", StageKind::Vision, Some(0.999)),
            tap("k0.a", StageKind::Denoise, Some(1.0)),
            tap("k0.b", StageKind::Denoise, Some(0.9999)),
            tap("k1.a", StageKind::Denoise, Some(0.99)),
        ];
        assert_eq!(steps(&taps), [(1.0, "step 0".to_owned()), (3.0, "step 1".to_owned())]);
        let picture = draw(&report(taps, vec![group("arm", Some(0.9999))])).unwrap();
        assert_eq!(picture.dimensions(), (WIDTH, HEIGHT));
        for seen in [colour(StageKind::Vision), colour(StageKind::Denoise), GROUPS] {
            assert!(has(&picture, seen), "{seen:?}");
        }
    }

    #[test]
    fn the_floor_is_drawn_and_what_does_not_reach_it_is_in_its_colour() {
        let of = |floor: f64| {
            let taps = vec![tap("vit", StageKind::Vision, Some(0.999))];
            let mut report = report(taps, vec![group("arm", Some(0.995))]);
            report.floor = floor;
            let picture = draw(&report).unwrap();
            let RGBColor(red, green, blue) = BELOW;
            // Edges are mixed with the ground.
            let alike = |pixel: &&image::Rgb<u8>| {
                let pairs = pixel.0.iter().zip([red, green, blue]);
                pairs.into_iter().all(|(a, b)| a.abs_diff(b) < 64)
            };
            let rows = picture.enumerate_rows();
            rows.map(|(_, row)| row.filter(|(.., pixel)| alike(pixel)).count()).collect::<Vec<_>>()
        };
        // A row of a line over a tenth of the width and more.
        let line = |rows: &[usize]| rows.iter().position(|count| *count > 150);
        let (low, high) = (of(0.9), of(0.999));
        assert!(line(&low).unwrap() < line(&high).unwrap());
        assert!(high.iter().sum::<usize>() > low.iter().sum::<usize>() + 20);
    }

    #[test]
    fn equal_values_are_hollow() {
        let has_filled = |pcc| {
            let picture =
                draw(&report(vec![tap("vit", StageKind::Llm, Some(pcc))], vec![])).unwrap();
            let RGBColor(r, g, b) = colour(StageKind::Llm);
            picture.pixels().filter(|pixel| pixel.0 == [r, g, b]).count()
        };
        assert!(has_filled(1.0) < has_filled(0.9));
    }

    #[test]
    fn odd_values_are_drawn_without_a_panic() {
        assert!(draw(&report(vec![], vec![])).is_ok());
        let mut odd = tap(&"long ".repeat(100), StageKind::Llm, Some(-1.0));
        odd.not_finite = 1;
        let groups = (0..60).map(|number| group(&number.to_string(), None)).collect();
        assert!(draw(&report(vec![odd, tap("x", StageKind::Llm, None)], groups)).is_ok());
    }
}
