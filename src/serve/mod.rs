//! The policy for those who are not on ROS: one engine that owns it, and the servers in front of it.
//!
//! Fields, routes and answers of the HTTP server are those of the public serving documents of GR00T on Blackhole; the
//! engine knows nothing of HTTP, so that every server queues on the same one.

mod accept;
pub mod arrays;
pub mod bench;
pub mod client;
pub mod engine;
pub mod environment;
pub mod http;
mod model;
mod room;
pub mod run;
mod seats;
pub mod smoke;
pub mod times;
mod token;
pub mod zmq;

pub use model::{Demo, Model, ModelError, ModelOptions, check_layout, documented_robot};
pub use token::Token;
