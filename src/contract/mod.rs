//! Plain data that every part of the crate speaks: what goes into a policy and what comes out.

mod chunk;
mod embodiment;
mod letterbox;
mod observation;
mod options;
mod rotation;
mod state;
mod version;

pub use chunk::{ActionChunk, ActionGroup, Representation, StageTimings};
pub use embodiment::{
    ActionGroupSpec, ActionNormalization, ActionReference, ActionScaling, Embodiment, PoseFormat,
    StateEncoding, StateGroupSpec, StateScaling, has_no_range,
};
pub use letterbox::Letterbox;
pub use observation::{FRAME_SIDE, Frame, FrameError, Observation};
pub use options::{CancelToken, Noise, PredictOptions, Progress, TapSink};
pub use rotation::{EulerOrder, RotationFormat};
pub use state::{StateError, checked_state_group, state_group};
pub use version::Version;
