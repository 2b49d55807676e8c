//! The card's numbers: tiles against those that the `ttnn` wheel makes on the host, predictions against NVIDIA's own
//! outputs, and the commands that give them.

mod command;
#[path = "../common/mod.rs"]
mod common;
mod predictions;
mod properties;
mod wheel;
