//! The policy for programs that are not on ROS.

pub mod arrays;
pub mod zmq;
