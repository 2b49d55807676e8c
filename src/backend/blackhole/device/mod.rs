//! The card itself, or a simulator of it: the programs for traces, run by a device worker.
//!
//! For the layout of a request every stage is lowered to programs ([`trace`](super::trace)), whose streams are executed by the
//! kernels of `kernels/`. A session brings weights, constants and streams to the card's DRAM, runs every
//! program once, which compiles the kernels, and captures a trace of each stage. A request writes its inputs on the second
//! queue, replays the traces in turn, and reads the actions. Only the session's layout has traces, and a card allocates
//! nothing behind a capture: a request of another layout begins a new session, which takes seconds.

mod assets;
mod backend;
mod checks;
mod error;
mod image;
mod options;
mod program;
mod session;
mod status;
mod target;

pub use backend::DeviceBackend;
pub use error::DeviceError;
pub use options::{DeviceKind, DeviceOptions, PYTHON, SIMULATOR};
pub use status::{DeviceStatus, Loss, Phase, SessionFacts, StageFacts, StatusBoard};
