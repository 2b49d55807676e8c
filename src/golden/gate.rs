//! Holding a policy to its golden.

use std::fmt;
use std::path::{Path, PathBuf};

use super::agreement::Incomparable;
use super::{Agreement, FOLDER, Golden, GoldenError, place};
use crate::contract::{CancelToken, Noise, PredictOptions, Version};
use crate::policy::{Policy, PolicyError};

/// How a policy is looked at before a robot depends on it.
#[derive(Clone, Debug)]
pub struct Gate {
    /// Whether it is compared at all.
    pub on: bool,
    /// Lowest correlation and concordance of every action group that passes.
    pub floor: f64,
    /// Directory of the golden; `None`: that of the embodiment in the snapshot, if there is one.
    pub golden: Option<PathBuf>,
    /// Predictions from the golden's observation; one at least is made.
    pub times: u32,
}

/// What the gate has seen of a policy that it lets pass.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Golden {
        dir: PathBuf,
        agreement: Agreement,
    },
    /// There is no golden; compared with the CPU in f32.
    Cpu {
        agreement: Agreement,
    },
    /// There is no golden, and the policy runs on the CPU in f32 itself.
    Reference,
    /// The gate is switched off.
    Skipped,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Golden { dir, agreement } => {
                write!(f, "agrees with the golden in {}: {agreement}", dir.display())
            }
            Verdict::Cpu { agreement } => write!(f, "agrees with the CPU in f32: {agreement}"),
            Verdict::Reference => f.write_str(
                "not compared: there is no golden, and the CPU in f32 is the reference itself",
            ),
            Verdict::Skipped => f.write_str("not compared: the gate is switched off"),
        }
    }
}

/// Why a policy does not pass.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    #[error(transparent)]
    Golden(#[from] GoldenError),
    #[error(transparent)]
    Policy(Box<PolicyError>),
    #[error(
        "the golden in {} was recorded with another checkpoint (fingerprint {found}, not {wanted}); \
         give this checkpoint's own golden, or remove it and record one: gr00t_blackhole golden record", dir.display()
    )]
    OtherCheckpoint { dir: PathBuf, found: String, wanted: String },
    #[error("the golden in {} is of embodiment '{found}', not of '{wanted}'", dir.display())]
    OtherEmbodiment { dir: PathBuf, found: String, wanted: String },
    #[error("the golden in {} is of {found}, not of {wanted}", dir.display())]
    OtherVersion { dir: PathBuf, found: Version, wanted: Version },
    #[error("the golden in {} does not fit: {problem}", dir.display())]
    Incomparable { dir: PathBuf, problem: Incomparable },
    #[error(
        "the chunk for the golden in {} is not the known one, agreement below {floor}: {groups}; {suspect}", dir.display()
    )]
    Below { dir: PathBuf, floor: f64, groups: Agreement, suspect: Suspect },
    #[error("the backend does not compute what the CPU does in f32: {0}")]
    OtherGroups(Incomparable),
    #[error(
        "the backend does not compute what the CPU does in f32; agreement below {floor}: {groups}"
    )]
    BelowCpu { floor: f64, groups: Agreement },
    #[error(
        "prediction {number} of the golden in {} gave other bytes than the first one", dir.display()
    )]
    NotRepeatable { dir: PathBuf, number: u32 },
}

/// What may have changed where a chunk is not the known one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suspect {
    /// The same numbers: what goes into the network, or what is made of its output.
    Processing,
    /// Other numbers than those of the golden.
    Numbers { computed_by: String, golden_of: String },
}

impl fmt::Display for Suspect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Suspect::Processing => f.write_str(
                "give letterbox, data config and tokenizer as when it was recorded, or, if statistics or processing were \
                 changed on purpose, remove it and record another one: gr00t_blackhole golden record",
            ),
            Suspect::Numbers { computed_by, golden_of } => write!(
                f,
                "it was computed by {computed_by}, and the golden is of {golden_of}; see first whether the CPU in f32 \
                 agrees, then choose numbers that keep more bits, or a lower floor"
            ),
        }
    }
}

