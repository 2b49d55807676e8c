//! Programs for every instruction, and what the interpreter computes with them.

mod equality;
mod faults;
mod plans;
#[path = "../card_streams/tiny.rs"]
mod tiny;
