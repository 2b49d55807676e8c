//! Recordings of ROS 2 topics as rosbag2 writes them, read and written without ROS.
//!
//! [`BagReader`] opens a bag and merges the messages of its files in the order of time: `files` finds them, `storage` opens each as
//! `mcap` or `sqlite`, `messages` merges. What a bag holds is believed over what it says about itself, and every
//! disagreement is told.

mod error;
mod files;
pub mod limits;
mod mcap;
mod memory;
mod messages;
mod metadata;
mod note;
mod reader;
mod sqlite;
mod storage;
mod topic;
mod unpack;
mod writer;

pub use error::BagError;
pub use memory::Bag;
pub use messages::Messages;
pub use note::Note;
pub use reader::BagReader;
pub use topic::{BagMessage, CDR, Topic, is_latched};
pub use writer::{BagWriter, TopicId};
