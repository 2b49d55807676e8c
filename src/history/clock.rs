//! What time it is, and which stamps can be compared with it.

use crate::words::Number;

/// Steps back of the clock, between two calls, that come from calls overtaking each other.
pub(super) const CLOCK_SLACK_NS: i64 = 100_000_000;

/// The clock has jumped when it has gained more than this on the steady clock between two calls. Larger than what a
/// simulation that runs faster than life gains between two ticks.
pub(super) const FORWARD_JUMP_NS: i64 = 10_000_000_000;

/// A stamp further ahead of the clock than this is from another clock; less is the skew of two machines.
const MAX_AHEAD_NS: i64 = 500_000_000;

/// A stamp further behind the clock than this is from another clock, or from a recording.
const MAX_BEHIND_NS: i64 = 60_000_000_000;

/// A moment on both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The node's clock, the one that stamps are compared with: system time, or `/clock`. 0 before the first `/clock`.
    pub ros_ns: i64,
    /// A clock that only goes forward, from any start.
    pub steady_ns: i64,
}

/// Where the stamps of readings come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeline {
    /// The message header.
    Stamp,
    /// The time of receipt, for drivers whose stamps are of no use.
    Receive,
}

impl Timeline {
    /// The stamp of a reading.
    ///
    /// # Errors
    /// A header stamp that says nothing about the node's clock.
    pub fn stamp(self, stamp_ns: i64, at: Moment) -> Result<i64, Refused> {
        if self == Timeline::Receive {
            return Ok(at.ros_ns);
        }
        if stamp_ns == 0 {
            return Err(Refused::ZeroStamp);
        }
        let ahead_ns = stamp_ns.saturating_sub(at.ros_ns);
        if !(-MAX_BEHIND_NS..=MAX_AHEAD_NS).contains(&ahead_ns) {
            return Err(Refused::OtherClock { ahead_ns });
        }
        Ok(stamp_ns)
    }
}

/// A jump of the node's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockJump {
    /// Negative for a jump back.
    pub by_ns: i64,
}

/// Why a reading was not taken in.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refused {
    #[error("header.stamp is 0; have the driver stamp its messages, or set `timeline` to receive")]
    ZeroStamp,
    #[error(
        "header.stamp is {:.3} s {} the node's clock, so it comes from another clock; synchronise the clocks \
         (`use_sim_time` for a simulation or a recording), or set `timeline` to receive",
        seconds(ahead_ns.saturating_abs()),
        if *.ahead_ns > 0 { "ahead of" } else { "behind" }
    )]
    OtherClock { ahead_ns: i64 },
    #[error("its header.stamp, {} s, has been received before", seconds(*stamp_ns))]
    Repeated { stamp_ns: i64 },
    #[error("its header.stamp is {:.3} s older than that of a message received before", seconds(*behind_ns))]
    Late { behind_ns: i64 },
    #[error(
        "joint '{joint}' moved {:.3} rad in {in_s:.3} s, which is {:.1} rad/s; the limit is {} rad/s \
         (`state_jump_max_rad_s`)",
        Number(*.moved_rad), Number(moved_rad / in_s), Number(*.max_rad_s)
    )]
    Jumped { joint: String, moved_rad: f64, in_s: f64, max_rad_s: f64 },
    #[error("there is no input number {number}")]
    NoSuchInput { number: usize },
}

pub fn seconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / 1e9
}
