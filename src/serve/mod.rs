//! The policy for those who are not on ROS: one engine that owns it, and the servers in front of it.
//!
//! Fields, routes and answers of the HTTP server are those of the public serving documents of GR00T on Blackhole; the
//! engine knows nothing of HTTP, so that every server queues on the same one.

pub mod engine;
pub mod http;
mod model;

pub use model::{Demo, Model, ModelError, ModelOptions};
