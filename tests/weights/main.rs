//! Released checkpoints: fetched from a small hub on this machine, verified, locked, and found at start.

mod commands;
mod faults;
mod fetching;
mod python;
mod released;
mod server;
mod support;
mod verifying;
