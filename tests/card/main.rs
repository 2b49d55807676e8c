//! The card's numbers: tiles against those that the `ttnn` wheel makes on the host, and predictions against NVIDIA's own
//! outputs.

#[path = "../common/mod.rs"]
mod common;
mod predictions;
mod properties;
mod wheel;
