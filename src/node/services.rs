//! `~/set_instruction` and `~/get_contract`.

use r2r::gr00t_blackhole::msg::{
    ActionGroupSpec as ActionMessage, CameraSpec, Contract, StateGroupSpec as StateMessage,
};
use r2r::gr00t_blackhole::srv::{GetContract, SetInstruction};
use tracing::info;

use super::params::Value;
use super::publish::representation_number;
use super::representation;
use super::runtime::{Shared, locked};
use super::settings::{self, Transport};
use crate::contract::{
    ActionGroupSpec, ActionNormalization, ActionReference, FRAME_SIDE, StateEncoding,
    StateGroupSpec,
};
use crate::decode;

const MS_PER_S: f64 = 1e3;
const NS_PER_S: f64 = 1e9;

const FROM_JOINT_STATE: u8 = StateMessage::JOINT_STATE as u8;
const FROM_NOTHING: u8 = StateMessage::NONE as u8;

/// Changes the instruction from the next prediction on.
pub fn set_instruction(
    shared: &Shared,
    request: &SetInstruction::Request,
) -> SetInstruction::Response {
    let mut params = locked(&shared.params);
    let refused = if request.instruction.trim().is_empty() {
        Some("the instruction is empty; say what the robot is to do".to_owned())
    } else {
        let change = ("instruction".to_owned(), Value::Text(request.instruction.clone()));
        params.set(vec![change]).err().map(|error| error.to_string())
    };
    let instruction = params.text("instruction").to_owned();
    if refused.is_none() {
        info!("instruction: {instruction}");
    }
    SetInstruction::Response {
        success: refused.is_none(),
        message: refused.unwrap_or_default(),
        instruction,
    }
}

/// What the node expects and answers.
pub fn get_contract(shared: &Shared, request: &GetContract::Request) -> GetContract::Response {
    let tag = &shared.embodiment.tag;
    if !request.embodiment.is_empty() && request.embodiment != *tag {
        let message = format!(
            "this node serves '{tag}'; the checkpoint also serves {:?}, each in a node of its own",
            shared.served
        );
        return GetContract::Response { success: false, message, ..Default::default() };
    }
    let contract = contract(shared);
    // Messages of numbers, texts and lists always have a JSON form.
    let json = serde_json::to_string_pretty(&contract).unwrap_or_default();
    GetContract::Response { success: true, message: String::new(), contract, json }
}

fn contract(shared: &Shared) -> Contract {
    let (settings, embodiment) = (&shared.settings, &shared.embodiment);
    let params = locked(&shared.params).clone();
    let [noise_rows, noise_columns] = shared.noise_shape.map(|size| size as u32);
    Contract {
        version: shared.version.name().to_owned(),
        snapshot: params.text("snapshot").to_owned(),
        backend: shared.backend.clone(),
        embodiment: embodiment.tag.clone(),
        slot: embodiment.slot as u32,
        embodiments: shared.served.clone(),
        language_key: embodiment.language_key.clone(),
        instruction: params.text("instruction").to_owned(),
        seed: settings::seed(&params, shared.version),
        noise_rows,
        noise_columns,
        horizon: embodiment.horizon as u32,
        dt: settings.dt_ns as f64 / NS_PER_S,
        rate: settings.rate_hz.unwrap_or(0.0),
        cameras: cameras(shared, params.integer("camera_max_age_ms") as f64 / MS_PER_S),
        state: states(shared, params.integer("state_max_age_ms") as f64 / MS_PER_S),
        action: embodiment.action.iter().map(|group| action(shared, group)).collect(),
    }
}

fn cameras(shared: &Shared, max_age: f64) -> Vec<CameraSpec> {
    let cameras = shared.settings.cameras.iter();
    let spec = cameras.map(|camera| CameraSpec {
        key: camera.key.clone(),
        topic: camera.topic.clone(),
        message_type: match camera.transport {
            Transport::Raw => "sensor_msgs/msg/Image".to_owned(),
            Transport::Compressed => "sensor_msgs/msg/CompressedImage".to_owned(),
        },
        frame_deltas: shared.embodiment.frame_deltas.clone(),
        step: shared.settings.dt_ns as f64 / NS_PER_S,
        min_side: *FRAME_SIDE.start(),
        max_side: *FRAME_SIDE.end(),
        aspect_ratios: Vec::new(),
        max_age,
    });
    spec.collect()
}

fn states(shared: &Shared, max_age: f64) -> Vec<StateMessage> {
    let params = locked(&shared.params);
    let spec = |group: &StateGroupSpec| {
        let source = shared
            .settings
            .states
            .iter()
            .find(|source| source.joints.groups().any(|g| g == group.name));
        let (encoding, bounds) = encoding(&group.encoding);
        StateMessage {
            name: group.name.clone(),
            dim: group.dim as u32,
            representation: representation::JOINT_POSITION,
            source: if source.is_some() { FROM_JOINT_STATE } else { FROM_NOTHING },
            topic: source.map(|source| source.topic.clone()).unwrap_or_default(),
            names: params.texts(&format!("state.{}.joints", group.name)).to_vec(),
            source_range: Vec::new(),
            model_range: Vec::new(),
            encoding: encoding.to_owned(),
            min: bounds.map(|(min, _)| min.clone()).unwrap_or_default(),
            max: bounds.map(|(_, max)| max.clone()).unwrap_or_default(),
            max_age,
        }
    };
    shared.embodiment.state.iter().map(spec).collect()
}

/// Lower and upper bounds.
type Bounds<'a> = Option<(&'a Vec<f64>, &'a Vec<f64>)>;

fn encoding(encoding: &StateEncoding) -> (&'static str, Bounds<'_>) {
    match encoding {
        StateEncoding::SinCos => ("sin_cos", None),
        StateEncoding::MeanStd { .. } => ("mean_std", None),
        StateEncoding::MinMax { min, max, .. } => ("min_max", Some((min, max))),
    }
}

fn action(shared: &Shared, group: &ActionGroupSpec) -> ActionMessage {
    let settings = shared.settings.action_joints.iter().find(|names| names.group == group.name);
    let joint_names = settings.map(|names| names.joints.clone()).unwrap_or_default();
    let (normalization, bounds) = match &group.normalization {
        ActionNormalization::MinMax { min, max } => ("min_max", Some((min, max))),
        ActionNormalization::MinMaxPerStep { min, max } => ("min_max_per_step", Some((min, max))),
        ActionNormalization::MeanStd { .. } => ("mean_std", None),
        ActionNormalization::MeanStdPerStep { .. } => ("mean_std_per_step", None),
    };
    let relative_to = match &group.reference {
        ActionReference::RelativeJoint { state_group }
        | ActionReference::RelativePose { state_group, .. } => state_group.clone(),
        ActionReference::Absolute | ActionReference::Delta => String::new(),
    };
    ActionMessage {
        name: group.name.clone(),
        dim: group.dim as u32,
        representation: representation_number(decode::representation(group), &joint_names),
        relative_to,
        joint_names,
        columns: Vec::new(),
        normalization: normalization.to_owned(),
        min: bounds.map(|(min, _)| min.clone()).unwrap_or_default(),
        max: bounds.map(|(_, max)| max.clone()).unwrap_or_default(),
    }
}
