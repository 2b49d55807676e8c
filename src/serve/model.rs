//! A loaded policy as servers see it: what it takes, how it was looked at, and an observation with its answer.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tracing::info;

use crate::contract::{
    ActionGroup, CancelToken, Embodiment, Noise, Observation, PredictOptions, Version,
};
use crate::encode::{FrameShapes, InstructionTokens};
use crate::golden::{Agreement, Gate, GateError, Golden, GoldenError, Verdict};
use crate::locked::locked;
use crate::plan::Prompt;
use crate::policy::{Policy, PolicyError, PolicyOptions};
use crate::words::names;

/// A layout of tokens and pictures that the serving documents describe.
struct Documented {
    version: Version,
    embodiment: &'static str,
    name: &'static str,
    /// Tokens of the longest instruction.
    text_limit: usize,
}

/// The first of a robot is served where none is asked for.
const DOCUMENTED: [Documented; 4] = [
    Documented::new(Version::N15, "gr1", "gr1"),
    Documented::new(Version::N16, "gr1", "gr1"),
    Documented { version: Version::N16, embodiment: "gr1", name: "gr1_long_text", text_limit: 152 },
    Documented::new(Version::N17, "oxe_droid_relative_eef_relative_joint", "droid"),
];

impl Documented {
    const fn new(version: Version, embodiment: &'static str, name: &'static str) -> Self {
        Self { version, embodiment, name, text_limit: Prompt::of(version).longest_text() }
    }
}

/// Embodiment and layout that the documents serve of a version, where nothing else is asked for.
pub fn documented_robot(version: Version) -> (&'static str, &'static str) {
    let of_version = DOCUMENTED.iter().find(|layout| layout.version == version);
    let layout = of_version.expect("every version has one");
    (layout.embodiment, layout.name)
}

/// What to load, and how it is looked at before it is served.
#[derive(Clone, Debug)]
pub struct ModelOptions {
    pub policy: PolicyOptions,
    /// Predictions before the policy is ready; one at least is made.
    pub warm_up: u32,
    /// Lowest agreement with the golden that is served.
    pub floor: f64,
    /// Directory of the golden; `None`: that of the embodiment in the snapshot, if there is one.
    pub golden: Option<PathBuf>,
    /// Seed of requests that give none; `None`: the version's.
    pub default_seed: Option<u64>,
    /// Name of the layout; `None`: the robot's first.
    pub layout: Option<String>,
}

/// Why a policy is not served.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error(transparent)]
    Policy(Box<PolicyError>),
    #[error("the policy does not pass the fidelity gate: {0}")]
    Gate(Box<GateError>),
    #[error(transparent)]
    Golden(#[from] GoldenError),
    #[error("{version} has no layout '{wanted}' for '{embodiment}'; there is {}", names(.known))]
    Layout { version: Version, embodiment: String, wanted: String, known: Vec<String> },
}

impl From<PolicyError> for ModelError {
    fn from(error: PolicyError) -> Self {
        ModelError::Policy(Box::new(error))
    }
}

impl From<GateError> for ModelError {
    fn from(error: GateError) -> Self {
        ModelError::Gate(Box::new(error))
    }
}

/// Facts about the served policy that no request changes.
#[derive(Clone)]
pub struct Model {
    pub version: Version,
    pub embodiment: Embodiment,
    /// Every tag of the checkpoint.
    pub tags: Vec<String>,
    pub snapshot: PathBuf,
    pub fingerprint: String,
    pub backend: String,
    /// Name of the layout of tokens and pictures.
    pub layout: String,
    /// Tokens of the longest instruction that is served; `None` where the documents have no such layout.
    pub text_limit: Option<usize>,
    /// Rows and columns of the initial noise.
    pub noise_shape: [usize; 2],
    pub default_seed: u64,
    pub instruction_tokens: InstructionTokens,
    pub frame_shapes: FrameShapes,
    /// How the policy was compared, in words.
    pub fidelity: String,
    pub agreement: Option<Agreement>,
    pub load_time: Duration,
    pub warm_up_times: Vec<Duration>,
    pub demo: Demo,
}

