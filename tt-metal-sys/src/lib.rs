//! The only door to tt-metal: a client of the **device worker**, a process that owns one card (or a simulator of one).
//!
//! What they say to each other is in `PROTOCOL.md`. Nothing of tt-metal is linked: a device that aborts, hangs or ends its
//! process costs the worker and becomes an [`Error`]; every request has a deadline.
//!
//! ```no_run
//! use tt_metal_sys::protocol::Place;
//! use tt_metal_sys::{Device, OpenOptions, WorkerCommand};
//!
//! # fn main() -> Result<(), tt_metal_sys::Error> {
//! let command = WorkerCommand::ttnn_wheel("/opt/ttnn/bin/python");
//! let mut device = Device::open(&command, &OpenOptions::default())?;
//! let buffer = device.allocate("weights", Place::Dram { page_bytes: 16384, pages: 512 })?;
//! device.upload(&buffer, 0, &vec![0; 16384 * 512])?;
//! device.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! A [`Supervisor`] starts a device again when it was lost, after pauses, and gives a [`Watchdog`]'s limit to what runs on it.
#![deny(unsafe_code)]

mod command;
mod connection;
mod deadlines;
mod device;
mod error;
mod holders;
mod link;
mod lock;
mod process;
pub mod protocol;
#[allow(unsafe_code, reason = "copies to and from memory that another process writes too")]
mod staging;
mod start;
mod supervisor;
#[cfg(test)]
mod testing;
mod transfer;
mod watchdog;

pub use command::{Expected, OpenOptions, TT_METAL_VERSION, WorkerCommand};
pub use deadlines::Deadlines;
pub use device::{Buffer, Device};
pub use error::{Error, Exit};
pub use protocol::{Opened, Refusal};
pub use supervisor::{BackOff, NotReady, Supervisor};
pub use watchdog::{Watchdog, WatchdogOptions};
