//! How well a chunk agrees with the one that is known to be right.

use std::fmt;

use serde::Serialize;

use crate::contract::ActionGroup;
use crate::correlation::Correlation;
use crate::words::names;

/// Largest difference of a group that does not move in the golden, relative to its size or 1, whichever is larger.
const STILL_TOLERANCE: f64 = 1e-3;

/// The agreement of all groups of a chunk.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement(pub Vec<GroupAgreement>);

/// The agreement of one group, all rows and columns together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupAgreement {
    pub name: String,
    /// Pearson's correlation; `None` if the golden, or the chunk, has the same value everywhere.
    pub pcc: Option<f64>,
    /// Lin's concordance: as the correlation, but lower where scale or offset differ; `None` as above.
    pub concordance: Option<f64>,
    /// Largest difference of a value, in the unit of the group.
    pub max_difference: f64,
    /// Largest size of a golden value.
    pub size: f64,
}

/// Why two chunks cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    #[error("the golden has the groups {golden}, the chunk has {chunk}")]
    Groups { golden: String, chunk: String },
    #[error("group '{group}' is {golden} in the golden and {chunk} in the chunk")]
    Shape { group: String, golden: String, chunk: String },
}

impl Agreement {
    /// Compares the groups of a chunk with those of a golden.
    ///
    /// # Errors
    /// Other groups, or other shapes.
    pub fn of(golden: &[ActionGroup], chunk: &[ActionGroup]) -> Result<Self, Incomparable> {
        let names = |groups: &[ActionGroup]| {
            groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        if names(golden) != names(chunk) {
            return Err(Incomparable::Groups { golden: names(golden), chunk: names(chunk) });
        }
        golden
            .iter()
            .zip(chunk)
            .map(|(golden, chunk)| group(golden, chunk))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// The groups whose agreement is below `floor`.
    pub fn below(&self, floor: f64) -> impl Iterator<Item = &GroupAgreement> {
        self.0.iter().filter(move |group| !group.reaches(floor))
    }

    /// Whether every group reaches `floor`, and which do not.
    pub fn verdict(&self, floor: f64) -> String {
        let below: Vec<&str> = self.below(floor).map(|group| group.name.as_str()).collect();
        if below.is_empty() {
            return format!(
                "passes: correlation and concordance of every action group reach {floor}"
            );
        }
        format!("does not pass: below {floor} in correlation or concordance: {}", names(&below))
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&groups.join("; "))
    }
}

impl GroupAgreement {
    /// Whether correlation and concordance reach `floor`; where one of the chunks has one value throughout, whether the
    /// values are the same but for rounding.
    pub fn reaches(&self, floor: f64) -> bool {
        match (self.pcc, self.concordance) {
            (Some(pcc), Some(concordance)) => pcc >= floor && concordance >= floor,
            _ => self.max_difference <= self.tolerance(),
        }
    }

    /// Largest difference that passes where there is no correlation.
    fn tolerance(&self) -> f64 {
        STILL_TOLERANCE * self.size.max(1.0)
    }
}

impl fmt::Display for GroupAgreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        match (self.pcc, self.concordance) {
            (Some(pcc), Some(concordance)) => {
                write!(f, "PCC {pcc:.6}, concordance {concordance:.6}, ")?;
            }
            _ => write!(f, "one value throughout, which may differ by {:.1e}, ", self.tolerance())?,
        }
        write!(f, "max|d| {:.3e} of {:.3}", self.max_difference, self.size)
    }
}