/// An observation with its answer.
#[derive(Clone, Debug)]
pub struct Demo {
    pub observation: Observation,
    pub noise: Noise,
    pub groups: Vec<ActionGroup>,
    /// The network's output, where this server has computed the answer itself.
    pub normalized: Option<Vec<f32>>,
    /// The golden that the answer is from; `None` if this server predicted it, which says nothing of fidelity.
    pub golden: Option<PathBuf>,
}

impl Model {
    /// Loads a policy, holds it to its golden and warms it up.
    ///
    /// # Errors
    /// Anything about the policy or its golden.
    pub fn load(options: &ModelOptions) -> Result<(Policy, Self), ModelError> {
        let start = Instant::now();
        let mut policy = Policy::load(&options.policy)?;
        let load_time = start.elapsed();
        info!("the policy was loaded in {:.1} s; warming up", load_time.as_secs_f64());
        let gate =
            Gate { on: true, floor: options.floor, golden: options.golden.clone(), times: 1 };
        let reference = options.policy.reference();
        let cancel = CancelToken::default();
        let verdict = gate.look_at(&mut policy, || Ok(Policy::load(&reference)?), &cancel)?;
        info!("fidelity: {verdict}");
        let default_seed = options.default_seed.unwrap_or(policy.version().default_seed());
        let (demo, warm_up_times) =
            demo(&mut policy, &verdict, default_seed, options.warm_up.max(1))?;
        let embodiment = policy.embodiment().clone();
        let (layout, text_limit) =
            layout(policy.version(), &embodiment.tag, options.layout.as_deref())?;
        let model = Self {
            version: policy.version(),
            tags: policy.served().to_vec(),
            snapshot: policy.snapshot().to_owned(),
            fingerprint: policy.fingerprint(),
            backend: policy.backend(),
            layout,
            text_limit,
            noise_shape: policy.noise_shape(),
            default_seed,
            instruction_tokens: remembered(policy.instruction_tokens()),
            frame_shapes: policy.frame_shapes(),
            fidelity: verdict.to_string(),
            agreement: match verdict {
                Verdict::Golden { agreement, .. } | Verdict::Cpu { agreement } => Some(agreement),
                Verdict::Reference | Verdict::Skipped => None,
            },
            load_time,
            warm_up_times,
            demo,
            embodiment,
        };
        Ok((policy, model))
    }

    /// Columns of the network's output that are actions of this robot.
    pub fn action_dim(&self) -> usize {
        self.embodiment.action_dim()
    }
}

/// Predicts from the golden's observation, or from a made-up one, and keeps it with the known answer.
fn demo(
    policy: &mut Policy,
    verdict: &Verdict,
    default_seed: u64,
    times: u32,
) -> Result<(Demo, Vec<Duration>), ModelError> {
    let golden = match verdict {
        Verdict::Golden { dir, .. } => Some((dir.clone(), Golden::read(dir)?)),
        _ => None,
    };
    let (observation, noise) = match &golden {
        Some((_, golden)) => (golden.observation.clone(), golden.noise.clone()),
        None => (policy.made_up_observation()?, Noise::Seed(default_seed)),
    };
    let options = PredictOptions { noise: Some(noise.clone()), ..Default::default() };
    let mut taken = Vec::new();
    let mut predict = || {
        let start = Instant::now();
        let chunk = policy.predict(&observation, &options)?;
        taken.push(start.elapsed());
        info!("warm-up {}/{times}: {:.1} ms", taken.len(), start.elapsed().as_secs_f64() * 1e3);
        Ok::<_, ModelError>(chunk)
    };
    let first = predict()?;
    for _ in 1..times {
        predict()?;
    }
    let demo = match golden {
        Some((dir, golden)) => Demo {
            observation,
            noise,
            groups: golden.answer.groups,
            normalized: None,
            golden: Some(dir),
        },
        None => {
            let normalized = Some(first.normalized);
            Demo { observation, noise, groups: first.groups, normalized, golden: None }
        }
    };
    Ok((demo, taken))
}

