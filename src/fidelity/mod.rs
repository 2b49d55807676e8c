//! How far a policy's chunks, and everything on the way to them, are from those of the CPU in f32 when it computes with
//! the numbers of the card, or when a device computes them.

mod groups;
mod output;
mod picture;
mod report;
mod taps;
mod text;

use std::fmt;
use std::path::PathBuf;

pub use groups::normalised_groups;
pub use output::Folder;
pub use report::{Report, Weights};
pub use taps::TapFidelity;

use crate::backend::cpu::Numerics;
use crate::backend::cpu::card::CardNumerics;
use crate::contract::{ActionChunk, Noise, Observation, PredictOptions, Progress};
use crate::golden::{Agreement, Incomparable};
use crate::plot::PlotError;
use crate::policy::{Policy, PolicyError, PolicyOptions};
use taps::{Compared, Kept, StageAtHand};

/// What both runs predict from.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// `None`: one without meaning, see [`Policy::made_up_observation`].
    pub observation: Option<Observation>,
    /// `None`: the version's default seed.
    pub noise: Option<Noise>,
}

/// Which of the two runs is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    F32,
    Card,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Run::F32 => "in f32",
            Run::Card => "with the card's numbers",
        })
    }
}

/// Is told which run has given how many intermediate values, and of how many, where that is known.
pub type Watch<'a> = &'a (dyn Fn(Run, u64, Option<u64>) + Sync);

/// Why the two runs could not be compared, or the result not be written.
#[derive(Debug, thiserror::Error)]
pub enum FidelityError {
    #[error(transparent)]
    Policy(#[from] Box<PolicyError>),
    #[error("{run} there is no chunk: {error}{}", first_not_finite(.tap.as_deref()))]
    NoChunk { run: Run, error: Box<PolicyError>, tap: Option<String> },
    #[error("the two runs gave different groups: {0}")]
    OtherGroups(#[from] Incomparable),
    #[error("the run with the card's numbers gave {found} where the one in f32 gave {expected}")]
    OtherTaps { expected: String, found: String },
    #[error("{}: {error}; name another folder with --out", path.display())]
    Write { path: PathBuf, error: std::io::Error },
    #[error(transparent)]
    Draw(#[from] PlotError),
    #[error(
        "{card} do not keep the chunk of f32, agreement below {floor}: {groups}; choose numbers that keep more bits, or a \
         lower --floor"
    )]
    Below { card: String, floor: f64, groups: Agreement },
}

fn first_not_finite(tap: Option<&str>) -> String {
    tap.map_or(String::new(), |tap| {
        format!("; the first intermediate value that is not finite is {tap}")
    })
}

impl From<PolicyError> for FidelityError {
    fn from(error: PolicyError) -> Self {
        FidelityError::Policy(Box::new(error))
    }
}

/// Predicts from the same observation in f32 and with `numerics`, and compares all that is named on the way. The first run
/// is the CPU's, the second that of the device of the options or, without one, the CPU's as well. Whether the groups reach
/// `floor` is asked with [`Report::check`].
///
/// The intermediate values of the first run are held in memory, in f32: 0.5 GB of a full-size N1.6, more with more pictures.
///
/// # Errors
/// A policy that cannot be loaded or gives no chunk.
pub fn compare(
    options: &PolicyOptions,
    numerics: CardNumerics,
    given: Given,
    floor: f64,
    watch: Watch<'_>,
) -> Result<Report, FidelityError> {
    let in_f32 = options.reference();
    let mut policy = Policy::load(&in_f32)?;
    let made_up = given.observation.is_none();
    let observation = match given.observation {
        Some(observation) => observation,
        None => policy.made_up_observation()?,
    };
    let noise = given.noise.unwrap_or(Noise::Seed(policy.version().default_seed()));

    let stage = StageAtHand::default();
    let predict = PredictOptions {
        noise: Some(noise.clone()),
        progress: Progress::to({
            let stage = stage.clone();
            move |name| stage.begin(name)
        }),
        ..PredictOptions::default()
    };
    let mut kept = Kept::new(stage, watch);
    let predicted = policy.predict_with_taps(&observation, &predict, Some(&mut kept));
    let no_chunk = |run, error: PolicyError, tap| match error {
        // It has nothing to do with numbers.
        error @ (PolicyError::Observation(_) | PolicyError::State(_)) => FidelityError::from(error),
        error => FidelityError::NoChunk { run, error: Box::new(error), tap },
    };
    let reference =
        predicted.map_err(|error| no_chunk(Run::F32, error, kept.first_not_finite()))?;
    let reference_backend = policy.backend();

    let numbers = Numerics::Card(numerics);
    if options.device.is_some() {
        // One after the other: both in memory may be too much.
        drop(policy);
        policy = Policy::load(&PolicyOptions { numerics: numbers, ..options.clone() })?;
    } else {
        policy.set_numerics(numbers);
    }
    let mut compared = Compared::new(kept.into_taps(), watch);
    let predicted = policy.predict_with_taps(&observation, &predict, Some(&mut compared));
    let card =
        predicted.map_err(|error| no_chunk(Run::Card, error, compared.first_not_finite()))?;
    let chunks = Chunks { reference, card };
    let facts = Facts { reference: reference_backend, made_up, numerics, floor };
    Report::new(facts, &chunks, &policy, compared.finish()?)
}

/// The answers of both runs.
struct Chunks {
    reference: ActionChunk,
    card: ActionChunk,
}

/// What the chunks and the policy do not tell.
struct Facts {
    /// What has computed the run in f32.
    reference: String,
    made_up: bool,
    numerics: CardNumerics,
    floor: f64,
}
