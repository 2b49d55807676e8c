//! The frames of an observation, checked against the embodiment and put in the order in which the model sees them.

use std::sync::Arc;

use super::EncodeError;
use crate::contract::{Embodiment, Frame, Observation};

/// A frame and the number of its camera in the embodiment's list.
#[derive(Clone, Copy, Debug)]
pub struct CameraFrame<'a> {
    pub camera: usize,
    pub frame: &'a Arc<Frame>,
}

/// All frames time-major: for every frame delta, every camera in the embodiment's order.
///
/// # Errors
/// A camera that is missing or unknown, or another number of frames than the embodiment has deltas.
pub fn time_major<'a>(
    embodiment: &Embodiment,
    observation: &'a Observation,
) -> Result<Vec<CameraFrame<'a>>, EncodeError> {
    let expected = embodiment.frame_deltas.len();
    for (camera, frames) in &observation.frames {
        if !embodiment.cameras.contains(camera) {
            return Err(EncodeError::UnknownCamera {
                camera: camera.clone(),
                expected: embodiment.cameras.clone(),
            });
        }
        if frames.len() != expected {
            return Err(EncodeError::FrameCount {
                camera: camera.clone(),
                expected,
                deltas: embodiment.frame_deltas.clone(),
                found: frames.len(),
            });
        }
    }
    let mut ordered = Vec::with_capacity(expected * embodiment.cameras.len());
    for time in 0..expected {
        for (camera, name) in embodiment.cameras.iter().enumerate() {
            let frames =
                observation.frames.get(name).ok_or_else(|| EncodeError::MissingCamera {
                    camera: name.clone(),
                    found: observation.frames.keys().cloned().collect(),
                })?;
            ordered.push(CameraFrame { camera, frame: &frames[time] });
        }
    }
    Ok(ordered)
}
