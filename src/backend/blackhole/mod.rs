//! The Tenstorrent Blackhole card.

pub mod cost;
pub mod numerics;
