//! Raw parameters and the checkpoint's embodiment, made into what the node is wired to.

mod actions;
mod backend;
mod cameras;
mod limits;
mod poses;
mod states;

use std::path::PathBuf;

use super::guard::Guard;
use super::params::{Names, ParamError, ParamErrors, Params};
use super::remap::Remaps;
use super::trajectory::{ActionJoints, Start};
use crate::contract::{Embodiment, Letterbox, Version};
use crate::golden::Gate;
use crate::history::{CameraInput, Gates, Inputs, StateInput, Timeline};
use crate::policy::PolicyOptions;
use crate::prepared::{self, Cache, NO_CACHE};

pub use cameras::{CameraSettings, Transport};
pub use limits::on_violation;
pub use poses::PoseSettings;
pub use states::{StateSettings, TransformSettings};

const BYTES_PER_GB: f64 = 1e9;
const NANOSECONDS_PER_MS: i64 = 1_000_000;
const NANOSECONDS_PER_S: f64 = 1e9;

/// Everything that is fixed while the node runs.
#[derive(Clone, Debug)]
pub struct Settings {
    pub cameras: Vec<CameraSettings>,
    pub states: Vec<StateSettings>,
    pub transforms: Vec<TransformSettings>,
    pub action_joints: Vec<ActionJoints>,
    /// Every action group that is a pose.
    pub poses: Vec<PoseSettings>,
    /// The limits of what a chunk may command.
    pub guard: Guard,
    pub frame_deltas: Vec<i32>,
    /// Length of a control step, nanoseconds.
    pub dt_ns: i64,
    /// Time between two predictions, nanoseconds; `None` for no timer, and for goals that predict without a pause.
    pub period_ns: Option<i64>,
    pub timeline: Timeline,
}

/// Names of what the robot has, for the parameters that it brings.
pub fn names(embodiment: &Embodiment) -> Names {
    Names {
        cameras: embodiment.cameras.clone(),
        state: embodiment.state.iter().map(|group| group.name.clone()).collect(),
        action: embodiment.action.iter().map(|group| group.name.clone()).collect(),
    }
}

/// The parameter `version`.
pub fn version(params: &Params) -> Option<Version> {
    params.text("version").parse().ok()
}

/// The parameter `letterbox`, whose choices are those of [`Letterbox`].
pub fn letterbox(params: &Params) -> Letterbox {
    params.text("letterbox").parse().unwrap_or_default()
}

/// What is to be loaded; `None` if neither a snapshot nor a version says it.
pub fn policy_options(params: &Params) -> Option<PolicyOptions> {
    let given = |name: &str| Some(params.text(name)).filter(|text| !text.is_empty());
    let (snapshot, version) = (given("snapshot"), version(params));
    if snapshot.is_none() && version.is_none() {
        return None;
    }
    Some(PolicyOptions {
        snapshot: snapshot.unwrap_or_default().into(),
        tokenizer: given("tokenizer").map(Into::into),
        embodiment: given("embodiment").map(str::to_owned),
        data_config: given("data_config").map(str::to_owned),
        letterbox: letterbox(params),
        // The range of the parameter begins at 0.
        threads: usize::try_from(params.integer("threads")).unwrap_or(0),
        numerics: backend::numerics(params),
        device: backend::device(params),
        version,
        usual_instruction: given("instruction").map(str::to_owned),
        cache: cache(params),
    })
}

/// The parameter `cache_dir`.
fn cache(params: &Params) -> Cache {
    Cache::new(match params.text("cache_dir") {
        "" => prepared::default_dir(),
        NO_CACHE => None,
        dir => Some(dir.into()),
    })
}

/// Where predictions are recorded.
pub struct RecordingSettings {
    pub directory: PathBuf,
    pub max_bytes: u64,
}

/// The parameters `record_observations` and `record_observations_max_gb`.
pub fn recording(params: &Params) -> Option<RecordingSettings> {
    let directory = params.text("record_observations");
    let max_bytes = (params.double("record_observations_max_gb") * BYTES_PER_GB) as u64;
    (!directory.is_empty()).then(|| RecordingSettings { directory: directory.into(), max_bytes })
}

/// The gate that a policy passes before the node is configured.
pub fn gate(params: &Params) -> Gate {
    let golden = Some(params.text("golden")).filter(|dir| !dir.is_empty());
    Gate {
        on: params.bool("fidelity_gate"),
        floor: params.double("fidelity_floor"),
        golden: golden.map(Into::into),
        // Its range begins at 0.
        times: u32::try_from(params.integer("warm_up")).unwrap_or(0),
    }
}

/// The seed of the next chunk: the parameter `seed`, or the version's own.
pub fn seed(params: &Params, version: Version) -> u64 {
    u64::try_from(params.integer("seed")).unwrap_or_else(|_| version.default_seed())
}

