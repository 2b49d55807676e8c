//! Observation recordings: nothing of a prediction is lost in them, and chunks can be made again from them.

mod damaged;
mod recorder;
mod reproduced;
mod round_trip;
mod support;
