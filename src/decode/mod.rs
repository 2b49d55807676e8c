//! From the normalised chunk to physical actions.
