//! The limits that readings have to keep for a policy to see them.

/// What keeps readings that have come from being shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gates {
    /// Age by stamp beyond which a frame is stale.
    pub camera_max_age_ns: i64,
    /// Age by stamp beyond which a state is stale.
    pub state_max_age_ns: i64,
    /// How far apart the newest frames of two cameras may be; 0 for any distance.
    pub camera_skew_max_ns: i64,
    /// A camera is frozen when it has sent the same picture again so many times in a row; 0 for never.
    pub frozen_camera_frames: u64,
    /// How many publishers a topic of states may have; 0 for any number.
    pub state_publishers_max: usize,
}

impl Gates {
    /// Gates that let everything pass.
    pub const OPEN: Gates = Gates {
        camera_max_age_ns: i64::MAX,
        state_max_age_ns: i64::MAX,
        camera_skew_max_ns: 0,
        frozen_camera_frames: 0,
        state_publishers_max: 0,
    };
}
