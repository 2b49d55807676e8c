//! Chunks that a node published while the recording was made.

use crate::node::messages::RecordedChunk;

/// A recorded chunk, and when the recorder received it.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    pub log_ns: i64,
    pub chunk: RecordedChunk,
}

/// Whether these are the readings that a recorded chunk was predicted from.
pub fn same_readings(chunk: &RecordedChunk, readings: &[crate::history::Reading]) -> bool {
    let mut theirs: Vec<_> = chunk
        .ages
        .iter()
        .map(|reading| (reading.input.as_str(), reading.delta, reading.stamp_ns))
        .collect();
    let mut ours: Vec<_> = readings
        .iter()
        .map(|reading| (reading.input.as_str(), reading.delta, reading.stamp_ns))
        .collect();
    theirs.sort_unstable();
    ours.sort_unstable();
    theirs == ours
}
