//! `~/set_instruction` and `~/get_contract`.

use std::sync::Arc;

use r2r::Node;
use r2r::gr00t_blackhole::msg::{
    ActionGroupSpec as ActionMessage, CameraSpec, Contract, StateGroupSpec as StateMessage,
};
use r2r::gr00t_blackhole::srv::{GetContract, SetInstruction};

use super::core::Core;
use super::instruction::INSTRUCTION;
use super::param_services::{ParamChanges, Task, answer};
use super::params::Value;
use super::publish::representation_number;
use super::representation;
use super::requests::service;
use super::runtime::{Shared, locked};
use super::sensors::transform_name;
use super::settings::{self, Settings};
use super::spin::NodeHandle;
use super::state::StateReader;
use super::state::pose::PoseLayout;
use crate::contract::{ActionGroupSpec, ActionReference, FRAME_SIDE, PoseFormat, StateGroupSpec};
use crate::decode;
use crate::words::names;

const MS_PER_S: f64 = 1e3;
const NS_PER_S: f64 = 1e9;

const FROM_JOINT_STATE: u8 = StateMessage::JOINT_STATE as u8;
const FROM_POSE: u8 = StateMessage::POSE as u8;
const FROM_TRANSFORM: u8 = StateMessage::TF as u8;
const FROM_FLOAT: u8 = StateMessage::FLOAT as u8;
const FROM_COLUMNS: u8 = StateMessage::FLOAT_ARRAY as u8;

/// What a service says that needs a policy.
const NOT_CONFIGURED: &str =
    "no policy is configured; configure the node first (`ros2 lifecycle set NODE configure`)";

/// Creates the services.
///
/// # Errors
/// What rcl reports.
pub fn serve(
    node: &mut Node,
    spinner: &NodeHandle,
    core: &Arc<Core>,
    changes: &Arc<ParamChanges>,
) -> r2r::Result<Vec<Task>> {
    let instructions = service::<SetInstruction::Service>(node, spinner, "~/set_instruction")?;
    let contracts = service::<GetContract::Service>(node, spinner, "~/get_contract")?;
    let (known, changes) = (core.clone(), changes.clone());
    let set = move |request: &SetInstruction::Request| set_instruction(&known, &changes, request);
    let known = core.clone();
    let get = move |request: &GetContract::Request| get_contract(&known, request);
    Ok(vec![Box::pin(answer(instructions, set)), Box::pin(answer(contracts, get))])
}

/// Changes the instruction from the next prediction on.
fn set_instruction(
    core: &Core,
    changes: &ParamChanges,
    request: &SetInstruction::Request,
) -> SetInstruction::Response {
    let checked = match core.configured() {
        None => Err(NOT_CONFIGURED.to_owned()),
        Some(shared) => {
            (shared.instruction_check)(&request.instruction).map_err(|error| error.to_string())
        }
    };
    let refused = checked.and_then(|()| {
        let change = (INSTRUCTION.to_owned(), Value::Text(request.instruction.clone()));
        changes.set_checked(vec![change]).map_err(|error| error.to_string())
    });
    SetInstruction::Response {
        success: refused.is_ok(),
        message: refused.err().unwrap_or_default(),
        instruction: locked(&core.params).text(INSTRUCTION).to_owned(),
    }
}

