//! The HTTP server over real sockets, with tiny synthetic checkpoints.

mod abuse;
mod commands;
mod documents;
mod equal;
mod queue;
mod rig;
mod routes;
mod schemathesis;
mod service;
