//! The Tenstorrent Blackhole card.

pub mod arena;
pub mod core_map;
pub mod cost;
pub mod device;
pub mod grid;
pub mod interpreter;
pub mod lower;
pub mod lowered;
pub mod numerics;
pub mod trace;
