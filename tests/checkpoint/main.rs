//! Checkpoints as a whole: golden ones, synthetic ones, and damaged ones.

mod damaged;
mod embodiments;
mod golden;
mod hub;
mod n17;
mod settings;
mod support;
mod synthetic;
