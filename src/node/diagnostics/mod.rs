//! `/diagnostics`: how every input, the engine and the backend are, once a second.

pub mod device;
pub mod engine;
pub mod input;
#[cfg(feature = "ros")]
mod publisher;
#[cfg(feature = "ros")]
mod report;
pub mod status;

#[cfg(feature = "ros")]
pub use publisher::Diagnostics;
