//! What a comparison found: as it is kept.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::groups::{normalised_chunk, normalised_groups};
use super::taps::TapFidelity;
use super::{Chunks, Facts, FidelityError};
use crate::backend::cpu::card::WeightBytes;
use crate::golden::{Agreement, GroupAgreement};
use crate::policy::Policy;
use crate::program::StageKind;

/// Version of the report's form, which changes when a key does.
pub const SCHEMA: u32 = 1;

const PROGRAM: &str = concat!("gr00t_blackhole ", env!("CARGO_PKG_VERSION"));

/// How far the card's numbers are from f32.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub schema: u32,
    /// What has written it, with its version.
    pub program: &'static str,
    pub version: &'static str,
    pub embodiment: String,
    pub snapshot: PathBuf,
    pub instruction: String,
    /// Null when the noise was given explicitly.
    pub seed: Option<u64>,
    /// Whether the observation is one without meaning.
    pub made_up_observation: bool,
    /// What has computed each run.
    pub reference: String,
    pub card: String,
    pub dtype_policy: &'static str,
    pub math_fidelity: &'static str,
    pub accumulation: &'static str,
    pub weights: Option<Weights>,
    /// Lowest correlation and concordance of every action group that passes.
    pub floor: f64,
    /// Action groups below it, by name.
    pub below: Vec<String>,
    /// Every action group in physical units.
    pub groups: Agreement,
    /// The same before decoding.
    pub normalised_groups: Agreement,
    /// All of them together, before decoding.
    pub normalised: GroupAgreement,
    /// Every intermediate value, in the order of the program.
    pub taps: Vec<TapFidelity>,
}

/// Bytes of the weights that a request reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Weights {
    /// Of products, by format.
    pub products: BTreeMap<&'static str, u64>,
    /// Norms, biases, embeddings and tables: bf16.
    pub others: u64,
}

impl From<WeightBytes> for Weights {
    fn from(bytes: WeightBytes) -> Self {
        let products = bytes.products.into_iter().map(|(format, bytes)| (format.name(), bytes));
        Self { products: products.collect(), others: bytes.others }
    }
}

impl Report {
    pub(super) fn new(
        facts: Facts,
        chunks: &Chunks,
        policy: &Policy,
        taps: Vec<TapFidelity>,
    ) -> Result<Self, FidelityError> {
        let Chunks { reference, card } = chunks;
        let embodiment = policy.embodiment();
        let [_, width] = policy.noise_shape();
        let in_groups = |chunk: &[f32]| normalised_groups(embodiment, chunk, width);
        let whole = |chunk: &[f32]| [normalised_chunk(embodiment, chunk, width)];
        let (before, after) = (&reference.normalized, &card.normalized);
        let normalised = Agreement::of(&whole(before), &whole(after))?.0.remove(0);
        let groups = Agreement::of(&reference.groups, &card.groups)?;
        let numerics = facts.numerics;
        Ok(Self {
            schema: SCHEMA,
            program: PROGRAM,
            version: reference.version.name(),
            embodiment: reference.embodiment.clone(),
            snapshot: policy.snapshot().to_owned(),
            instruction: reference.instruction.clone(),
            seed: reference.seed,
            made_up_observation: facts.made_up,
            reference: facts.reference,
            card: policy.backend(),
            dtype_policy: numerics.policy.name(),
            math_fidelity: numerics.fidelity.name(),
            accumulation: numerics.accumulation.name(),
            weights: policy.weight_bytes(numerics.policy).map(Weights::from),
            floor: facts.floor,
            below: names_below(&groups, facts.floor),
            groups,
            normalised_groups: Agreement::of(&in_groups(before), &in_groups(after))?,
            normalised,
            taps,
        })
    }

    /// Whether every action group reaches the floor.
    ///
    /// # Errors
    /// The groups that do not.
    pub fn check(&self) -> Result<(), FidelityError> {
        let below: Vec<GroupAgreement> = self.groups.below(self.floor).cloned().collect();
        if below.is_empty() {
            return Ok(());
        }
        let (card, floor) = (self.numerics(), self.floor);
        Err(FidelityError::Below { card, floor, groups: Agreement(below) })
    }

    /// The numbers of the card, in words.
    fn numerics(&self) -> String {
        format!(
            "the card's numbers ({}, {}, sums in {})",
            self.dtype_policy, self.math_fidelity, self.accumulation
        )
    }

    /// The values of the lowest correlation, worst first.
    pub(super) fn worst(&self, count: usize) -> Vec<&TapFidelity> {
        let mut taps: Vec<&TapFidelity> = self.taps.iter().collect();
        taps.sort_by(|a, b| b.loss().total_cmp(&a.loss()));
        taps.truncate(count);
        taps
    }

