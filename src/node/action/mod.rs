//! The action server `~/predict_chunk`.
//!
//! It is our own: the one in r2r 0.9.7 never expires goals, reads freed memory for unknown ones and cannot cancel.

pub mod goal;
pub mod goals;
