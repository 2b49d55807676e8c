//! The ROS 2 node: sensor topics in, action chunks out.

pub mod compressed;
pub mod image;
pub mod joints;
pub mod messages;
mod nearest;
pub mod params;
pub mod settings;
pub mod trajectory;