/// The gates of the observation; they can be changed while the node runs.
pub fn gates(params: &Params) -> Gates {
    // Their ranges begin at 0.
    let number = |name: &str| u64::try_from(params.integer(name)).unwrap_or(0);
    Gates {
        camera_max_age_ns: params.integer("camera_max_age_ms") * NANOSECONDS_PER_MS,
        state_max_age_ns: params.integer("state_max_age_ms") * NANOSECONDS_PER_MS,
        camera_skew_max_ns: params.integer("camera_skew_max_ms") * NANOSECONDS_PER_MS,
        frozen_camera_frames: number("frozen_camera_frames"),
        state_publishers_max: number("state_publishers_max") as usize,
    }
}

/// The parameter `state_jump_max_rad_s`; 0 for no limit.
pub fn state_jump_max_rad_s(params: &Params) -> f64 {
    params.double("state_jump_max_rad_s")
}

/// The parameter `trajectory_lead_ms`, nanoseconds.
pub fn trajectory_lead_ns(params: &Params) -> i64 {
    params.integer("trajectory_lead_ms") * NANOSECONDS_PER_MS
}

/// The parameter `trajectory_stamp`.
pub fn trajectory_start(params: &Params) -> Start {
    match params.text("trajectory_stamp") {
        "zero" => Start::Publication,
        _ => Start::Observation,
    }
}

impl Settings {
    /// Checks the parameters against each other and against the robot; `params` has its parameters declared.
    ///
    /// # Errors
    /// Every parameter that does not fit the robot.
    pub fn new(params: &Params, embodiment: &Embodiment) -> Result<Self, ParamErrors> {
        let mut errors = Vec::new();
        let cameras = cameras::cameras(params, embodiment, &mut errors);
        let states::Sources { states, transforms } =
            states::sources(params, embodiment, &mut errors);
        let action_joints = actions::action_joints(params, embodiment, &mut errors);
        let poses = poses::poses(params, embodiment, &states, &transforms, &mut errors);
        let dt_ns = (NANOSECONDS_PER_S / params.double("action_rate_hz")).round() as i64;
        let period_ns = period_ns(params, embodiment, dt_ns, &mut errors);
        let guard = limits::guard(params, embodiment, &states, &action_joints, &mut errors);
        if !errors.is_empty() {
            return Err(ParamErrors(errors));
        }
        Ok(Self {
            cameras,
            states,
            transforms,
            action_joints,
            poses,
            guard,
            frame_deltas: embodiment.frame_deltas.clone(),
            dt_ns,
            period_ns,
            timeline: if params.text("timeline") == "receive" {
                Timeline::Receive
            } else {
                Timeline::Stamp
            },
        })
    }

    /// Writes every topic in full. Remappings are rcl's.
    pub fn resolve_topics(&mut self, remaps: &Remaps) {
        let topics = self.cameras.iter_mut().map(|camera| &mut camera.topic);
        for topic in topics.chain(self.states.iter_mut().map(|state| &mut state.topic)) {
            *topic = remaps.resolved(topic);
        }
    }

    /// What the history has to keep.
    pub fn inputs(&self) -> Inputs {
        let camera = |camera: &CameraSettings| CameraInput {
            key: camera.key.clone(),
            topic: camera.topic.clone(),
        };
        let state = |state: &StateSettings| StateInput {
            topic: state.topic.clone(),
            groups: state.reader.groups().into_iter().map(str::to_owned).collect(),
            joints: state.reader.positions(),
            stamped: state.reader.stamped(),
        };
        Inputs {
            cameras: self.cameras.iter().map(camera).collect(),
            states: self.states.iter().map(state).collect(),
            frame_deltas: self.frame_deltas.clone(),
            step_ns: self.dt_ns,
        }
    }
}

/// Of `execute_steps`, or else of `rate_hz`.
fn period_ns(
    params: &Params,
    embodiment: &Embodiment,
    dt_ns: i64,
    errors: &mut Vec<ParamError>,
) -> Option<i64> {
    let steps = params.integer("execute_steps");
    let horizon = embodiment.horizon;
    if steps > horizon as i64 {
        let reason = format!("is {steps}; a chunk of '{}' has {horizon} rows", embodiment.tag);
        errors.push(unusable("execute_steps".to_owned(), reason));
    }
    let rate_hz = params.double("rate_hz");
    match steps {
        1.. => Some(steps.saturating_mul(dt_ns)),
        _ if rate_hz > 0.0 => Some((NANOSECONDS_PER_S / rate_hz) as i64),
        _ => None,
    }
}

fn unusable(name: String, reason: impl Into<String>) -> ParamError {
    ParamError::Unusable { name, reason: reason.into() }
}

#[cfg(test)]
mod tests;
