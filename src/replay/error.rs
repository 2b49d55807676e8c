//! Why a recording is not replayed.

use std::path::PathBuf;

use crate::bag::BagError;
use crate::node::params::ParamErrors;
use crate::policy::PolicyError;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Bag(#[from] BagError),
    #[error(transparent)]
    Params(#[from] ParamErrors),
    #[error(transparent)]
    Policy(Box<PolicyError>),
    /// The other policy of a comparison.
    #[error("--against: {0}")]
    Against(Box<PolicyError>),
    #[error("the recording has no messages with a time")]
    Empty,
    #[error(
        "a message of {topic} was received at {log_ns} ns, outside of the time from {start_ns} to {end_ns} ns that the recording says it covers"
    )]
    OutsideSpan { topic: String, log_ns: i64, start_ns: i64, end_ns: i64 },
    #[error(
        "the recording spans {days:.1} days, from {start_ns} to {end_ns} ns; up to {} are replayed, and one of its messages \
         has probably been dated wrongly",
        super::MAX_DAYS
    )]
    TooLong { days: f64, start_ns: i64, end_ns: i64 },
    #[error("{}", .0.join("\n"))]
    Topics(Vec<String>),
    /// What was asked for does not make sense.
    #[error("{0}")]
    Usage(String),
    #[error("--previous {name} is a run of {found}; this one is of {wanted}")]
    OtherRun { name: String, found: String, wanted: String },
    #[error("--previous {}: {problem}", path.display())]
    Previous { path: PathBuf, problem: String },
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: std::io::Error },
    #[error("cannot draw {}: {problem}", path.display())]
    Draw { path: PathBuf, problem: String },
}

impl From<PolicyError> for ReplayError {
    fn from(error: PolicyError) -> Self {
        ReplayError::Policy(Box::new(error))
    }
}

impl ReplayError {
    /// Whether arguments or parameters are to be mended, not the recording or the checkpoint.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            ReplayError::Params(_)
                | ReplayError::Topics(_)
                | ReplayError::Usage(_)
                | ReplayError::OtherRun { .. }
        )
    }
}
