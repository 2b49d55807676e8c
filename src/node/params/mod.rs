//! The node's parameters: one table, from which ROS descriptors, help and the default configuration are made.

pub mod file;
mod store;
mod table;
mod text;
mod value;

pub use store::{ParamError, ParamErrors, Params};
pub use table::{Declared, Entry, Names, Scope, TABLE, TopicQos};
pub use text::{default_yaml, help};
pub use value::{Default, Kind, Range, Value};
