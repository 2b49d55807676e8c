//! What is measured while the node runs. Nothing in here knows ROS.

mod commands;
mod input;
mod rate;
mod seams;
mod stamps;
mod window;

pub use commands::Commands;
pub use input::InputStats;
pub use seams::{Jump, Seam, Seams};
pub use window::{Spread, Window};
