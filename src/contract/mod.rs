//! Plain data that every part of the crate speaks: what goes into a policy and what comes out.

mod chunk;
mod embodiment;
mod letterbox;
mod observation;
mod options;
mod state;
mod version;

pub use chunk::{ActionChunk, ActionGroup, Representation, StageTimings};
pub use embodiment::{
    ActionGroupSpec, ActionNormalization, ActionReference, Embodiment, PoseFormat, StateEncoding,
    StateGroupSpec, has_no_range,
};
pub use letterbox::Letterbox;
pub use observation::{FRAME_SIDE, Frame, FrameError, Observation};
pub use options::{CancelToken, Noise, PredictOptions, TapSink};
pub use state::{StateError, state_group};
pub use version::Version;
