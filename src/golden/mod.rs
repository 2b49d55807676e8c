//! Goldens: an observation of a robot, and the chunk that a checkpoint is known to answer.
//!
//! A golden is a directory: `observation.json` with its pictures, which `predict` reads too, and `golden.json` with the
//! answer. A [`Gate`] holds a policy to it before a robot depends on that policy.

mod agreement;
mod gate;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use agreement::{Agreement, GroupAgreement, Incomparable};
pub use gate::{Gate, GateError, Held, Suspect, Verdict, check, find, read_for};

use crate::contract::{ActionChunk, ActionGroup, Noise, Observation, PredictOptions, Version};
use crate::observation_file;
use crate::partial;
use crate::policy::{Policy, PolicyError};
use crate::regular;

const OBSERVATION_FILE: &str = "observation.json";
const ANSWER_FILE: &str = "golden.json";
/// Folder of a snapshot with a golden per embodiment tag.
pub const FOLDER: &str = "golden";
/// Lowest agreement that passes, where nothing else is said.
pub const DEFAULT_FLOOR: f64 = 0.999;
/// A larger file is no answer: that of the largest robot has a hundred kilobytes.
const MAX_ANSWER_BYTES: u64 = 64 << 20;
/// Behind the name of a golden that grows.
const PARTIAL_SUFFIX: &str = ".golden-partial";

/// An observation with the answer to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Golden {
    pub observation: Observation,
    pub noise: Noise,
    pub answer: Answer,
}

/// What is known of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub version: Version,
    pub embodiment: String,
    /// [`crate::checkpoint::fingerprint`] of the checkpoint that answered.
    pub checkpoint: String,
    /// What computed it, for information.
    pub backend: String,
    pub groups: Vec<ActionGroup>,
}

/// Why there is no golden.
#[derive(Debug, thiserror::Error)]
pub enum GoldenError {
    #[error("{} is there already; name another directory with --out, or remove it", .0.display())]
    Exists(PathBuf),
    #[error("{}: {error}; name a directory that can be written with --out", path.display())]
    Write { path: PathBuf, error: io::Error },
    /// Its text names the file.
    #[error("{0}")]
    Read(String),
    #[error("embodiment tag '{tag}' is no name of a directory; name one with --out")]
    Tag { tag: String },
}

impl Golden {
    /// What `policy` answers to an observation.
    ///
    /// # Errors
    /// The policy does not answer.
    pub fn record(
        policy: &mut Policy,
        observation: Observation,
        noise: Option<Noise>,
    ) -> Result<Self, PolicyError> {
        let noise = noise.unwrap_or(Noise::Seed(policy.version().default_seed()));
        let options = PredictOptions { noise: Some(noise.clone()), ..Default::default() };
        let ActionChunk { version, embodiment, groups, .. } =
            policy.predict(&observation, &options)?;
        let (checkpoint, backend) = (policy.fingerprint(), policy.backend());
        let answer = Answer { version, embodiment, checkpoint, backend, groups };
        Ok(Self { observation, noise, answer })
    }

    /// Reads the golden in the directory `dir`.
    ///
    /// # Errors
    /// A file that is missing or damaged.
    pub fn read(dir: &Path) -> Result<Self, GoldenError> {
        let path = dir.join(ANSWER_FILE);
        let damaged = |reason: String| GoldenError::Read(format!("{}: {reason}", path.display()));
        let bytes =
            regular::read(&path, MAX_ANSWER_BYTES).map_err(|error| damaged(error.to_string()))?;
        let answer: Answer =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        if let Some(group) = answer.groups.iter().find(|group| !is_whole(group)) {
            return Err(damaged(format!("group '{}' is not rows of finite values", group.name)));
        }
        let path = dir.join(OBSERVATION_FILE);
        let (observation, noise) = observation_file::read(&path)
            .map_err(|error| GoldenError::Read(format!("{error:#}")))?;
        let noise = noise.ok_or_else(|| {
            GoldenError::Read(format!("{}: it has neither seed nor noise", path.display()))
        })?;
        Ok(Self { observation, noise, answer })
    }

    /// Writes the golden as the directory `dir`, which must not exist.
    ///
    /// # Errors
    /// There is something already, or the directory cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), GoldenError> {
        if dir.exists() {
            return Err(GoldenError::Exists(dir.to_owned()));
        }
        let failed = |path: &Path, error| GoldenError::Write { path: path.to_owned(), error };
        let partial =
            partial::fresh(dir, PARTIAL_SUFFIX).map_err(|(path, error)| failed(&path, error))?;
        observation_file::write(&partial.join(OBSERVATION_FILE), &self.observation, &self.noise)
            .map_err(|error| failed(dir, io::Error::other(format!("{error:#}"))))?;
        let text = serde_json::to_string_pretty(&self.answer)
            .map_err(|error| failed(dir, error.into()))?;
        fs::write(partial.join(ANSWER_FILE), text + "\n").map_err(|error| failed(dir, error))?;
        fs::rename(&partial, dir).map_err(|error| failed(dir, error))
    }
}

fn is_whole(group: &ActionGroup) -> bool {
    let rows = group.dim > 0 && !group.values.is_empty();
    rows && group.values.len().is_multiple_of(group.dim)
        && group.values.iter().all(|value| value.is_finite())
}

/// Where the golden of an embodiment is looked for in a snapshot.
///
/// # Errors
/// The tag is no name that a directory can have.
pub fn place(snapshot: &Path, tag: &str) -> Result<PathBuf, GoldenError> {
    let mut parts = Path::new(tag).components();
    let plain = matches!(
        (parts.next(), parts.next()),
        (Some(std::path::Component::Normal(name)), None) if name == tag
    );
    if !plain {
        return Err(GoldenError::Tag { tag: tag.to_owned() });
    }
    Ok(snapshot.join(FOLDER).join(tag))
}
