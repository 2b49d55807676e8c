//! What is measured while the node runs. Nothing in here knows ROS.

mod commands;
mod engine;
mod input;
mod rate;
mod seams;
mod stamps;
mod window;

pub use commands::Commands;
pub use engine::{ChunkTimes, EngineStats, FailureKind};
pub use input::InputStats;
pub use seams::{GroupSeam, Jump, Run, Seam, Seams};
pub use window::{Spread, Window};