fn group(golden: &ActionGroup, chunk: &ActionGroup) -> Result<GroupAgreement, Incomparable> {
    let shape = |group: &ActionGroup| {
        format!(
            "{}x{} {:?}",
            group.values.len() / group.dim.max(1),
            group.dim,
            group.representation
        )
    };
    if shape(golden) != shape(chunk) {
        return Err(Incomparable::Shape {
            group: golden.name.clone(),
            golden: shape(golden),
            chunk: shape(chunk),
        });
    }
    let pairs = || {
        let values = golden.values.iter().zip(&chunk.values);
        values.map(|(golden, chunk)| (f64::from(*golden), f64::from(*chunk)))
    };
    let correlation = Correlation::of(pairs());
    Ok(GroupAgreement {
        name: golden.name.clone(),
        pcc: correlation.map(|found| found.pcc),
        concordance: correlation.map(|found| found.concordance),
        max_difference: pairs().map(|(golden, chunk)| (golden - chunk).abs()).fold(0.0, f64::max),
        size: pairs().map(|(golden, _)| golden.abs()).fold(0.0, f64::max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Representation;

    fn made(values: &[f32]) -> Vec<ActionGroup> {
        let (name, values) = ("arm".to_owned(), values.to_vec());
        vec![ActionGroup { name, representation: Representation::Absolute, dim: 2, values }]
    }

    fn agreement(golden: &[f32], chunk: &[f32]) -> GroupAgreement {
        Agreement::of(&made(golden), &made(chunk)).unwrap().0.remove(0)
    }

    const GOLDEN: [f32; 6] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];

    #[test]
    fn the_same_agrees_wholly() {
        let found = agreement(&GOLDEN, &GOLDEN);
        assert_eq!((found.pcc, found.concordance), (Some(1.0), Some(1.0)));
        assert_eq!((found.max_difference, found.size), (0.0, 5.0));
        assert!(found.reaches(1.0));
    }

    #[test]
    fn scale_and_offset_do_not_hide_behind_the_correlation() {
        // By hand: variances 35/12 and 35/3, covariance 35/6, means 2.5 and 5.
        let doubled = agreement(&GOLDEN, &GOLDEN.map(|value| 2.0 * value));
        assert!((doubled.pcc.unwrap() - 1.0).abs() < 1e-12);
        let expected = (35.0 / 3.0) / (35.0 / 12.0 + 35.0 / 3.0 + 6.25);
        assert!((doubled.concordance.unwrap() - expected).abs() < 1e-12);
        assert_eq!(doubled.max_difference, 5.0);
        assert!(!doubled.reaches(0.999));
        assert!(!agreement(&GOLDEN, &GOLDEN.map(|value| value + 1.0)).reaches(0.999));
        assert!(agreement(&GOLDEN, &GOLDEN.map(|value| value + 0.001)).reaches(0.999));
    }

    #[test]
    fn the_verdict_names_the_groups_that_do_not_pass() {
        let agreement = Agreement::of(&made(&GOLDEN), &made(&GOLDEN.map(|v| 2.0 * v))).unwrap();
        assert!(agreement.verdict(0.5).starts_with("passes: "), "{}", agreement.verdict(0.5));
        assert!(agreement.verdict(0.5).ends_with("reach 0.5"), "{}", agreement.verdict(0.5));
        let below = agreement.verdict(0.999);
        assert!(below.starts_with("does not pass") && below.ends_with(": 'arm'"), "{below}");
    }

    #[test]
    fn opposite_motion_is_far_below_any_floor() {
        let found = agreement(&GOLDEN, &GOLDEN.map(|value| 5.0 - value));
        assert!((found.pcc.unwrap() + 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_group_that_does_not_move_is_held_to_its_values() {
        assert!(agreement(&[3.0; 4], &[3.0; 4]).reaches(1.0));
        assert!(agreement(&[300.0; 4], &[300.1; 4]).reaches(0.999));
        for other in [[3.1; 4], [3.0, 3.0, 3.0, 3.1], [f32::MAX; 4]] {
            assert!(!agreement(&[3.0; 4], &other).reaches(0.0), "{other:?}");
        }
        let found = agreement(&[0.0, 1.0], &[0.5, 0.5]);
        assert!(!found.reaches(0.0));
        let text = found.to_string();
        assert!(
            text.contains("one value throughout, which may differ by 1.0e-3, max|d| 5"),
            "{text}"
        );
    }

    #[test]
    fn other_groups_and_shapes_are_no_agreement() {
        assert!(Agreement::of(&made(&GOLDEN), &made(&GOLDEN[..4])).is_err());
        assert!(Agreement::of(&made(&GOLDEN), &[]).is_err());
    }
}
