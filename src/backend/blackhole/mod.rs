//! The Tenstorrent Blackhole card.

pub mod core_map;
pub mod cost;
pub mod grid;
pub mod lowered;
pub mod numerics;
