//! What each panel of the picture shows: chunks and observations sorted by dimension.

use std::ops::Range;

use super::scale::{axis_range, is_plottable};
use super::{ChunkView, Observed};

/// A curve: time in seconds from the start of the picture, value.
pub type Curve = Vec<(f64, f64)>;

/// One dimension of one group.
#[derive(Debug, PartialEq)]
pub struct Panel {
    pub label: String,
    /// Chunk index and the chunk's rows; a chunk without this dimension is left out.
    pub chunks: Vec<(usize, Curve)>,
    /// What the robot reported, if it did.
    pub observed: Curve,
}

impl Panel {
    /// Range of the values, with a margin.
    pub fn value_range(&self) -> Range<f64> {
        let chunks = self.chunks.iter().flat_map(|(_, curve)| curve);
        axis_range(chunks.chain(&self.observed).map(|(_, value)| *value))
    }
}

/// The panels of one group, under one heading.
#[derive(Debug, PartialEq)]
pub struct PanelGroup {
    pub name: String,
    pub meaning: String,
    /// Unit of all columns; empty where they have none in common.
    pub unit: String,
    pub panels: Vec<Panel>,
}

/// Everything that is drawn.
#[derive(Debug, PartialEq)]
pub struct Panels {
    pub groups: Vec<PanelGroup>,
    /// Seconds from the first chunk's observation.
    pub time: Range<f64>,
}

/// Sorts `chunks` and `observed` into panels, groups and columns in order of their first appearance.
pub fn panels(chunks: &[ChunkView], observed: &[Observed]) -> Panels {
    let start_ns = chunks.first().map_or(0, |chunk| chunk.stamp_ns);
    let seconds = |stamp_ns: i64| stamp_ns.saturating_sub(start_ns) as f64 * 1e-9;
    let mut groups: Vec<PanelGroup> = Vec::new();
    for (index, chunk) in chunks.iter().enumerate() {
        for group in &chunk.groups {
            let times =
                (0..group.rows()).map(|row| seconds(chunk.stamp_ns) + row as f64 * chunk.dt_s);
            let into = group_named(&mut groups, group);
            for (column, of) in group.columns.iter().enumerate() {
                let values = (0..group.rows()).map(|row| f64::from(group.row(row)[column]));
                let curve =
                    times.clone().zip(values).filter(|point| is_plottable(point.1)).collect();
                panel_labelled(&mut into.panels, &of.label).chunks.push((index, curve));
            }
        }
    }
    for panel in groups.iter_mut().flat_map(|group| &mut group.panels) {
        let readings = observed.iter().filter_map(|reading| {
            Some((seconds(reading.stamp_ns), *reading.values.get(&panel.label)?))
        });
        panel.observed = readings.filter(|reading| is_plottable(reading.1)).collect();
    }
    let time = time_range(&groups);
    Panels { groups, time }
}

fn group_named<'a>(
    groups: &'a mut Vec<PanelGroup>,
    group: &super::GroupView,
) -> &'a mut PanelGroup {
    let known = groups.iter().position(|known| known.name == group.name);
    let index = known.unwrap_or_else(|| {
        groups.push(PanelGroup {
            name: group.name.clone(),
            meaning: group.meaning.clone(),
            unit: group.common_unit().into(),
            panels: vec![],
        });
        groups.len() - 1
    });
    &mut groups[index]
}

fn panel_labelled<'a>(panels: &'a mut Vec<Panel>, label: &str) -> &'a mut Panel {
    let known = panels.iter().position(|known| known.label == label);
    let index = known.unwrap_or_else(|| {
        panels.push(Panel { label: label.into(), chunks: vec![], observed: vec![] });
        panels.len() - 1
    });
    &mut panels[index]
}

fn time_range(groups: &[PanelGroup]) -> Range<f64> {
    /// Where there is a single moment, the picture shows this much, seconds.
    const MIN_SPAN_S: f64 = 0.1;
    let panels = groups.iter().flat_map(|group| &group.panels);
    let curves = panels.flat_map(|panel| {
        panel.chunks.iter().map(|(_, curve)| curve).chain(std::iter::once(&panel.observed))
    });
    let times = curves.flatten().map(|(time, _)| *time).filter(|time| is_plottable(*time));
    let (low, high) = times.fold((0.0f64, 0.0f64), |(low, high), t| (low.min(t), high.max(t)));
    low..high.max(low + MIN_SPAN_S)
}

#[cfg(test)]
mod tests {
    use super::super::tests::chunk;
    use super::*;

    #[test]
    fn rows_stand_at_their_own_times() {
        let chunks = [chunk(7_000_000_000, 3), chunk(7_400_000_000, 3)];
        let observed = Observed {
            stamp_ns: 6_900_000_000,
            values: [("waist_1_joint".into(), 0.25), ("head_joint".into(), 9.0)].into(),
        };
        let panels = panels(&chunks, &[observed]);
        let names: Vec<_> =
            panels.groups.iter().map(|g| (g.name.as_str(), g.panels.len())).collect();
        assert_eq!(names, [("left_arm", 7), ("waist", 3)]);
        let waist = &panels.groups[1].panels[1];
        assert_eq!(waist.label, "waist_1_joint");
        let (index, second) = &waist.chunks[1];
        assert_eq!(*index, 1);
        let times: Vec<_> = second.iter().map(|(time, _)| *time).collect();
        for (time, expected) in times.iter().zip([0.4, 0.45, 0.5]) {
            assert!((time - expected).abs() < 1e-9, "{times:?}");
        }
        assert_eq!(second[2].1, f64::from(chunks[1].groups[1].row(2)[1]));
        assert_eq!(waist.observed.len(), 1);
        assert!((waist.observed[0].0 + 0.1).abs() < 1e-9 && waist.observed[0].1 == 0.25);
        assert!((panels.time.start + 0.1).abs() < 1e-9 && (panels.time.end - 0.5).abs() < 1e-9);
    }

    #[test]
    fn groups_that_come_later_get_panels_of_their_own() {
        let mut later = chunk(1_000_000_000, 2);
        later.groups[1].name = "base".into();
        let panels = panels(&[chunk(0, 2), later], &[]);
        let names: Vec<_> = panels.groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["left_arm", "waist", "base"]);
        assert_eq!(panels.groups[2].panels[0].chunks[0].0, 1);
    }
}
