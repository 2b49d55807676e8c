//! The recordings that come with the package, made by their own generator, and how they are played.

mod camera;
pub mod droid;
mod generate;
pub mod gr1;
pub mod message;
mod motion;
pub mod playback;
mod scene;

pub use generate::{MakeRecordingArgs, Robot, run};
