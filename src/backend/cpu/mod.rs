//! The CPU backend.

pub mod attention;
pub mod elementwise;
pub mod linear;
pub mod mat;
pub mod math;
pub mod norm;
