//! The only door to tt-metal: a client of the **device worker**, a process that owns one card (or a simulator of one).
//!
//! What they say to each other is in `PROTOCOL.md`. Nothing of tt-metal is linked: a device that aborts, hangs or ends its
//! process costs the worker and becomes an [`Error`]; every request has a deadline.

mod command;
mod connection;
mod deadlines;
mod device;
mod error;
mod link;
mod lock;
mod process;
pub mod protocol;
mod staging;
mod start;
mod supervisor;
mod transfer;
mod watchdog;

pub use command::{Expected, OpenOptions, TT_METAL_VERSION, WorkerCommand};
pub use deadlines::Deadlines;
pub use device::{Buffer, Device};
pub use error::{Error, Exit};
pub use protocol::{Opened, Refusal};
pub use supervisor::{BackOff, NotReady, Supervisor};
pub use watchdog::{Watchdog, WatchdogOptions};
