//! An observation that any checkpoint accepts, to see a policy work before a robot depends on it.

use std::sync::Arc;

use crate::contract::{
    ActionReference, Embodiment, Frame, Observation, PoseFormat, StateEncoding, StateGroupSpec,
};

/// Frame sizes whose ratios of width to height cover what checkpoints are trained on.
pub const FRAME_SIZES: [[u32; 2]; 3] = [[256, 256], [640, 480], [640, 360]];

/// Grey level of every pixel.
const GREY: u8 = 128;

/// What is asked for where nothing else is known.
const INSTRUCTION: &str = "warm up";

/// Grey frames of `[width, height]`, and a state in the middle of what the checkpoint was trained on.
///
/// # Panics
/// A side that no frame can have.
pub fn observation(
    embodiment: &Embodiment,
    [width, height]: [u32; 2],
    instruction: Option<&str>,
) -> Observation {
    let pixels = vec![GREY; 3 * width as usize * height as usize];
    let frame = Arc::new(Frame::new(width, height, pixels).expect("a size of the list"));
    let frames = vec![frame; embodiment.frame_deltas.len()];
    let cameras = embodiment.cameras.iter().map(|camera| (camera.clone(), frames.clone()));
    let state =
        embodiment.state.iter().map(|group| (group.name.clone(), values(embodiment, group)));
    Observation {
        stamp_ns: 0,
        frames: cameras.collect(),
        state: state.collect(),
        instruction: instruction.unwrap_or(INSTRUCTION).to_owned(),
    }
}

fn values(embodiment: &Embodiment, group: &StateGroupSpec) -> Vec<f64> {
    if let Some(format) = composed_onto(embodiment, &group.name) {
        return identity(format);
    }
    match &group.encoding {
        StateEncoding::Double { rotation: Some(_), .. } => no_rotation(group.dim),
        encoding => match encoding.bounds() {
            Some((min, max)) => min.iter().zip(max).map(|(min, max)| (min + max) / 2.0).collect(),
            None => vec![0.0; group.dim],
        },
    }
}

/// The format of a state group that some action group is composed onto as a pose.
fn composed_onto(embodiment: &Embodiment, name: &str) -> Option<PoseFormat> {
    embodiment.action.iter().find_map(|group| match &group.reference {
        ActionReference::RelativePose { state_group, format } if state_group == name => {
            Some(*format)
        }
        _ => None,
    })
}

/// The pose of a frame in itself.
fn identity(format: PoseFormat) -> Vec<f64> {
    let rotation_at = match format {
        PoseFormat::Rot6d => &[3, 7][..],
        PoseFormat::Rotvec => &[],
        PoseFormat::Matrix => &[0, 5, 10, 15],
    };
    ones_at(format.dim(), rotation_at)
}

/// A rotation in the format that has so many values: quaternion, first two rows, matrix, vector or angles.
fn no_rotation(dim: usize) -> Vec<f64> {
    match dim {
        4 => ones_at(dim, &[0]),
        6 => ones_at(dim, &[0, 4]),
        9 => ones_at(dim, &[0, 4, 8]),
        _ => vec![0.0; dim],
    }
}

fn ones_at(dim: usize, places: &[usize]) -> Vec<f64> {
    let value = |place| if places.contains(&place) { 1.0 } else { 0.0 };
    (0..dim).map(value).collect()
}