/// What the node expects and answers.
fn get_contract(core: &Core, request: &GetContract::Request) -> GetContract::Response {
    let Some(shared) = core.configured() else {
        let message = NOT_CONFIGURED.to_owned();
        return GetContract::Response { success: false, message, ..Default::default() };
    };
    let shared = &*shared;
    let tag = &shared.embodiment.tag;
    if !request.embodiment.is_empty() && request.embodiment != *tag {
        let message = format!(
            "this node serves '{tag}'; the checkpoint serves {}, each in a node of its own",
            names(&shared.served)
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
        snapshot: shared.snapshot.display().to_string(),
        backend: shared.backend.clone(),
        embodiment: embodiment.tag.clone(),
        slot: embodiment.slot as u32,
        embodiments: shared.served.clone(),
        language_key: embodiment.language_key.clone(),
        instruction: params.text(INSTRUCTION).to_owned(),
        seed: settings::seed(&params, shared.version),
        noise_rows,
        noise_columns,
        horizon: embodiment.horizon as u32,
        dt: settings.dt_ns as f64 / NS_PER_S,
        rate: settings.period_ns.map_or(0.0, |period_ns| NS_PER_S / period_ns as f64),
        cameras: cameras(shared, params.integer("camera_max_age_ms") as f64 / MS_PER_S),
        state: states(shared, params.integer("state_max_age_ms") as f64 / MS_PER_S),
        action: embodiment.action.iter().map(|group| action(shared, group)).collect(),
    }
}

fn cameras(shared: &Shared, max_age: f64) -> Vec<CameraSpec> {
    // Least and largest.
    let aspect_ratios = shared.frame_shapes.aspect_ratios().map(Vec::from).unwrap_or_default();
    let cameras = shared.settings.cameras.iter();
    let spec = cameras.map(|camera| CameraSpec {
        key: camera.key.clone(),
        topic: camera.topic.clone(),
        message_type: camera.transport.message_type().to_owned(),
        frame_deltas: shared.embodiment.frame_deltas.clone(),
        step: shared.settings.dt_ns as f64 / NS_PER_S,
        min_side: *FRAME_SIDE.start(),
        max_side: *FRAME_SIDE.end(),
        aspect_ratios: aspect_ratios.clone(),
        max_age,
    });
    spec.collect()
}

fn states(shared: &Shared, max_age: f64) -> Vec<StateMessage> {
    let spec = |group: &StateGroupSpec| {
        let bounds = group.encoding.bounds();
        StateMessage {
            name: group.name.clone(),
            dim: group.dim as u32,
            encoding: group.encoding.name().to_owned(),
            min: bounds.map(|(min, _)| min.clone()).unwrap_or_default(),
            max: bounds.map(|(_, max)| max.clone()).unwrap_or_default(),
            max_age,
            ..source(&shared.settings, &group.name)
        }
    };
    shared.embodiment.state.iter().map(spec).collect()
}

/// Where a state group comes from: `representation`, `source`, `topic`, `names` and the ranges of the message.
fn source(settings: &Settings, group: &str) -> StateMessage {
    if let Some(wanted) = settings.transforms.iter().find(|wanted| wanted.group == group) {
        return StateMessage {
            representation: layout_number(wanted.layout),
            source: FROM_TRANSFORM,
            topic: transform_name(wanted),
            ..Default::default()
        };
    }
    let Some(state) = settings.states.iter().find(|state| state.reader.groups().contains(&group))
    else {
        return StateMessage::default();
    };
    let map = state.reader.map(group);
    let (representation, source, names) = match &state.reader {
        StateReader::Joints { joints, .. } => {
            let unmapped = map.map_or(representation::JOINT_POSITION, |_| representation::VALUE);
            (unmapped, FROM_JOINT_STATE, joints.joints(group).to_vec())
        }
        StateReader::Pose { layout, .. } => (layout_number(*layout), FROM_POSE, Vec::new()),
        StateReader::Float64 { .. } => (representation::VALUE, FROM_FLOAT, Vec::new()),
        StateReader::Columns { columns, .. } => {
            (representation::VALUE, FROM_COLUMNS, columns.columns().to_vec())
        }
    };
    StateMessage {
        representation,
        source,
        topic: state.topic.clone(),
        names,
        source_range: map.map(|map| map.from().to_vec()).unwrap_or_default(),
        model_range: map.map(|map| map.to().to_vec()).unwrap_or_default(),
        ..Default::default()
    }
}

/// The message's number of a layout; its quaternions are x, y, z, w, so that another order is plain values.
fn layout_number(layout: PoseLayout) -> u8 {
    match layout {
        PoseLayout::Pose(PoseFormat::Rot6d) => representation::POSE_ROT6D,
        PoseLayout::Pose(PoseFormat::Rotvec) => representation::POSE_ROTVEC,
        PoseLayout::Pose(PoseFormat::Matrix) => representation::POSE_MATRIX,
        PoseLayout::Position => representation::POSITION,
        PoseLayout::QuaternionXyzw => representation::ROTATION_QUATERNION,
        PoseLayout::QuaternionWxyz => representation::VALUE,
        PoseLayout::Rotvec => representation::ROTATION_ROTVEC,
        PoseLayout::Rot6d => representation::ROTATION_ROT6D,
        PoseLayout::RotationMatrix => representation::ROTATION_MATRIX,
    }
}

fn action(shared: &Shared, group: &ActionGroupSpec) -> ActionMessage {
    let joints = shared.settings.action_joints.iter().find(|moved| moved.group == group.name);
    let bounds = group.normalization.bounds();
    let relative_to = match &group.reference {
        ActionReference::RelativeJoint { state_group }
        | ActionReference::RelativePose { state_group, .. } => state_group.clone(),
        ActionReference::Absolute | ActionReference::Delta => String::new(),
    };
    ActionMessage {
        name: group.name.clone(),
        dim: group.dim as u32,
        representation: representation_number(decode::representation(group), joints),
        relative_to,
        joint_names: joints.map(|moved| moved.joints.clone()).unwrap_or_default(),
        columns: Vec::new(),
        normalization: group.normalization.name().to_owned(),
        min: bounds.map(|(min, _)| min.clone()).unwrap_or_default(),
        max: bounds.map(|(_, max)| max.clone()).unwrap_or_default(),
    }
}