/// How a chunk agrees with a golden that it was held to.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    pub agreement: Agreement,
    /// What has computed the golden.
    pub golden_of: String,
}

impl From<PolicyError> for GateError {
    fn from(error: PolicyError) -> Self {
        GateError::Policy(Box::new(error))
    }
}

/// The directory of the golden that a policy is held to: the given one, or that of its embodiment in the snapshot;
/// `None` if there is none.
///
/// # Errors
/// The given directory does not exist.
pub fn find(
    given: Option<&Path>,
    snapshot: &Path,
    tag: &str,
) -> Result<Option<PathBuf>, GoldenError> {
    if let Some(dir) = given {
        if dir.is_dir() {
            return Ok(Some(dir.to_owned()));
        }
        return Err(GoldenError::Read(format!(
            "there is no golden in {}; give a directory that `gr00t_blackhole golden record` has written",
            dir.display()
        )));
    }
    // A tag that no directory can have has no golden.
    let Ok(dir) = place(snapshot, tag) else { return Ok(None) };
    for path in [snapshot.join(FOLDER), dir.clone()] {
        if path.is_dir() {
            continue;
        }
        // Something that is there and cannot be used is not nothing.
        if path.symlink_metadata().is_ok() {
            let text =
                format!("{} is no directory; remove it, or put the golden there", path.display());
            return Err(GoldenError::Read(text));
        }
        return Ok(None);
    }
    Ok(Some(dir))
}

impl Gate {
    /// Looks at `policy`; `cpu` loads the same policy for the CPU in f32, where it is needed.
    ///
    /// # Errors
    /// The policy does not answer as it should, or what it is to be held to cannot be used.
    pub fn look_at(
        &self,
        policy: &mut Policy,
        cpu: impl FnOnce() -> Result<Policy, GateError>,
        cancel: &CancelToken,
    ) -> Result<Verdict, GateError> {
        if !self.on {
            return Ok(Verdict::Skipped);
        }
        let golden = find(self.golden.as_deref(), policy.snapshot(), &policy.embodiment().tag)?;
        if let Some(dir) = golden {
            let Held { agreement, .. } = check(policy, &dir, self.floor, self.times, cancel)?;
            return Ok(Verdict::Golden { dir, agreement });
        }
        if policy.is_reference() {
            return Ok(Verdict::Reference);
        }
        let agreement = compare(policy, &mut cpu()?, self.floor, cancel)?;
        Ok(Verdict::Cpu { agreement })
    }
}

/// Predicts once from a made-up observation, with `policy` and with `reference`.
fn compare(
    policy: &mut Policy,
    reference: &mut Policy,
    floor: f64,
    cancel: &CancelToken,
) -> Result<Agreement, GateError> {
    let observation = reference.made_up_observation()?;
    let options = PredictOptions {
        noise: Some(Noise::Seed(reference.version().default_seed())),
        cancel: cancel.clone(),
        ..Default::default()
    };
    let expected = reference.predict(&observation, &options)?;
    let found = policy.predict(&observation, &options)?;
    let agreement =
        Agreement::of(&expected.groups, &found.groups).map_err(GateError::OtherGroups)?;
    let below: Vec<_> = agreement.below(floor).cloned().collect();
    if below.is_empty() {
        return Ok(agreement);
    }
    Err(GateError::BelowCpu { floor, groups: Agreement(below) })
}

/// The golden in `dir`, if it is of this version, of the embodiment `tag` and of the checkpoint with this fingerprint.
///
/// # Errors
/// The golden is damaged or of something else.
pub fn read_for(
    dir: &Path,
    version: Version,
    tag: &str,
    fingerprint: String,
) -> Result<Golden, GateError> {
    let golden = Golden::read(dir)?;
    let answer = &golden.answer;
    let dir = dir.to_owned();
    if answer.version != version {
        return Err(GateError::OtherVersion { dir, found: answer.version, wanted: version });
    }
    if answer.embodiment != tag {
        let (found, wanted) = (answer.embodiment.clone(), tag.to_owned());
        return Err(GateError::OtherEmbodiment { dir, found, wanted });
    }
    if answer.checkpoint != fingerprint {
        let (found, wanted) = (answer.checkpoint.clone(), fingerprint);
        return Err(GateError::OtherCheckpoint { dir, found, wanted });
    }
    Ok(golden)
}