/// Counts the tokens of an instruction once for as long as it stays the same, as it does from request to request: counting
/// takes longer than everything else that is checked.
fn remembered(count: InstructionTokens) -> InstructionTokens {
    let last = Mutex::new((String::new(), None));
    Arc::new(move |instruction| {
        // Both are written together, so a panic elsewhere leaves them whole.
        let lock = || locked(&last);
        if let (known, Some(tokens)) = &*lock()
            && known == instruction
        {
            return Ok(*tokens);
        }
        let tokens = count(instruction)?;
        *lock() = (instruction.to_owned(), Some(tokens));
        Ok(tokens)
    })
}

/// That a layout which is asked for is one of the robot.
///
/// # Errors
/// It is not; the error names those that are.
pub fn check_layout(version: Version, tag: &str, wanted: Option<&str>) -> Result<(), ModelError> {
    layout(version, tag, wanted).map(|_| ())
}

/// Name and text limit of the layout that is served: the one that is wanted, or the first of the robot. A robot that the
/// documents do not serve has one of its own name, without a limit.
fn layout(
    version: Version,
    tag: &str,
    wanted: Option<&str>,
) -> Result<(String, Option<usize>), ModelError> {
    let of_robot = |layout: &&Documented| layout.version == version && layout.embodiment == tag;
    let mut known: Vec<(String, Option<usize>)> = DOCUMENTED
        .iter()
        .filter(of_robot)
        .map(|layout| (layout.name.to_owned(), Some(layout.text_limit)))
        .collect();
    if known.is_empty() {
        known.push((tag.to_owned(), None));
    }
    let Some(wanted) = wanted else { return Ok(known.remove(0)) };
    match known.iter().position(|(name, _)| name == wanted) {
        Some(at) => Ok(known.remove(at)),
        None => Err(ModelError::Layout {
            version,
            embodiment: tag.to_owned(),
            wanted: wanted.to_owned(),
            known: known.into_iter().map(|(name, _)| name).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn an_instruction_is_counted_again_when_it_changes() {
        let counted = Arc::new(AtomicUsize::new(0));
        let counter = counted.clone();
        let tokens = remembered(Arc::new(move |instruction| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(instruction.len())
        }));
        for (instruction, times) in [("", 1), ("", 1), ("pick", 2), ("pick", 2), ("", 3)] {
            assert_eq!(tokens(instruction).expect("tokens"), instruction.len());
            assert_eq!(counted.load(Ordering::Relaxed), times);
        }
    }

    #[test]
    fn layouts_are_those_of_the_documents() {
        let droid = "oxe_droid_relative_eef_relative_joint";
        for (version, tag, wanted, expected) in [
            (Version::N15, "gr1", None, ("gr1", Some(102))),
            (Version::N16, "gr1", None, ("gr1", Some(24))),
            (Version::N16, "gr1", Some("gr1_long_text"), ("gr1_long_text", Some(152))),
            (Version::N17, droid, Some("droid"), ("droid", Some(51))),
            (Version::N16, "other", None, ("other", None)),
        ] {
            let (name, limit) = layout(version, tag, wanted).expect(tag);
            assert_eq!((name.as_str(), limit), expected);
        }
        for version in Version::ALL {
            let (tag, name) = documented_robot(version);
            assert_eq!(layout(version, tag, None).expect(tag).0, name);
        }
        let refused = layout(Version::N15, "gr1", Some("droid")).expect_err("other").to_string();
        assert!(refused.contains("'droid'") && refused.contains("there is 'gr1'"), "{refused}");
    }
}
