//! The ROS 2 node and the tools beside it on the topics.

#[cfg(feature = "ros")]
pub mod play;
#[cfg(feature = "ros")]
mod session;
#[cfg(feature = "ros")]
mod view;
#[cfg(feature = "ros")]
pub mod watch;
