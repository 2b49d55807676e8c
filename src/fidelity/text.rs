//! What a comparison found, for people.

use std::fmt::Write;

use super::report::{Report, Weights};
use super::taps::TapFidelity;
use crate::golden::GroupAgreement;

/// Intermediate values that are listed, those of the lowest correlation.
const WORST: usize = 15;
/// What stands in the table of the action groups.
const COLUMNS: &str = concat!(
    "  PCC (Pearson's correlation) and concordance (Lin's): over all steps and columns of a group together.\n",
    "  max|d|: largest difference from f32; max|f32|: largest value in f32; both in the group's unit, rad for angles.\n",
    "  A column of large values hides the others of its group; normalised, all columns are of one size.\n",
);
/// What stands in the tables of values.
pub(super) const ROWS: &str = "\nname[a..b]: rows a to b of a value that is computed in parts\n";
/// Where there is no correlation.
pub(super) const ONE_VALUE: &str = "one value";

impl Report {
    /// Sentences and tables.
    pub fn text(&self) -> String {
        let mut text = self.heading();
        text.push_str("\naction groups, in their own units, and normalised as before decoding\n");
        let header = [
            "group",
            "PCC",
            "concordance",
            "max|d|",
            "max|f32|",
            "normalised PCC",
            "normalised max|d|",
        ];
        let groups = self.groups.0.iter().zip(&self.normalised_groups.0);
        let mut rows: Vec<Vec<String>> = groups.map(|(after, before)| row(after, before)).collect();
        rows.push(whole_row(&self.normalised));
        append_table(&mut text, &header, &rows);
        text.push_str(COLUMNS);
        for (title, taps) in [
            ("worst intermediate values", self.worst(WORST)),
            ("worst of every stage", self.worst_of_stages()),
        ] {
            let _ = writeln!(text, "\n{title}, of {}", self.taps.len());
            let rows: Vec<Vec<String>> = taps.into_iter().map(tap_row).collect();
            append_table(&mut text, &["value", "1 - PCC", "max|d|", "range", "stage"], &rows);
        }
        if self.taps.iter().any(|tap| tap.first_row > 0) {
            text.push_str(ROWS);
        }
        text
    }

    fn heading(&self) -> String {
        let seed = self.seed.map_or("given noise".to_owned(), |seed| format!("seed {seed}"));
        let made_up = if self.made_up_observation { ", a made-up observation" } else { "" };
        let mut text = format!(
            "{}\n{} {}, \"{}\", {seed}{made_up}\n{}\nagainst {}\n",
            self.groups.verdict(self.floor),
            self.version,
            self.embodiment,
            self.instruction,
            self.card,
            self.reference
        );
        if let Some(Weights { products, others }) = &self.weights {
            let products =
                products.iter().map(|(format, bytes)| format!("{format} {}", size(*bytes)));
            let products = products.collect::<Vec<_>>().join(", ");
            let _ = writeln!(
                text,
                "weights of a request: products {products}; norms, biases, embeddings bf16 {}",
                size(*others)
            );
        }
        text
    }
}

fn row(physical: &GroupAgreement, normalised: &GroupAgreement) -> Vec<String> {
    vec![
        physical.name.clone(),
        share(physical.pcc),
        share(physical.concordance),
        format!("{:.2e}", physical.max_difference),
        format!("{:.3}", physical.size),
        share(normalised.pcc),
        format!("{:.2e}", normalised.max_difference),
    ]
}

/// That of the whole chunk, which has no physical unit.
fn whole_row(normalised: &GroupAgreement) -> Vec<String> {
    let mut row = row(normalised, normalised);
    row[1..5].fill(String::new());
    row
}

fn tap_row(tap: &TapFidelity) -> Vec<String> {
    let loss = match tap.pcc {
        Some(_) => format!("{:.2e}", tap.loss()),
        None if tap.not_finite > 0 => format!("{} not finite", tap.not_finite),
        None => ONE_VALUE.to_owned(),
    };
    vec![
        tap.label(),
        loss,
        format!("{:.2e}", tap.max_difference),
        format!("{:.3} .. {:.3}", tap.min, tap.max),
        tap.stage.to_owned(),
    ]
}

fn share(value: Option<f64>) -> String {
    value.map_or(ONE_VALUE.to_owned(), |value| format!("{value:.7}"))
}

fn size(bytes: u64) -> String {
    let mega = bytes as f64 / 1e6;
    if mega < 1e3 { format!("{mega:.1} MB") } else { format!("{:.2} GB", mega / 1e3) }
}

/// A table, its first column to the left and the others to the right.
fn append_table(text: &mut String, header: &[&str], rows: &[Vec<String>]) {
    let header: Vec<String> = header.iter().map(|name| (*name).to_owned()).collect();
    let lines = || std::iter::once(&header).chain(rows);
    let width =
        |column: usize| lines().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    for row in lines() {
        let _ = write!(text, "  {:width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
    }
}
