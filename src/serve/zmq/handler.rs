//! From the bytes of a request to the bytes of its answer.

use blake3::Hash;
use tracing::{debug, warn};

use super::error::{ObservationError, RequestError};
use super::{modality, observation, reply};
use crate::contract::{ActionChunk, Embodiment, Noise, Observation, PredictOptions, Version};
use crate::policy::{Policy, PolicyError};
use crate::serve::arrays::{Dialect, Map, Message, Value, decode, encode};
use crate::throttle::{Throttle, WARNING_PERIOD, and_more};

/// Who predicts.
pub trait Predict {
    type Error: std::error::Error + Send + Sync + 'static;

    fn version(&self) -> Version;

    fn embodiment(&self) -> Embodiment;

    /// As [`Policy::predict`].
    fn predict(
        &mut self,
        observation: &Observation,
        options: &PredictOptions,
    ) -> Result<ActionChunk, Self::Error>;
}

impl Predict for Policy {
    type Error = PolicyError;

    fn version(&self) -> Version {
        Policy::version(self)
    }

    fn embodiment(&self) -> Embodiment {
        Policy::embodiment(self).clone()
    }

    fn predict(
        &mut self,
        observation: &Observation,
        options: &PredictOptions,
    ) -> Result<ActionChunk, PolicyError> {
        Policy::predict(self, observation, options)
    }
}

/// What clients may do.
#[derive(Clone, Default)]
pub struct Settings {
    /// What every request must carry as `api_token`; `None`: nothing.
    pub api_token: Option<String>,
    /// Whether a client may end the server.
    pub allow_kill: bool,
}

/// Answers requests, one after the other.
pub struct Handler<P> {
    policy: P,
    version: Version,
    embodiment: Embodiment,
    token: Option<Hash>,
    allow_kill: bool,
    killed: bool,
    warnings: Throttle,
}

/// What a client can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Ping,
    GetAction,
    Reset,
    GetModalityConfig,
    Kill,
}

impl Endpoint {
    pub(super) const ALL: [(&str, Endpoint); 5] = [
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

impl<P: Predict> Handler<P> {
    pub fn new(policy: P, settings: Settings) -> Self {
        Self {
            version: policy.version(),
            embodiment: policy.embodiment(),
            policy,
            token: settings.api_token.map(|token| blake3::hash(token.as_bytes())),
            allow_kill: settings.allow_kill,
            killed: false,
            warnings: Throttle::new(WARNING_PERIOD),
        }
    }

    /// Whether requests need a token.
    pub(super) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether a client has ended the server.
    pub fn is_killed(&self) -> bool {
        self.killed
    }

    /// Answers one request. Whatever is wrong with it, the answer says so.
    pub fn handle(&mut self, request: &[u8]) -> Vec<u8> {
        let decoded = decode(request).map_err(RequestError::from);
        let (dialect, answer) = match decoded {
            Ok(Message { value, dialect }) => {
                (dialect.unwrap_or(Dialect::DEFAULT), self.answer(&value))
            }
            Err(error) => (Dialect::DEFAULT, Err(error)),
        };
        let value = answer.unwrap_or_else(|error| {
            if let Some(held_back) = self.warnings.pass() {
                warn!("request refused: {error}{}", and_more(held_back));
            }
            reply::error(error.to_string())
        });
        encode(&value, dialect)
    }

    fn answer(&mut self, request: &Value<'_>) -> Result<Value<'static>, RequestError> {
        let request = request.as_map().ok_or(RequestError::NoMap { found: request.kind() })?;
        self.check_token(request)?;
        match Endpoint::of(request)? {
            Endpoint::Ping => Ok(reply::status("Server is running")),
            Endpoint::Reset => Ok(Value::Map(Map::default())),
            Endpoint::GetModalityConfig => Ok(modality::configs(self.version, &self.embodiment)),
            Endpoint::Kill if self.allow_kill => {
                self.killed = true;
                Ok(reply::status("Server is ending"))
            }
            Endpoint::Kill => Err(RequestError::KillOff),
            Endpoint::GetAction => match request.get("data") {
                Some(Value::Map(data)) => self.get_action(data),
                None | Some(Value::Nil) => Err(ObservationError::Shape { found: vec![] }.into()),
                Some(other) => Err(RequestError::DataKind { found: other.kind() }),
            },
        }
    }

    /// Compares hashes, which takes as long whatever the token is.
    fn check_token(&self, request: &Map<'_>) -> Result<(), RequestError> {
        let Some(expected) = self.token else { return Ok(()) };
        let given = request.get("api_token").and_then(Value::as_text).unwrap_or_default();
        if blake3::hash(given.as_bytes()) == expected { Ok(()) } else { Err(RequestError::Token) }
    }

    fn get_action(&mut self, data: &Map<'_>) -> Result<Value<'static>, RequestError> {
        let (observation, noise, enveloped) = match data.get("observation") {
            Some(Value::Map(observation)) => (observation, seed(data)?, true),
            Some(other) => return Err(ObservationError::Kind { found: other.kind() }.into()),
            None => (data, None, false),
        };
        let (observation, style) = observation::read(observation, enveloped, &self.embodiment)?;
        debug!(?style, "get_action");
        let options = PredictOptions { noise, ..PredictOptions::default() };
        let chunk = self
            .policy
            .predict(&observation, &options)
            .map_err(|error| RequestError::Predict(Box::new(error)))?;
        reply::actions(&chunk, style)
    }
}

/// The answer to a request that does not get as far as a handler.
pub(super) fn error_answer(text: String) -> Vec<u8> {
    encode(&reply::error(text), Dialect::DEFAULT)
}

/// `options.seed`, which only this server knows; it leaves other options alone, as the reference leaves all.
fn seed(data: &Map<'_>) -> Result<Option<Noise>, RequestError> {
    let options = match data.get("options") {
        None | Some(Value::Nil) => return Ok(None),
        Some(Value::Map(options)) => options,
        Some(other) => return Err(RequestError::OptionsKind { found: other.kind() }),
    };
    match options.get("seed") {
        None | Some(Value::Nil) => Ok(None),
        Some(Value::Unsigned(seed)) => Ok(Some(Noise::Seed(*seed))),
        Some(other) => Err(RequestError::Seed { found: other.kind() }),
    }
}
