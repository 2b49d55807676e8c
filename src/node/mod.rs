//! The ROS 2 node: sensor topics in, action chunks out; and the tools beside it on the topics.

pub mod action;
#[cfg(any(feature = "ros", test))]
mod blame;
pub mod cause_counters;
pub mod compressed;
pub mod frames;
pub mod graph;
pub mod guard;
pub mod image;
pub mod instruction;
pub mod intake;
pub mod lifecycle;
pub mod messages;
pub mod nearest;
pub mod params;
pub mod poses;
pub mod qos;
pub mod remap;
pub mod rigid;
pub mod sensors;
pub mod settings;
pub mod state;
pub mod stats;
pub mod stop;
pub mod tf;
pub mod topics;
pub mod trajectory;

#[cfg(feature = "ros")]
pub mod arguments;
#[cfg(feature = "ros")]
mod core;
#[cfg(feature = "ros")]
mod debug_image;
pub mod diagnostics;
#[cfg(feature = "ros")]
mod engine;
#[cfg(feature = "ros")]
mod follower;
#[cfg(feature = "ros")]
mod guarded;
#[cfg(feature = "ros")]
mod inputs;
#[cfg(feature = "ros")]
mod model;
#[cfg(feature = "ros")]
mod monitor;
#[cfg(feature = "ros")]
mod param_services;
#[cfg(feature = "ros")]
pub mod play;
#[cfg(feature = "ros")]
mod publish;
#[cfg(feature = "ros")]
pub mod publish_bag;
#[cfg(feature = "ros")]
mod representation;
#[cfg(feature = "ros")]
mod requests;
#[cfg(feature = "ros")]
pub mod rosout;
#[cfg(feature = "ros")]
mod runtime;
#[cfg(feature = "ros")]
mod services;
#[cfg(feature = "ros")]
mod session;
#[cfg(feature = "ros")]
mod spin;
#[cfg(feature = "ros")]
pub mod start;
#[cfg(feature = "ros")]
mod subscriptions;
#[cfg(feature = "ros")]
mod timing;
#[cfg(feature = "ros")]
mod trajectories;
#[cfg(feature = "ros")]
mod view;
#[cfg(feature = "ros")]
pub mod watch;
pub mod worker;
