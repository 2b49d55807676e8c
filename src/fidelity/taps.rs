//! The intermediate values of both runs.

use std::sync::{Arc, Mutex};

use serde::Serialize;

use super::{FidelityError, Run, Watch};
use crate::contract::TapSink;
use crate::correlation::Correlation;
use crate::locked::locked;

/// Largest difference of values that are the same everywhere, relative to their size or 1, whichever is larger.
const STILL_TOLERANCE: f64 = 1e-3;

/// How well one intermediate value agrees.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TapFidelity {
    pub name: String,
    pub stage: &'static str,
    /// A matrix that is computed in two parts comes as two: row of the whole that is the first of this part.
    pub first_row: usize,
    pub rows: usize,
    pub cols: usize,
    /// Pearson's correlation; `None` where one side has the same value everywhere, or values that are not finite.
    pub pcc: Option<f64>,
    /// Lin's concordance; `None` as above.
    pub concordance: Option<f64>,
    /// Largest difference; infinite ones count, those of NaN do not.
    pub max_difference: f64,
    /// Least and largest value in f32.
    pub min: f32,
    pub max: f32,
    /// Values that are not finite in one run or the other.
    pub not_finite: usize,
}

impl TapFidelity {
    /// `1 - PCC`; 0 where nothing moves in f32 and the values are the same but for rounding, 1 where they are not.
    pub fn loss(&self) -> f64 {
        let size = f64::from(self.min.abs().max(self.max.abs()));
        match self.pcc {
            Some(pcc) => 1.0 - pcc,
            None if self.not_finite > 0 => 1.0,
            None if self.max_difference <= STILL_TOLERANCE * size.max(1.0) => 0.0,
            None => 1.0,
        }
    }

    /// Its name, with the rows where it is a part.
    pub fn label(&self) -> String {
        label(&self.name, self.first_row, self.rows)
    }
}

fn label(name: &str, first_row: usize, rows: usize) -> String {
    match first_row {
        0 => name.to_owned(),
        first => format!("{name}[{first}..{}]", first + rows),
    }
}

/// The stage of a prediction that is under way, shared with whoever is told about it.
#[derive(Clone, Default)]
pub struct StageAtHand(Arc<Mutex<&'static str>>);

impl StageAtHand {
    pub fn begin(&self, name: &'static str) {
        *locked(&self.0) = name;
    }

    fn name(&self) -> &'static str {
        *locked(&self.0)
    }
}

/// A value of the run in f32.
pub struct KeptTap {
    name: String,
    stage: &'static str,
    first_row: usize,
    rows: usize,
    cols: usize,
    values: Vec<f32>,
}

impl KeptTap {
    fn shape(&self) -> String {
        format!("'{}' [{}, {}]", self.name, self.rows, self.cols)
    }
}

/// Keeps the values of the run in f32.
pub struct Kept<'a> {
    stage: StageAtHand,
    taps: Vec<KeptTap>,
    watch: Watch<'a>,
}

impl<'a> Kept<'a> {
    pub fn new(stage: StageAtHand, watch: Watch<'a>) -> Self {
        Self { stage, taps: Vec::new(), watch }
    }

    /// The first value that is not finite.
    pub fn first_not_finite(&self) -> Option<String> {
        let is_broken = |tap: &&KeptTap| tap.values.iter().any(|value| !value.is_finite());
        self.taps.iter().find(is_broken).map(|tap| label(&tap.name, tap.first_row, tap.rows))
    }

    pub fn into_taps(self) -> Vec<KeptTap> {
        self.taps
    }
}

impl TapSink for Kept<'_> {
    fn tap(&mut self, name: &str, rows: usize, cols: usize, values: &[f32]) {
        let before = self.taps.iter().rfind(|tap| tap.name == name);
        self.taps.push(KeptTap {
            name: name.to_owned(),
            stage: self.stage.name(),
            first_row: before.map_or(0, |tap| tap.first_row + tap.rows),
            rows,
            cols,
            values: values.to_vec(),
        });
        (self.watch)(Run::F32, self.taps.len() as u64, None);
    }
}

/// Compares the values of the card's run as they come.
pub struct Compared<'a> {
    expected: std::vec::IntoIter<KeptTap>,
    total: u64,
    found: Vec<TapFidelity>,
    other: Option<FidelityError>,
    watch: Watch<'a>,
}

impl<'a> Compared<'a> {
    pub fn new(expected: Vec<KeptTap>, watch: Watch<'a>) -> Self {
        let total = expected.len() as u64;
        let expected = expected.into_iter();
        Self { expected, total, found: Vec::new(), other: None, watch }
    }

    /// The first value that is not finite.
    pub fn first_not_finite(&self) -> Option<String> {
        self.found.iter().find(|tap| tap.not_finite > 0).map(TapFidelity::label)
    }

    /// All values, in the order of the program.
    ///
    /// # Errors
    /// The runs did not give the same values.
    pub fn finish(mut self) -> Result<Vec<TapFidelity>, FidelityError> {
        if let Some(missing) = self.expected.next() {
            self.other.get_or_insert(FidelityError::OtherTaps {
                expected: missing.shape(),
                found: "nothing".to_owned(),
            });
        }
        self.other.map_or(Ok(self.found), Err)
    }
}

impl TapSink for Compared<'_> {
    fn tap(&mut self, name: &str, rows: usize, cols: usize, values: &[f32]) {
        let fits = |tap: &KeptTap| (tap.name.as_str(), tap.rows, tap.cols) == (name, rows, cols);
        match self.expected.next() {
            Some(tap) if fits(&tap) => self.found.push(compare(tap, values)),
            other => {
                let expected = other.map_or("nothing".to_owned(), |tap| tap.shape());
                let found = format!("'{name}' [{rows}, {cols}]");
                self.other.get_or_insert(FidelityError::OtherTaps { expected, found });
            }
        }
        (self.watch)(Run::Card, self.found.len() as u64, Some(self.total));
    }
}

