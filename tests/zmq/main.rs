//! The policy server of GR00T's clients: what Python's packages write, what clients ask, and what a socket has to bear.

mod abuse;
mod arrays;
mod asks;
mod client;
mod commands;
mod errors;
mod messages;
mod policies;
mod python;
mod rig;
mod server;
mod stored;
mod stub;
