//! The arena: the weights of the card as one file.

mod geometry;
mod hoist;
mod properties;
mod report;
mod rig;
mod stored;
mod values;
