//! Cases in the repository's own test data: what an embodiment declares, a state, a prediction, and what NVIDIA's
//! processor makes of them.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::collections::BTreeMap;

use gr00t_blackhole::contract::{
    ActionGroupSpec, ActionNormalization, ActionReference, Embodiment, PoseFormat, StateEncoding,
    StateGroupSpec,
};
use serde::Deserialize;

use super::common::data;

/// One case of `tests/data/n16/cases.json`.
#[derive(Deserialize)]
pub struct Stored {
    pub id: String,
    tag: String,
    horizon: usize,
    state_groups: Vec<StateGroup>,
    action_groups: Vec<ActionGroup>,
    pub state: BTreeMap<String, Vec<f64>>,
    /// Without the zeros behind the embodiment's columns.
    pub state_normalized: Vec<f32>,
    /// `[horizon, columns of all action groups]`.
    pub prediction: Vec<f32>,
    /// Per group `[horizon, dim]`.
    pub actions: BTreeMap<String, Vec<f32>>,
}

#[derive(Deserialize)]
struct StateGroup {
    name: String,
    dim: usize,
    encoding: Statistics,
}

#[derive(Deserialize)]
struct ActionGroup {
    name: String,
    dim: usize,
    normalization: Statistics,
    rep: String,
    #[serde(rename = "type")]
    kind: String,
    format: String,
    state_key: String,
}

/// `first` is the minimum or mean, `second` the maximum or deviation.
#[derive(Deserialize)]
struct Statistics {
    kind: String,
    #[serde(default)]
    first: Vec<f64>,
    #[serde(default)]
    second: Vec<f64>,
}

impl Stored {
    pub fn all() -> Vec<Stored> {
        serde_json::from_slice(&std::fs::read(data("n16/cases.json")).unwrap()).unwrap()
    }

    pub fn embodiment(&self) -> Embodiment {
        Embodiment {
            tag: self.tag.clone(),
            slot: 0,
            cameras: vec![],
            frame_deltas: vec![0],
            state: self.state_groups.iter().map(StateGroup::spec).collect(),
            action: self.action_groups.iter().map(ActionGroup::spec).collect(),
            horizon: self.horizon,
            language_key: String::new(),
        }
    }
}

impl StateGroup {
    fn spec(&self) -> StateGroupSpec {
        let (first, second) = (self.encoding.first.clone(), self.encoding.second.clone());
        let encoding = match self.encoding.kind.as_str() {
            "sin_cos" => StateEncoding::SinCos,
            "mean_std" => StateEncoding::MeanStd { mean: first, std: second },
            "min_max" => StateEncoding::MinMax { min: first, max: second, clip: true },
            other => panic!("encoding {other}"),
        };
        StateGroupSpec { name: self.name.clone(), dim: self.dim, encoding }
    }
}

impl ActionGroup {
    fn spec(&self) -> ActionGroupSpec {
        let (first, second) = (self.normalization.first.clone(), self.normalization.second.clone());
        let normalization = match self.normalization.kind.as_str() {
            "min_max" => ActionNormalization::MinMax { min: first, max: second },
            "min_max_per_step" => ActionNormalization::MinMaxPerStep { min: first, max: second },
            "mean_std" => ActionNormalization::MeanStd { mean: first, std: second },
            other => panic!("normalization {other}"),
        };
        let state_group = self.state_key.clone();
        let reference = match (self.rep.as_str(), self.kind.as_str(), self.format.as_str()) {
            ("ABSOLUTE", ..) => ActionReference::Absolute,
            ("RELATIVE", "NON_EEF", _) => ActionReference::RelativeJoint { state_group },
            ("RELATIVE", "EEF", "XYZ_ROT6D") => {
                ActionReference::RelativePose { state_group, format: PoseFormat::Rot6d }
            }
            ("RELATIVE", "EEF", "XYZ_ROTVEC") => {
                ActionReference::RelativePose { state_group, format: PoseFormat::Rotvec }
            }
            other => panic!("action {other:?}"),
        };
        ActionGroupSpec {
            name: self.name.clone(),
            dim: self.dim,
            normalization,
            reference,
            pose: None,
        }
    }
}
