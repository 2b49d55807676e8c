//! Why a request has failed, in words that say what to do.

use std::io;
use std::time::Duration;

use ureq::http::StatusCode;

/// Redirects of one request.
pub const MAX_HOPS: usize = 10;

/// Why a request has failed.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("{host} cannot be reached: {error}{}", proxy_hint(proxy.as_deref()))]
    Unreachable { host: String, proxy: Option<String>, error: ureq::Error },
    #[error(
        "the certificate of {host} is not trusted: {error}; where a proxy opens encrypted connections, its certificate has \
         to be in the system's store, or SSL_CERT_FILE has to name it"
    )]
    Certificate { host: String, error: ureq::Error },
    #[error(
        "the proxy {proxy} does not connect to {host}: {error}; check HTTPS_PROXY, NO_PROXY and the proxy's user and password"
    )]
    Proxy { host: String, proxy: String, error: ureq::Error },
    #[error("the connection was cut after {have} of {size} bytes: {error}")]
    Cut { have: u64, size: u64, error: io::Error },
    #[error(
        "{host} wants to know who asks (401){}; {}", told(message.as_deref()),
        if *with_token {
            "the token that HF_TOKEN or the token file gives is not valid: make a new one in the hub's settings"
        } else {
            "make a token in the hub's settings and set HF_TOKEN, or check that the repository's name is right"
        }
    )]
    Unauthorised { host: String, with_token: bool, message: Option<String> },
    #[error(
        "access is given by the model's page only (403){}; open {page}, accept the terms there{}", told(message.as_deref()),
        if *with_token { ", and check that HF_TOKEN is of that account and may read" } else { ", and set HF_TOKEN to a token of that account" }
    )]
    Gated { page: String, with_token: bool, message: Option<String> },
    #[error("{address} does not exist (404){}", told(message.as_deref()))]
    NotFound { address: String, message: Option<String> },
    #[error("{host} asks to slow down (429)")]
    Busy { host: String, after: Option<Duration> },
    #[error("{host} has a fault ({status}){}", told(message.as_deref()))]
    Server { host: String, status: StatusCode, message: Option<String>, after: Option<Duration> },
    #[error("{address} is answered with status {status}{}", told(message.as_deref()))]
    Status { address: String, status: StatusCode, message: Option<String> },
    #[error("{address} is answered without {lacking}; is there a hub behind HF_ENDPOINT?")]
    NoHub { address: String, lacking: &'static str },
    #[error("{address} leads nowhere after {MAX_HOPS} redirects")]
    Redirects { address: String },
    #[error("a redirect of {host} leads to '{location}', which is not followed")]
    Location { host: String, location: String },
    #[error("{host} sends {found}, and {size} bytes were announced")]
    Size { host: String, size: u64, found: String },
}

fn told(message: Option<&str>) -> String {
    message.map_or_else(String::new, |message| format!(": {message}"))
}

fn proxy_hint(proxy: Option<&str>) -> String {
    proxy.map_or_else(
        || "; check the network, or HTTPS_PROXY where a proxy is needed".to_owned(),
        |proxy| format!("; it was tried through the proxy {proxy}: check HTTPS_PROXY and NO_PROXY"),
    )
}

impl HttpError {
    /// Whether it may go well a little later.
    pub fn passes(&self) -> bool {
        match self {
            Self::Unreachable { error, .. } => !matches!(error, ureq::Error::BadUri(_)),
            Self::Cut { .. } | Self::Busy { .. } | Self::Server { .. } => true,
            _ => false,
        }
    }

    /// How long the server wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Busy { after, .. } | Self::Server { after, .. } => *after,
            _ => None,
        }
    }
}
