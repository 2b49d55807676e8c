//! A policy without a model.

use std::sync::{Arc, Mutex};

use gr00t_blackhole::contract::{
    ActionChunk, ActionGroup, ActionGroupSpec, ActionNormalization, ActionReference, Embodiment,
    Observation, PoseFormat, PredictOptions, Representation, StageTimings, StateEncoding,
    StateGroupSpec, Version,
};
use gr00t_blackhole::serve::zmq::Predict;

type Asked = Arc<Mutex<Vec<(Observation, PredictOptions)>>>;

/// Its chunks count up from 0 in steps of a quarter.
pub struct Stub {
    pub version: Version,
    pub embodiment: Embodiment,
    /// What it was asked.
    pub asked: Asked,
    /// Called before each answer.
    pub before: Box<dyn Fn() + Send>,
    pub refusal: Option<&'static str>,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(&'static str);

impl Default for Stub {
    fn default() -> Self {
        Self {
            version: Version::N16,
            embodiment: embodiment(),
            asked: Asked::default(),
            before: Box::new(|| {}),
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

impl Predict for Stub {
    type Error = Refusal;

    fn version(&self) -> Version {
        self.version
    }

    fn embodiment(&self) -> Embodiment {
        self.embodiment.clone()
    }

    fn predict(
        &mut self,
        observation: &Observation,
        options: &PredictOptions,
    ) -> Result<ActionChunk, Refusal> {
        (self.before)();
        self.asked.lock().unwrap().push((observation.clone(), options.clone()));
        if let Some(refusal) = self.refusal {
            return Err(Refusal(refusal));
        }
        let mut values = (0u16..).map(|i| f32::from(i) / 4.0);
        let horizon = self.embodiment.horizon;
        let groups = self.embodiment.action.iter().map(|group| ActionGroup {
            name: group.name.clone(),
            representation: Representation::Absolute,
            dim: group.dim,
            values: values.by_ref().take(horizon * group.dim).collect(),
        });
        Ok(ActionChunk {
            version: self.version,
            embodiment: self.embodiment.tag.clone(),
            instruction: observation.instruction.clone(),
            seed: None,
            stamp_ns: observation.stamp_ns,
            horizon,
            groups: groups.collect(),
            normalized: vec![],
            timings: StageTimings::default(),
        })
    }
}