/// Predicts from the observation of the golden in `dir`, `times` times, and compares.
///
/// # Errors
/// The golden is damaged or of something else; the policy does not answer, not the same twice, or with a chunk of which
/// some group agrees less than `floor`.
pub fn check(
    policy: &mut Policy,
    dir: &Path,
    floor: f64,
    times: u32,
    cancel: &CancelToken,
) -> Result<Held, GateError> {
    let golden = read_for(dir, policy.version(), &policy.embodiment().tag, policy.fingerprint())?;
    let in_dir = || dir.to_owned();
    let options = PredictOptions {
        noise: Some(golden.noise.clone()),
        cancel: cancel.clone(),
        ..Default::default()
    };
    let first = policy.predict(&golden.observation, &options)?;
    for number in 2..=times {
        let again = policy.predict(&golden.observation, &options)?;
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        if bits(&again.normalized) != bits(&first.normalized) {
            return Err(GateError::NotRepeatable { dir: in_dir(), number });
        }
    }
    let agreement = Agreement::of(&golden.answer.groups, &first.groups)
        .map_err(|problem| GateError::Incomparable { dir: in_dir(), problem })?;
    let golden_of = golden.answer.backend;
    let below: Vec<_> = agreement.below(floor).cloned().collect();
    if below.is_empty() {
        return Ok(Held { agreement, golden_of });
    }
    let suspect = match policy.is_reference() {
        true => Suspect::Processing,
        false => Suspect::Numbers { computed_by: policy.backend(), golden_of },
    };
    Err(GateError::Below { dir: in_dir(), floor, groups: Agreement(below), suspect })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::checkpoint::synth::{self, Size};
    use crate::golden::DEFAULT_FLOOR;
    use crate::policy::PolicyOptions;

    /// Bytes at the end of the weights whose signs are turned.
    const SPOILT_BYTES: usize = 64 << 10;

    /// A tiny checkpoint.
    fn snapshot(dir: &Path, name: &str) -> PathBuf {
        let snapshot = dir.join(name);
        synth::write(Version::N16, Size::Tiny, &snapshot, &|_, _| {}).unwrap();
        snapshot
    }

    fn spoil(snapshot: &Path) {
        let entries = fs::read_dir(snapshot).unwrap().map(|entry| entry.unwrap().path());
        let is_shard = |path: &PathBuf| path.extension().is_some_and(|end| end == "safetensors");
        let last = entries.filter(is_shard).max().unwrap();
        let mut bytes = fs::read(&last).unwrap();
        let end = bytes.len() - SPOILT_BYTES;
        // The second byte of a bf16 holds its sign.
        bytes[end..].iter_mut().skip(1).step_by(2).for_each(|byte| *byte ^= 0x80);
        fs::write(&last, bytes).unwrap();
    }

    fn load(snapshot: &Path) -> Policy {
        let (snapshot, embodiment) = (snapshot.to_owned(), Some("gr1".to_owned()));
        Policy::load(&PolicyOptions { snapshot, embodiment, ..Default::default() }).unwrap()
    }

    #[test]
    fn a_backend_without_a_golden_is_compared_with_the_cpu() {
        let dir = tempfile::tempdir().unwrap();
        let whole = snapshot(dir.path(), "whole");
        let spoilt = snapshot(dir.path(), "spoilt");
        spoil(&spoilt);
        let mut cpu = load(&whole);
        let cancel = CancelToken::default();
        let agreement = compare(&mut load(&whole), &mut cpu, 1.0, &cancel).unwrap();
        assert!(agreement.0.iter().all(|group| group.max_difference == 0.0), "{agreement}");
        let refused =
            compare(&mut load(&spoilt), &mut cpu, DEFAULT_FLOOR, &cancel).expect_err("spoilt");
        match &refused {
            GateError::BelowCpu { groups, .. } => assert!(!groups.0.is_empty()),
            other => panic!("{other}"),
        }
        assert!(refused.to_string().contains("agreement below 0.999"), "{refused}");
    }
}
