//! The Tenstorrent Blackhole card.

pub mod core_map;
pub mod grid;
pub mod interpreter;
pub mod lowered;
pub mod numerics;
