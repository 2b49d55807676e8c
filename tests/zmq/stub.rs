//! A policy without a model.

use std::sync::{Arc, Mutex, OnceLock};

use gr00t_blackhole::backend::BackendError;
use gr00t_blackhole::contract::{
    ActionChunk, ActionGroup, ActionGroupSpec, ActionNormalization, ActionReference, Embodiment,
    Observation, PoseFormat, PredictOptions, Representation, StageTimings, StateEncoding,
    StateGroupSpec, Version,
};
use gr00t_blackhole::policy::PolicyError;
use gr00t_blackhole::program::Layout;
use gr00t_blackhole::serve::Model;
use gr00t_blackhole::serve::engine::{Predict, Prediction};

use crate::rig::{model_options, snapshot};

/// What a policy was asked.
pub type Asked = Arc<Mutex<Vec<(Observation, PredictOptions)>>>;

/// Its chunks count up from 0 in steps of a quarter.
pub struct Stub {
    pub version: Version,
    pub embodiment: Embodiment,
    /// What it was asked.
    pub asked: Asked,
    /// Called before each answer.
    pub before: Box<dyn Fn(&PredictOptions) + Send>,
    pub refusal: Option<&'static str>,
}

impl Default for Stub {
    fn default() -> Self {
        Self {
            version: Version::N16,
            embodiment: embodiment(),
            asked: Asked::default(),
            before: Box::new(|_| {}),
            refusal: None,
        }
    }
}

/// A robot with one camera, an arm of three joints and a gripper.
pub fn embodiment() -> Embodiment {
    let bounds = |dim: usize| (vec![-1.0; dim], vec![1.0; dim]);
    let group = |name: &str, dim: usize| {
        let (min, max) = bounds(dim);
        let encoding = if dim == 1 {
            StateEncoding::MinMax { min, max, clip: true }
        } else {
            StateEncoding::SinCos
        };
        StateGroupSpec { name: name.to_owned(), dim, encoding }
    };
    let action = |name: &str, dim: usize, reference: ActionReference| {
        let (min, max) = bounds(dim);
        ActionGroupSpec {
            name: name.to_owned(),
            dim,
            normalization: ActionNormalization::MinMax { min, max },
            reference,
            pose: None::<PoseFormat>,
        }
    };
    let state_group = "left_arm".to_owned();
    Embodiment {
        tag: "made_up".to_owned(),
        slot: 3,
        cameras: vec!["ego_view".to_owned()],
        frame_deltas: vec![0],
        state: vec![group("left_arm", 3), group("gripper", 1)],
        action: vec![
            action("left_arm", 3, ActionReference::RelativeJoint { state_group }),
            action("gripper", 1, ActionReference::Absolute),
        ],
        horizon: 2,
        language_key: "annotation.human.action.task_description".to_owned(),
    }
}

impl Stub {
    /// What the servers know of it: a tiny policy's facts, but for its version and its robot.
    pub fn model(&self) -> Model {
        static TINY: OnceLock<Model> = OnceLock::new();
        let tiny = TINY.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let options = model_options(Version::N16, snapshot(Version::N16, folder.path()));
            Model::load(&options).unwrap().1
        });
        Model { version: self.version, embodiment: self.embodiment.clone(), ..tiny.clone() }
    }
}

impl Predict for Stub {
    fn predict(
        &mut self,
        observation: &Observation,
        options: &PredictOptions,
    ) -> Result<Prediction, PolicyError> {
        (self.before)(options);
        self.asked.lock().unwrap().push((observation.clone(), options.clone()));
        if let Some(refusal) = self.refusal {
            return Err(BackendError::Threads { reason: refusal.to_owned() }.into());
        }
        let mut values = (0u16..).map(|i| f32::from(i) / 4.0);
        let horizon = self.embodiment.horizon;
        let groups = self.embodiment.action.iter().map(|group| ActionGroup {
            name: group.name.clone(),
            representation: Representation::Absolute,
            dim: group.dim,
            values: values.by_ref().take(horizon * group.dim).collect(),
        });
        let chunk = ActionChunk {
            version: self.version,
            embodiment: self.embodiment.tag.clone(),
            instruction: observation.instruction.clone(),
            seed: None,
            stamp_ns: observation.stamp_ns,
            horizon,
            groups: groups.collect(),
            normalized: vec![],
            timings: StageTimings::default(),
        };
        let layout = Layout { tokens: 1, leading_tokens: 0, images: 1, grid: [1, 1] };
        Ok(Prediction { chunk, layout })
    }
}
