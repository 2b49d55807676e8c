//! Why a request gets an error for an answer.

use super::request::Endpoint;
use crate::contract::FrameError;
use crate::serve::arrays::{ArrayError, DecodeError};
use crate::serve::engine::EngineError;
use crate::words::names;

/// Why a request is not answered with what it asks for.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("the request is {found}; accepted: a map with 'endpoint' and 'data'")]
    NoMap { found: &'static str },
    // The words of NVIDIA's server, which clients look for.
    #[error("Unauthorized: Invalid API token; give the server's token as 'api_token'")]
    Token,
    #[error("'endpoint' is {found}; accepted: a string")]
    EndpointKind { found: &'static str },
    #[error("Unknown endpoint: '{name}'; this server has {}", names(&Endpoint::ALL.map(|(name, _)| name)))]
    UnknownEndpoint { name: String },
    #[error("'kill' is off: whoever runs the server has not allowed clients to end it")]
    KillOff,
    #[error("'data' is {found}; accepted: a map")]
    DataKind { found: &'static str },
    #[error("'options' is {found}; accepted: a map, or nothing")]
    OptionsKind { found: &'static str },
    #[error("'options.seed' is {found}; accepted: an integer from 0 up")]
    Seed { found: &'static str },
    #[error(transparent)]
    Observation(#[from] ObservationError),
    /// What the policy or its queue says.
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error("the request could not be read, by a fault of this server: {reason}")]
    Reader { reason: String },
    #[error("a chunk cannot be sent: action group '{group}': {error}")]
    Chunk { group: String, error: ArrayError },
}

/// Why a request's data is no observation of the embodiment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObservationError {
    #[error("'observation' is {found}; accepted: a map")]
    Kind { found: &'static str },
    #[error(
        "the request has no observation: its keys are {}; accepted: 'video.CAMERA', 'state.GROUP' and \
         'annotation...' side by side, or maps 'video', 'state' and 'language'",
        names(.found)
    )]
    Shape { found: Vec<String> },
    #[error("'{modality}' is {found}; accepted: a map")]
    Modality { modality: &'static str, found: &'static str },
    #[error("'{key}' is missing; the observation has {}", names(.found))]
    Missing { key: String, found: Vec<String> },
    #[error("'{key}' is {found}; accepted: an array, in a dialect that this server knows")]
    NoArray { key: String, found: &'static str },
    #[error("'{key}' has elements of '{found}'; accepted: {accepted}")]
    Dtype { key: String, found: String, accepted: &'static str },
    #[error(
        "'{key}' has the shape {found:?}; accepted: {accepted}, or with a batch axis of 1 before it"
    )]
    Axes { key: String, found: Vec<usize>, accepted: &'static str },
    #[error(
        "'{key}' has a batch of {found}; this server predicts for one robot at a time: send a batch of 1, one \
         request after the other"
    )]
    Batch { key: String, found: usize },
    #[error(
        "'{key}' has {} batch axis, unlike the arrays before it; give all of them one, or none",
        if *batched { "a" } else { "no" }
    )]
    MixedBatch { key: String, batched: bool },
    #[error("'{key}' has {found} times; accepted: one, that of the observation")]
    Times { key: String, found: usize },
    #[error("'{key}': {error}")]
    Frame { key: String, error: FrameError },
    #[error(
        "the instruction is missing: give it as '{expected}'; the observation has {}",
        names(.found)
    )]
    NoInstruction { expected: String, found: Vec<String> },
    #[error("there are several instructions, {}, but none is '{expected}'", names(.found))]
    Instructions { expected: String, found: Vec<String> },
    #[error(
        "the instruction '{key}' is {found}; accepted: a string, or lists with a single string inside"
    )]
    InstructionKind { key: String, found: String },
}
