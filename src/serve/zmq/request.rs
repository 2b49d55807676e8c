//! From the bytes of a request to what it asks for.

use bytes::Bytes;
use tracing::debug;

use super::error::{ObservationError, RequestError};
use super::observation::Style;
use super::{modality, observation, reply};
use crate::contract::{Noise, Observation};
use crate::serve::Token;
use crate::serve::arrays::{Dialect, Map, Message, Value, decode};
use crate::serve::engine::{Engine, Place};

/// Who may ask for what.
pub struct Desk {
    pub engine: Engine,
    /// What every request must carry as `api_token`; `None`: nothing.
    pub token: Option<Token>,
    /// Whether a client may end the server.
    pub allow_kill: bool,
}

/// What has been read of a request.
pub struct Asked {
    /// In which the answer is written.
    pub dialect: Dialect,
    pub what: Result<What, RequestError>,
}

/// What a request asks for.
pub enum What {
    /// Something that is known already.
    Known(Value<'static>),
    Kill,
    Action(Box<Action>),
}

/// A prediction that has its place in the queue.
pub struct Action {
    pub place: Place,
    pub observation: Observation,
    pub noise: Noise,
    pub style: Style,
}

/// What a client can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Ping,
    GetAction,
    Reset,
    GetModalityConfig,
    Kill,
}

impl Endpoint {
    pub const ALL: [(&str, Endpoint); 5] = [
        ("ping", Endpoint::Ping),
        ("get_action", Endpoint::GetAction),
        ("reset", Endpoint::Reset),
        ("get_modality_config", Endpoint::GetModalityConfig),
        ("kill", Endpoint::Kill),
    ];

    fn of(request: &Map<'_>) -> Result<Self, RequestError> {
        let Some(value) = request.get("endpoint") else { return Ok(Endpoint::GetAction) };
        let name = value.as_text().ok_or(RequestError::EndpointKind { found: value.kind() })?;
        let known = Endpoint::ALL.iter().find(|(known, _)| *known == name);
        known.map(|(_, endpoint)| *endpoint).ok_or_else(|| {
            let name = name.chars().take(64).flat_map(char::escape_debug).collect();
            RequestError::UnknownEndpoint { name }
        })
    }
}

impl Desk {
    /// Reads a request; whatever is wrong with it stands in what comes out.
    pub fn read(&self, request: &Bytes) -> Asked {
        match decode(request) {
            Ok(Message { value, dialect }) => Asked {
                dialect: dialect.unwrap_or(Dialect::DEFAULT),
                what: self.what(&value, request),
            },
            Err(error) => Asked { dialect: Dialect::DEFAULT, what: Err(error.into()) },
        }
    }

    fn what(&self, request: &Value<'_>, message: &Bytes) -> Result<What, RequestError> {
        let request = request.as_map().ok_or(RequestError::NoMap { found: request.kind() })?;
        self.check_token(request)?;
        Ok(match Endpoint::of(request)? {
            Endpoint::Ping => What::Known(reply::status("Server is running")),
            Endpoint::Reset => What::Known(Value::Map(Map::default())),
            Endpoint::GetModalityConfig => {
                let model = self.engine.model()?;
                What::Known(modality::configs(model.version, &model.embodiment))
            }
            Endpoint::Kill if self.allow_kill => What::Kill,
            Endpoint::Kill => return Err(RequestError::KillOff),
            Endpoint::GetAction => match request.get("data") {
                Some(Value::Map(data)) => What::Action(Box::new(self.action(data, message)?)),
                None | Some(Value::Nil) => {
                    return Err(ObservationError::Shape { found: vec![] }.into());
                }
                Some(other) => return Err(RequestError::DataKind { found: other.kind() }),
            },
        })
    }

    fn check_token(&self, request: &Map<'_>) -> Result<(), RequestError> {
        let Some(token) = &self.token else { return Ok(()) };
        let given = request.get("api_token").and_then(Value::as_text).unwrap_or_default();
        if token.is(given.as_bytes()) { Ok(()) } else { Err(RequestError::Token) }
    }

    fn action(&self, data: &Map<'_>, message: &Bytes) -> Result<Action, RequestError> {
        let (observation, seed, enveloped) = match data.get("observation") {
            Some(Value::Map(observation)) => (observation, seed(data)?, true),
            Some(other) => return Err(ObservationError::Kind { found: other.kind() }.into()),
            None => (data, None, false),
        };
        let model = self.engine.model()?;
        // The place comes first: with a full queue, no observation is read.
        let place = self.engine.reserve()?;
        let (observation, style) =
            observation::read(observation, enveloped, &model.embodiment, message)?;
        debug!(?style, "get_action");
        let noise = Noise::Seed(seed.unwrap_or(model.default_seed));
        Ok(Action { place, observation, noise, style })
    }
}

/// `options.seed`, which only this server knows; it leaves other options alone, as the reference leaves all.
fn seed(data: &Map<'_>) -> Result<Option<u64>, RequestError> {
    let options = match data.get("options") {
        None | Some(Value::Nil) => return Ok(None),
        Some(Value::Map(options)) => options,
        Some(other) => return Err(RequestError::OptionsKind { found: other.kind() }),
    };
    match options.get("seed") {
        None | Some(Value::Nil) => Ok(None),
        Some(Value::Unsigned(seed)) => Ok(Some(*seed)),
        Some(Value::Negative(_)) => Err(RequestError::Seed { found: "a negative integer" }),
        Some(other) => Err(RequestError::Seed { found: other.kind() }),
    }
}
