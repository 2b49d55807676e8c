//! What can be wrong with an observation recording.

use std::path::PathBuf;

use crate::bag::BagError;
use crate::recording::message::MessageError;

/// Why an observation recording, or one prediction of it, cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Bag(#[from] BagError),
    #[error(
        "{0} is no recording of observations: it has no gr00t_blackhole/msg/RecordedPrediction messages"
    )]
    NoRecording(PathBuf),
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error("the image {frame_id:?} is no recorded frame: {reason}")]
    Frame { frame_id: String, reason: String },
    #[error("the recording says version {0:?}; n15, n16 and n17 are known")]
    Version(String),
    #[error("the recording says representation {0:?}, which is not known")]
    Representation(String),
    #[error("the recording is of {recorded}, and the policy is {loaded}; load the recorded one")]
    OtherPolicy { recorded: String, loaded: String },
    #[error("prediction {prediction}: frame {number} of {camera} is not in the recording")]
    MissingFrame { prediction: u64, camera: String, number: u64 },
}

impl RecordError {
    /// Whether the predictions behind this one can be read all the same.
    pub fn is_of_one_prediction(&self) -> bool {
        matches!(self, RecordError::MissingFrame { .. })
    }
}
