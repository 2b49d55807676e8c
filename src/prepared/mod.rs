//! Values that are computed from weights alone, kept on disk from one start to the next.
//!
//! An entry is named by a hash of everything that it depends on: the bytes of the weights that are read, the program, the
//! code that runs it, and the processor's vectors. So an entry is never stale; at worst it is not there. What is damaged is
//! computed again, and a cache that cannot be written costs nothing but the time that it would have saved.

mod cache;
mod file;
mod key;

pub use cache::{Cache, NO_CACHE, default_dir};
pub use key::{Key, key};

use std::collections::HashMap;

/// Values by name.
pub type Values = HashMap<String, Vec<f32>>;
