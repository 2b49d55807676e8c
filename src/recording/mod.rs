//! Recordings: the one that comes with the package, made by its own generator, and the bags that hold such.

pub mod bag;
mod camera;
mod generate;
pub mod message;
mod motion;
pub mod playback;
mod scene;

pub use generate::{
    CAMERA_HZ, CAMERA_TOPIC, INSTRUCTION, JOINT_HZ, JOINT_TOPIC, MakeRecordingArgs, frame_at,
    joint_state_at, run,
};
