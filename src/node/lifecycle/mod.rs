//! The life of a managed node: `lifecycle_msgs` services around configure, activate, deactivate, cleanup, shutdown.

pub mod machine;
#[cfg(feature = "ros")]
mod manager;
#[cfg(feature = "ros")]
mod services;

#[cfg(feature = "ros")]
pub use manager::Manager;
#[cfg(feature = "ros")]
pub use services::Services;
