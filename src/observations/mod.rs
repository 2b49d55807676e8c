//! Recordings of what a policy saw, felt, and answered, from which every chunk can be made again.
//!
//! Such a recording is a bag: the frames as `sensor_msgs/Image`, each once, and a `gr00t_blackhole/RecordedPrediction` for every
//! prediction, which names its frames and holds all else. So ROS tools and Foxglove open it. [`Recorder`] writes one
//! beside a policy that it never delays, [`Recording`] reads it, [`reproduce`] predicts again and compares.

mod error;
mod file;
mod kept;
mod message;
mod reader;
mod recorder;
mod reproduce;

pub use error::RecordError;
pub use file::Identity;
pub use reader::{Predictions, Recorded, Recording};
pub use recorder::{Counts, Recorder, free_directory};
pub use reproduce::{Difference, Reproduction, Summary, reproduce, reproduce_all};

/// Frames of a camera that a prediction may refer to, counted from the newest one that was recorded. A frame that is used
/// again after more than so many others is recorded again.
pub const KEPT_FRAMES: usize = 32;