    /// Of every stage the value of the lowest correlation.
    pub(super) fn worst_of_stages(&self) -> Vec<&TapFidelity> {
        let of = |stage: StageKind| {
            let taps = self.taps.iter().filter(move |tap| tap.stage == stage.name());
            // The first of equals.
            taps.reduce(|worst, tap| if tap.loss() > worst.loss() { tap } else { worst })
        };
        StageKind::ALL.into_iter().filter_map(of).collect()
    }
}

fn names_below(groups: &Agreement, floor: f64) -> Vec<String> {
    groups.below(floor).map(|group| group.name.clone()).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::text::{ONE_VALUE, ROWS};
    use super::*;

    pub fn tap(name: &str, stage: StageKind, pcc: Option<f64>) -> TapFidelity {
        TapFidelity {
            name: name.to_owned(),
            stage: stage.name(),
            first_row: 0,
            rows: 2,
            cols: 3,
            pcc,
            concordance: pcc,
            max_difference: 0.01,
            min: -1.0,
            max: 2.0,
            not_finite: 0,
        }
    }

    pub fn group(name: &str, pcc: Option<f64>) -> GroupAgreement {
        let name = name.to_owned();
        GroupAgreement { name, pcc, concordance: pcc, max_difference: 0.0, size: 1.0 }
    }

    pub fn report(taps: Vec<TapFidelity>, groups: Vec<GroupAgreement>) -> Report {
        let (groups, floor) = (Agreement(groups), 0.999);
        Report {
            schema: SCHEMA,
            program: PROGRAM,
            version: "n16",
            embodiment: "gr1".to_owned(),
            snapshot: PathBuf::new(),
            instruction: "wave".to_owned(),
            seed: None,
            made_up_observation: true,
            reference: "cpu (2 threads, f32)".to_owned(),
            card: "cpu (2 threads, card numerics)".to_owned(),
            dtype_policy: "mixed_dit",
            math_fidelity: "hifi2",
            accumulation: "f32",
            floor,
            below: names_below(&groups, floor),
            weights: Some(Weights {
                products: [("bf16", 2_500_000_000), ("bfp8_b", 1_000_000)].into(),
                others: 3_000,
            }),
            normalised_groups: groups.clone(),
            normalised: group("normalised chunk", Some(0.5)),
            groups,
            taps,
        }
    }

    #[test]
    fn groups_below_the_floor_are_named_in_report_text_and_error() {
        let groups = vec![group("arm", Some(0.9995)), group("hand", Some(0.99))];
        let mut report = report(vec![], groups);
        assert_eq!(report.below, ["hand"]);
        assert!(report.text().starts_with("does not pass: "), "{}", report.text());
        let error = report.check().expect_err("a hand").to_string();
        assert!(error.contains("below 0.999: hand: PCC 0.990000") && !error.contains("arm"));
        assert!(error.starts_with("the card's numbers (mixed_dit, hifi2, sums in f32)"), "{error}");
        report.floor = 0.99;
        assert!(report.check().is_ok() && report.text().starts_with("passes: "));
    }

    #[test]
    fn the_worst_values_come_first_and_every_stage_has_one() {
        let mut broken = tap("broken", StageKind::Denoise, None);
        broken.not_finite = 3;
        broken.first_row = 41;
        let taps = vec![
            tap("still", StageKind::Vision, None),
            tap("good", StageKind::Vision, Some(0.999_999)),
            tap("bad", StageKind::Llm, Some(0.9)),
            broken,
        ];
        let report = report(taps, vec![group("arm", Some(0.999)), group("hand", None)]);
        let names = |taps: Vec<&TapFidelity>| -> Vec<String> {
            taps.into_iter().map(|tap| tap.name.clone()).collect()
        };
        // What has one value differs by more than rounding, and so is as bad as what is broken.
        assert_eq!(names(report.worst(3)), ["still", "broken", "bad"]);
        assert_eq!(names(report.worst_of_stages()), ["still", "bad", "broken"]);
        let text = report.text();
        for part in [
            "passes: correlation and concordance of every action group reach 0.999\n",
            "n16 gr1, \"wave\", given noise, a made-up observation",
            "products bf16 2.50 GB, bfp8_b 1.0 MB; norms, biases, embeddings bf16 0.0 MB",
            "3 not finite",
            ONE_VALUE,
            ROWS,
            "0.9990000",
            "1.00e-1",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }
}