fn compare(expected: KeptTap, found: &[f32]) -> TapFidelity {
    let pairs = expected.values.iter().zip(found);
    let wide = pairs.map(|(expected, found)| (f64::from(*expected), f64::from(*found)));
    let finite = |(a, b): (f64, f64)| a.is_finite() && b.is_finite();
    let not_finite = wide.clone().filter(|pair| !finite(*pair)).count();
    let correlation = Correlation::of(wide.clone()).filter(|_| not_finite == 0);
    let values = || expected.values.iter().copied();
    TapFidelity {
        pcc: correlation.map(|found| found.pcc),
        concordance: correlation.map(|found| found.concordance),
        max_difference: wide.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max),
        min: values().fold(f32::INFINITY, f32::min),
        max: values().fold(f32::NEG_INFINITY, f32::max),
        not_finite,
        name: expected.name,
        stage: expected.stage,
        first_row: expected.first_row,
        rows: expected.rows,
        cols: expected.cols,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(taps: &[(&str, usize, &[f32])]) -> Vec<KeptTap> {
        let stage = StageAtHand::default();
        stage.begin("llm");
        let mut kept = Kept::new(stage, &|_, _, _| ());
        for (name, rows, values) in taps {
            kept.tap(name, *rows, values.len() / rows, values);
        }
        kept.into_taps()
    }

    fn compared(first: &[f32], second: &[f32]) -> TapFidelity {
        let mut compared = Compared::new(kept(&[("x", 1, first)]), &|_, _, _| ());
        compared.tap("x", 1, second.len(), second);
        compared.finish().unwrap().remove(0)
    }

    #[test]
    fn equal_values_lose_nothing() {
        let found = compared(&[1.0, -2.0, 3.0], &[1.0, -2.0, 3.0]);
        assert_eq!((found.pcc, found.loss(), found.max_difference), (Some(1.0), 0.0, 0.0));
        assert_eq!((found.min, found.max, found.stage), (-2.0, 3.0, "llm"));
        let opposite = compared(&[1.0, -2.0, 3.0], &[-1.0, 2.0, -3.0]);
        assert!((opposite.loss() - 2.0).abs() < 1e-12 && opposite.max_difference == 6.0);
    }

    #[test]
    fn a_constant_has_no_correlation_and_is_held_to_its_value() {
        let same = compared(&[5.0; 4], &[5.001; 4]);
        assert_eq!((same.pcc, same.concordance, same.loss()), (None, None, 0.0));
        assert_eq!(compared(&[5.0; 4], &[5.1; 4]).loss(), 1.0);
        assert_eq!(compared(&[0.0, 1.0], &[0.5, 0.5]).loss(), 1.0);
        assert_eq!(compared(&[2.0], &[2.0]).loss(), 0.0);
    }

    #[test]
    fn values_that_are_not_finite_are_a_loss_whatever_the_others_are() {
        for wrong in [f32::NAN, f32::INFINITY] {
            let found = compared(&[1.0, 2.0, 3.0], &[1.0, wrong, 3.0]);
            assert_eq!((found.pcc, found.loss(), found.not_finite), (None, 1.0, 1));
            assert_eq!(compared(&[1.0, wrong], &[1.0, 2.0]).loss(), 1.0);
        }
        let mut compared =
            Compared::new(kept(&[("x", 1, &[1.0]), ("y", 1, &[1.0])]), &|_, _, _| ());
        compared.tap("x", 1, 1, &[1.0]);
        assert_eq!(compared.first_not_finite(), None);
        compared.tap("y", 1, 1, &[f32::NAN]);
        assert_eq!(compared.first_not_finite().as_deref(), Some("y"));
    }

    #[test]
    fn the_first_value_in_f32_that_is_not_finite_is_named() {
        let mut sink = Kept::new(StageAtHand::default(), &|_, _, _| ());
        sink.tap("x", 1, 2, &[1.0, 2.0]);
        assert_eq!(sink.first_not_finite(), None);
        sink.tap("x", 1, 2, &[1.0, f32::INFINITY]);
        assert_eq!(sink.first_not_finite().as_deref(), Some("x[1..2]"));
    }

    #[test]
    fn parts_of_a_matrix_know_their_rows() {
        let taps: [(&str, usize, &[f32]); 3] =
            [("a", 2, &[1.0, 2.0, 3.0, 4.0]), ("b", 1, &[0.0, 1.0]), ("a", 1, &[5.0, 6.0])];
        let mut compared = Compared::new(kept(&taps), &|_, _, _| ());
        for (name, rows, values) in taps {
            compared.tap(name, rows, values.len() / rows, values);
        }
        let labels: Vec<String> =
            compared.finish().unwrap().iter().map(TapFidelity::label).collect();
        assert_eq!(labels, ["a", "b", "a[2..3]"]);
    }

    #[test]
    fn other_values_are_an_error() {
        let other = |name: &str, cols: usize| {
            let mut compared = Compared::new(kept(&[("x", 1, &[1.0, 2.0])]), &|_, _, _| ());
            compared.tap(name, 1, cols, &vec![0.0; cols]);
            compared.finish().expect_err("another value").to_string()
        };
        assert!(other("y", 2).contains("'y' [1, 2]"), "{}", other("y", 2));
        assert!(other("x", 3).contains("'x' [1, 2]"), "{}", other("x", 3));
        let missing = Compared::new(kept(&[("x", 1, &[1.0])]), &|_, _, _| ()).finish();
        assert!(missing.expect_err("missing").to_string().contains("gave nothing"));
    }
}
