//! A client of the HTTP server, for the commands that look at one.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use ureq::{Agent, RequestBuilder};

/// Longest wait for an answer; a prediction of a full network on a CPU takes seconds.
const ANSWER_LIMIT: Duration = Duration::from_secs(300);
/// Between two looks at a server that is starting.
const HEALTH_PERIOD: Duration = Duration::from_millis(200);
/// Largest answer that is read: a demonstration with many pictures has megabytes.
const MAX_ANSWER_BYTES: u64 = 256 << 20;

/// Why a server does not answer as it should.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{url}: {source}")]
    Unreachable { url: String, source: Box<ureq::Error> },
    #[error("{url}: status {status}: {text}")]
    Status { url: String, status: u16, text: String },
    #[error("{url}: the answer is no JSON: {source}")]
    NoJson { url: String, source: serde_json::Error },
    #[error("{url}: not ready within {:.0} s: {last}; see the server's log", wait.as_secs_f64())]
    NotReady { url: String, wait: Duration, last: String },
}

/// A server at an address.
pub struct Client {
    agent: Agent,
    url: String,
    token: Option<String>,
}

/// An answer and the time until its last byte was there.
pub struct Timed {
    pub answer: Value,
    pub wall: Duration,
}

impl Client {
    /// `url` such as `http://127.0.0.1:20000`.
    pub fn new(url: &str, token: Option<String>) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_global(Some(ANSWER_LIMIT))
            .build();
        Self { agent: config.into(), url: url.trim_end_matches('/').to_owned(), token }
    }

    /// Waits until GET /health says "ok", at most `wait`; `tick` hears what it says instead.
    ///
    /// # Errors
    /// It does not in time.
    pub fn wait(&self, wait: Duration, mut tick: impl FnMut(&str)) -> Result<(), ClientError> {
        let start = Instant::now();
        loop {
            let last = match self.get("/health") {
                Ok(health) if health["status"] == "ok" => return Ok(()),
                Ok(health) => health["status"].to_string(),
                Err(error) => error.to_string(),
            };
            if start.elapsed() >= wait {
                return Err(ClientError::NotReady { url: self.url.clone(), wait, last });
            }
            tick(&last);
            thread::sleep(HEALTH_PERIOD);
        }
    }

    /// # Errors
    /// No server, another status than 200, no JSON.
    pub fn get(&self, path: &str) -> Result<Value, ClientError> {
        let url = self.url.clone() + path;
        let text = read(&url, self.with_token(self.agent.get(&url)).call())?;
        parse(&url, &text)
    }

    /// Posts JSON to /predict.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn predict(&self, body: &[u8]) -> Result<Timed, ClientError> {
        let url = self.url.clone() + "/predict";
        let request = self.agent.post(&url).header("content-type", "application/json");
        let request = self.with_token(request);
        let start = Instant::now();
        let text = read(&url, request.send(body))?;
        let wall = start.elapsed();
        Ok(Timed { answer: parse(&url, &text)?, wall })
    }

    fn with_token<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }
}

/// The bytes of an answer with status 200.
fn read(
    url: &str,
    response: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
) -> Result<Vec<u8>, ClientError> {
    let failed = |source: ureq::Error| ClientError::Unreachable {
        url: url.to_owned(),
        source: Box::new(source),
    };
    let mut response = response.map_err(failed)?;
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_vec();
    let body = body.map_err(failed)?;
    if status != 200 {
        let text = String::from_utf8_lossy(&body).into_owned();
        return Err(ClientError::Status { url: url.to_owned(), status, text });
    }
    Ok(body)
}

fn parse(url: &str, text: &[u8]) -> Result<Value, ClientError> {
    serde_json::from_slice(text)
        .map_err(|source| ClientError::NoJson { url: url.to_owned(), source })
}
