//! The whole road from an observation to an action chunk.
