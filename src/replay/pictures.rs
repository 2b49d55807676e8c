//! Which diagrams a replay gives.

use std::ops::Range;

use super::chart::{Chart, Line, Style, parted};
use super::events::Predicted;
use super::facts::age_list;
use super::open_loop::{executed_rows, recorded};
use super::output::ACTIONS;
use super::{Replay, seconds_since};

/// With more chunks than this, the rows that are replaced would hide the others.
const MAX_FANS: usize = 80;

/// Diagrams that belong together.
pub struct Section {
    pub title: String,
    /// Short, for the name of a file.
    pub name: String,
    pub charts: Vec<Chart>,
    /// Time that they cover, seconds since the recording's start.
    pub time: Range<f64>,
}

impl Replay {
    fn recorded_time(&self) -> Range<f64> {
        0.0..self.report.recording.duration_s.max(0.1)
    }

    fn action_time(&self) -> Range<f64> {
        let Range { start, end } = self.recorded_time();
        // The rows of the last chunks lie behind the recording's end.
        let rows = self
            .events
            .predicted
            .last()
            .map_or(0.0, |last| self.at_s(last, last.chunk.horizon.saturating_sub(1)));
        start..end.max(rows)
    }

    /// When a row of a chunk is reached.
    fn at_s(&self, prediction: &Predicted, row: usize) -> f64 {
        let reached = super::commands::reached_ns(prediction.chunk.stamp_ns, row, self.dt_ns);
        let after_moment_ns = reached.saturating_sub(prediction.moment.ros_ns);
        seconds_since(self.start_ns, prediction.moment.log_ns) + after_moment_ns as f64 / 1e9
    }

    fn chart(&self, title: String, unit: &str, lines: Vec<Line>) -> Chart {
        let report = &self.report;
        let instructed = report.instructions.iter().skip(1).map(|instruction| instruction.from_s);
        let jumped = report.clock_jumps.iter().map(|jump| jump.at_s);
        Chart {
            title,
            unit: unit.to_owned(),
            lines,
            outages: report.outages.iter().map(|outage| [outage.from_s, outage.to_s]).collect(),
            marks: instructed.chain(jumped).collect(),
        }
    }

    /// Predicted against recorded: one section a group, one diagram a dimension.
    pub(super) fn actions(&self) -> Vec<Section> {
        let predicted = &self.events.predicted;
        let Some(first) = predicted.first() else { return Vec::new() };
        let steps = self.execute_steps;
        let executed = executed_rows(predicted, steps, self.dt_ns);
        let groups = first.chunk.groups.iter().enumerate();
        groups
            .map(|(number, group)| {
                let unit = self.labels.unit(&group.name);
                let charts = (0..group.dim).map(|column| {
                    let lines = self.action_lines(number, column, &executed);
                    self.chart(self.labels.column(&group.name, column), unit, lines)
                });
                let against = if self.commands.is_some() { " against recorded" } else { "" };
                Section {
                    title: format!("{}: predicted{against}", group.name),
                    name: format!("{ACTIONS}{}", file_name(&group.name)),
                    charts: charts.collect(),
                    time: self.action_time(),
                }
            })
            .collect()
    }

    fn action_lines(&self, number: usize, column: usize, executed: &[usize]) -> Vec<Line> {
        let predicted = &self.events.predicted;
        let (mut rows, mut replaced) = (Vec::new(), Vec::new());
        let mut commanded: Vec<(f64, f64)> = Vec::new();
        for (prediction, executed) in predicted.iter().zip(executed) {
            let group = &prediction.chunk.groups[number];
            let value = |row: usize| {
                let value = f64::from(group.values[row * group.dim + column]);
                let value = self.labels.commanded(&group.name, value);
                (self.at_s(prediction, row), value)
            };
            rows.push((0..*executed).map(value).collect());
            // From the last executed row on, so that both are connected.
            replaced.push((executed - 1..prediction.chunk.horizon).map(value).collect());
            for row in 0..*executed {
                let stamp_ns = prediction.chunk.stamp_ns;
                let found = self.commands.as_ref().and_then(|commands| {
                    recorded(commands, group, column, &self.labels, stamp_ns, row, self.dt_ns)
                });
                commanded.extend(found.map(|value| (self.at_s(prediction, row), value)));
            }
        }
        // Chunks can overlap by a row.
        commanded.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let mut lines = Vec::new();
        if predicted.len() <= MAX_FANS {
            let name = "predicted, replaced by the next chunk";
            lines.push(Line::new(name, Style::Replaced, replaced));
        }
        let commands = Line::new("recorded", Style::Recorded, parted(commanded));
        if !commands.parts.is_empty() {
            lines.push(commands);
        }
        lines.push(Line::new("predicted, executed rows", Style::Predicted, rows));
        lines
    }

    /// Ages of the inputs that chunks were predicted from.
    pub(super) fn ages(&self) -> Section {
        let inputs = self.events.inputs().enumerate();
        let lines = inputs.map(|(number, log)| {
            let ages = age_list(&self.events, log);
            let points =
                ages.iter().map(|(log_ns, age)| (seconds_since(self.start_ns, *log_ns), *age));
            Line::new(&log.name, Style::Numbered(number), parted(points.collect()))
        });
        let chart = self.chart("age when predicted from".to_owned(), "ms", lines.collect());
        self.section("Ages of the inputs", "ages", chart)
    }

    /// How long predictions took here.
    pub(super) fn latencies(&self) -> Section {
        let points = self.latency.chunks.iter().map(|chunk| (chunk.at_s, chunk.predict_ms));
        let line = Line::new("prediction", Style::Numbered(0), parted(points.collect()));
        let chart = self.chart("time of a prediction on this machine".to_owned(), "ms", vec![line]);
        self.section("Latency", "latency", chart)
    }

    fn section(&self, title: &str, name: &str, chart: Chart) -> Section {
        let (title, name) = (title.to_owned(), name.to_owned());
        Section { title, name, charts: vec![chart], time: self.recorded_time() }
    }
}

/// A group's name as a part of a file's name.
fn file_name(group: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    group.chars().map(allowed).collect()
}
