//! The policy server of GR00T's clients: what Python's packages write, what clients ask, and what a socket has to bear.

mod arrays;
mod client;
mod errors;
mod messages;
mod policies;
mod python;
mod server;
mod stored;
mod stub;
