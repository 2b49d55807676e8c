//! NVIDIA GR00T vision-language-action policies: from one observation to one action chunk.
//!
//! The data takes one road, whoever asks: [`contract::Observation`] → [`encode`] → model input →
//! [`backend`] → normalised chunk → [`decode`] → [`contract::ActionChunk`]. [`policy`] walks it; the ROS 2
//! node, the command line and every other way in are adapters around it.

pub mod backend;
pub mod bag;
pub mod checkpoint;
pub mod cli;
pub mod contract;
mod correlation;
pub mod decode;
mod disk;
pub mod doctor;
pub mod encode;
pub mod fidelity;
pub mod golden;
pub mod history;
mod locked;
pub mod log;
pub mod node;
mod notify;
pub mod observation_file;
pub mod observations;
pub mod package;
mod page;
mod partial;
pub mod picture;
pub mod plan;
pub mod plot;
pub mod policy;
pub mod prepared;
pub mod program;
pub mod recording;
mod regular;
pub mod replay;
pub mod rotation;
pub mod serve;
mod throttle;
mod unique_keys;
pub mod weights;
mod whole;
mod words;
