//! The Tenstorrent Blackhole card.

pub mod numerics;
