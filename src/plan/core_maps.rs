//! The grid of cores as SVG: roles by colour, loads by shade; and the banks.

use std::fmt::Write;

use super::cores::CoreLoad;
use super::findings::{megabytes, ms};
use crate::backend::blackhole::cost::BANKS;
use crate::backend::blackhole::grid::{COLUMNS, ROWS};
use crate::page::escaped;

const CELL: f64 = 38.0;
const GAP: f64 = 3.0;
/// Room for the numbers of columns and rows.
const EDGE: f64 = 20.0;
/// Of the palest and the darkest core that has something to do.
const SHADES: [f64; 2] = [0.25, 1.0];

/// Roles and their classes in the style sheet, as legends list them.
const ROLES: [(&str, &str); 6] = [
    ("compute", "compute"),
    ("owner of columns", "owner"),
    ("heads", "head"),
    ("reader of a bank", "reader"),
    ("hub", "hub"),
    ("spare", "spare"),
];

fn class(role: &str) -> &'static str {
    ROLES.iter().find(|(name, _)| *name == role).map_or("spare", |(_, class)| class)
}

/// A map with its legend.
pub fn map(title: &str, cores: &[CoreLoad]) -> String {
    let most = cores.iter().map(|core| core.load_s).fold(0.0, f64::max);
    let width = EDGE + f64::from(COLUMNS) * CELL;
    let height = EDGE + f64::from(ROWS) * CELL;
    let mut svg = format!(
        "<figure class=\"map\"><figcaption>{0}</figcaption><svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{0}\">",
        escaped(title)
    );
    let place = |at: u8| EDGE + f64::from(at) * CELL;
    // Writing to a string cannot fail.
    for x in 0..COLUMNS {
        let at = place(x) + (CELL - GAP) / 2.0;
        let _ = write!(svg, "<text x=\"{at}\" y=\"13\" class=\"middle\">{x}</text>");
    }
    for y in 0..ROWS {
        let at = place(y) + CELL / 2.0 + 2.0;
        let _ = write!(svg, "<text x=\"{}\" y=\"{at}\" class=\"end\">{y}</text>", EDGE - 6.0);
    }
    for core in cores {
        let (x, y, side) = (place(core.x), place(core.y), CELL - GAP);
        let share = if most > 0.0 { core.load_s / most } else { 0.0 };
        let shade = SHADES[0] + (SHADES[1] - SHADES[0]) * share;
        let shade = if core.load_s > 0.0 { shade } else { SHADES[0] };
        let dark = if shade > 0.6 { " on-dark" } else { "" };
        let _ = write!(
            svg,
            "<g><title>({}, {}) {}: {} ms</title><rect class=\"{}\" fill-opacity=\"{shade:.2}\" x=\"{x}\" y=\"{y}\" width=\"{side}\" height=\"{side}\" rx=\"4\"/>",
            core.x,
            core.y,
            core.role,
            ms(core.load_s),
            class(core.role)
        );
        if core.load_s > 0.0 {
            let _ = write!(
                svg,
                "<text class=\"middle load{dark}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                x + side / 2.0,
                y + side / 2.0 + 4.0,
                short(core.load_s)
            );
        }
        svg.push_str("</g>");
    }
    svg.push_str("</svg>");
    svg.push_str(&legend(cores, most));
    svg.push_str("</figure>\n");
    svg
}

/// Milliseconds with two or three digits.
fn short(seconds: f64) -> String {
    let ms = seconds * 1e3;
    if ms < 10.0 { format!("{ms:.2}") } else { format!("{ms:.1}") }
}

fn legend(cores: &[CoreLoad], most: f64) -> String {
    let mut legend = "<p class=\"legend\">".to_owned();
    for (role, class) in ROLES {
        let count = cores.iter().filter(|core| core.role == role).count();
        if count > 0 {
            let _ = write!(
                legend,
                "<svg viewBox=\"0 0 28 10\"><rect class=\"{class}\" width=\"28\" height=\"10\" rx=\"2\"/></svg>{count} {role}"
            );
        }
    }
    let _ = write!(
        legend,
        "<span class=\"scale\">0 <svg viewBox=\"0 0 60 10\">{}</svg> {} ms</span></p>",
        (0..12)
            .map(|step| {
                let share = f64::from(step) / 11.0;
                let shade = SHADES[0] + (SHADES[1] - SHADES[0]) * share;
                format!(
                    "<rect class=\"compute\" fill-opacity=\"{shade:.2}\" x=\"{}\" width=\"5\" height=\"10\"/>",
                    step * 5
                )
            })
            .collect::<String>(),
        ms(most)
    );
    legend
}

/// The banks, each as a bar of its bytes.
pub fn banks(bytes: [u64; BANKS]) -> String {
    const WIDTH: f64 = 960.0;
    const HEIGHT: f64 = 96.0;
    const BAR: f64 = 56.0;
    let most = bytes.into_iter().max().unwrap_or_default().max(1) as f64;
    let step = WIDTH / BANKS as f64;
    let mut svg =
        format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"banks\">");
    for (bank, bytes) in bytes.into_iter().enumerate() {
        let height = bytes as f64 / most * BAR;
        let x = bank as f64 * step;
        let _ = write!(
            svg,
            "<g><title>bank {bank}: {bytes} bytes</title><rect class=\"bank\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" rx=\"3\"/>\
             <text class=\"middle\" x=\"{:.1}\" y=\"{:.1}\">bank {bank}</text><text class=\"middle on-dark\" x=\"{:.1}\" y=\"{:.1}\">{} MB</text></g>",
            x + 4.0,
            4.0 + BAR - height,
            step - 8.0,
            x + step / 2.0,
            BAR + 22.0,
            x + step / 2.0,
            4.0 + BAR / 2.0 + 4.0,
            megabytes(bytes)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::blackhole::core_map::{CoreMap, Layout};
    use crate::backend::blackhole::grid::Core;

    #[test]
    fn every_core_is_drawn_with_its_role_and_load() {
        let map_of = CoreMap::new(Layout::default());
        let cores: Vec<CoreLoad> = Core::all()
            .map(|core| CoreLoad {
                x: core.x,
                y: core.y,
                role: if map_of.owners.contains(&core) { "owner of columns" } else { "heads" },
                load_s: f64::from(core.x) * 1e-3,
            })
            .collect();
        let svg = map("cores", &cores);
        assert_eq!(svg.matches("<title>").count(), 110);
        assert!(svg.contains("<title>(10, 9) heads: 10.00 ms</title>"), "{svg}");
        assert!(svg.contains("48 owner of columns"), "{svg}");
        assert!(!svg.contains("NaN"), "{svg}");
        // A core without a load has no number.
        assert_eq!(svg.matches("class=\"middle load").count(), 100);
    }

    #[test]
    fn a_plan_of_nothing_is_drawn_too() {
        let idle = CoreLoad { x: 0, y: 0, role: "spare", load_s: 0.0 };
        assert!(!map("idle", &[idle]).contains("NaN"));
        assert!(banks([0; BANKS]).contains("0.0 MB"));
    }
}
