//! N1.5 end to end against NVIDIA's own outputs.

#[path = "../common/mod.rs"]
mod common;
mod data_configs;
mod encode;
mod network;
mod policy;
mod snapshot;
mod support;
