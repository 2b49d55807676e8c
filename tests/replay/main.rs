//! Replays of recordings that the tests make themselves: what a report says about them, and what it is held against.

mod command_line;
mod commands;
mod files;
mod hard_recording;
mod messages;
mod observations;
mod previous;
mod refusals;
mod rig;
