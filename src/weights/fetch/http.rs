//! The requests of the hub's protocol: what a file is (HEAD), and its bytes from some place on (GET).
//!
//! Redirects are followed here: the hub tells what a large file is in the answer that leads to another host, and the token
//! must not get there.

use std::time::Duration;

use ureq::http::{HeaderMap, Response, StatusCode, Uri, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

use super::address::{follow, same_origin};
use super::http_error::{HttpError, MAX_HOPS};
use crate::weights::hash::{SHA1_DIGITS, is_hex};
use crate::weights::hub::Hub;

const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// A connection on which nothing arrives for so long is given up.
const SILENCE_LIMIT: Duration = Duration::from_secs(60);
/// Longest wait that a server may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);

/// Of the entity tag that a redirect hides, and the size.
const LINKED_TAG: &str = "x-linked-etag";
const LINKED_SIZE: &str = "x-linked-size";
const REVISION: &str = "x-repo-commit";
const ERROR_CODE: &str = "x-error-code";
const ERROR_MESSAGE: &str = "x-error-message";

/// What the hub says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The commit that was asked for, or that the branch has.
    pub revision: String,
    /// Entity tag, without quotes.
    pub tag: String,
    /// Bytes.
    pub size: u64,
}

/// Sends requests to a hub.
pub struct Client<'a> {
    hub: &'a Hub,
    agent: Agent,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Head,
    Get { from: u64 },
}

impl<'a> Client<'a> {
    pub fn new(hub: &'a Hub) -> Self {
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .proxy(hub.proxy.clone())
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("gr00t_blackhole/", env!("CARGO_PKG_VERSION")))
            // Compressed, neither sizes nor ranges would be those of the file.
            .accept_encoding("identity")
            .timeout_connect(Some(CONNECT_LIMIT))
            .timeout_recv_response(Some(SILENCE_LIMIT))
            .timeout_per_read(Some(SILENCE_LIMIT))
            .timeout_per_write(Some(SILENCE_LIMIT))
            .build();
        Self { hub, agent: config.into() }
    }

    /// Asks what a file is.
    ///
    /// # Errors
    /// It is not there, or not for this user; the hub cannot be reached, or is none.
    pub fn describe(&self, repo: &str, revision: &str, file: &str) -> Result<Remote, HttpError> {
        let (address, response) = self.send(Method::Head, repo, revision, file)?;
        let headers = response.headers();
        let lacking = |lacking| HttpError::NoHub { address: address.to_string(), lacking };
        let commit =
            text(headers, REVISION).filter(|commit| commit.len() == SHA1_DIGITS && is_hex(commit));
        let tag = text(headers, LINKED_TAG).or_else(|| text(headers, header::ETAG.as_str()));
        let tag = tag.map(plain_tag).filter(|tag| is_file_name(tag));
        let size = text(headers, LINKED_SIZE)
            .or_else(|| text(headers, header::CONTENT_LENGTH.as_str()))
            .and_then(|size| size.parse().ok());
        Ok(Remote {
            revision: commit.ok_or_else(|| lacking("the commit (X-Repo-Commit)"))?.to_owned(),
            tag: tag.ok_or_else(|| lacking("an entity tag (ETag)"))?.to_owned(),
            size: size.ok_or_else(|| lacking("a size (Content-Length)"))?,
        })
    }

    /// Asks for the bytes of a file from `from` on. The answer may also begin at the first byte (status 200), or say that
    /// there is no such range (416).
    ///
    /// # Errors
    /// As [`Client::describe`].
    pub fn read(
        &self,
        repo: &str,
        revision: &str,
        file: &str,
        from: u64,
    ) -> Result<(Uri, Response<Body>), HttpError> {
        self.send(Method::Get { from }, repo, revision, file)
    }

    /// The page where people read about a repository.
    pub fn page(&self, repo: &str) -> String {
        format!("{}/{repo}", self.hub.endpoint)
    }

    fn send(
        &self,
        method: Method,
        repo: &str,
        revision: &str,
        file: &str,
    ) -> Result<(Uri, Response<Body>), HttpError> {
        let path: Vec<String> = file.split('/').map(percent_encoded).collect();
        let text = format!("{}/{repo}/resolve/{revision}/{}", self.hub.endpoint, path.join("/"));
        let no_address =
            |_| HttpError::Location { host: self.hub.endpoint.clone(), location: text.clone() };
        let first: Uri = text.parse().map_err(no_address)?;
        let mut address = first.clone();
        for _ in 0..MAX_HOPS {
            let own = same_origin(&address, &first);
            let response = self.send_once(method, &address, own)?;
            if !response.status().is_redirection() {
                self.check_status(repo, &address, own, &response)?;
                return Ok((address, response));
            }
            let location = text_of(response.headers(), header::LOCATION.as_str());
            let next = follow(&address, &location)
                .ok_or(HttpError::Location { host: host(&address), location })?;
            // What another host says of the file does not count.
            if method == Method::Head && !same_origin(&next, &first) {
                return Ok((address, response));
            }
            address = next;
        }
        Err(HttpError::Redirects { address: first.to_string() })
    }

    fn send_once(
        &self,
        method: Method,
        address: &Uri,
        with_token: bool,
    ) -> Result<Response<Body>, HttpError> {
        let mut request = match method {
            Method::Head => self.agent.head(address),
            Method::Get { .. } => self.agent.get(address),
        };
        if let Method::Get { from: from @ 1.. } = method {
            request = request.header(header::RANGE, format!("bytes={from}-"));
        }
        if let Some(token) = self.hub.token.as_ref().filter(|_| with_token) {
            request = request.header(header::AUTHORIZATION, token.header());
        }
        request.call().map_err(|error| self.unreachable(address, error))
    }

    fn unreachable(&self, address: &Uri, error: ureq::Error) -> HttpError {
        let host = host(address);
        let used = self.hub.proxy.as_ref().filter(|proxy| !proxy.is_no_proxy(address));
        let proxy = used.map(|proxy| format!("{}:{}", proxy.host(), proxy.port()));
        match (error, proxy) {
            (error @ ureq::Error::ConnectProxyFailed(_), Some(proxy)) => {
                HttpError::Proxy { host, proxy, error }
            }
            (error, _) if is_certificate(&error) => HttpError::Certificate { host, error },
            (error, proxy) => HttpError::Unreachable { host, proxy, error },
        }
    }

    fn check_status(
        &self,
        repo: &str,
        address: &Uri,
        own: bool,
        response: &Response<Body>,
    ) -> Result<(), HttpError> {
        let status = response.status();
        if status.is_success() || status == StatusCode::RANGE_NOT_SATISFIABLE {
            return Ok(());
        }
        let headers = response.headers();
        let message = text(headers, ERROR_MESSAGE).map(str::to_owned);
        let after = || {
            let seconds = text(headers, header::RETRY_AFTER.as_str())?.trim().parse().ok()?;
            Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
        };
        let host = host(address);
        let with_token = self.hub.token.is_some();
        let gated = text(headers, ERROR_CODE).is_some_and(|code| code == "GatedRepo");
        Err(match status {
            _ if own && (gated || status == StatusCode::FORBIDDEN) => {
                HttpError::Gated { page: self.page(repo), with_token, message }
            }
            StatusCode::UNAUTHORIZED if own => {
                HttpError::Unauthorised { host, with_token, message }
            }
            StatusCode::NOT_FOUND => HttpError::NotFound { address: address.to_string(), message },
            StatusCode::TOO_MANY_REQUESTS => HttpError::Busy { host, after: after() },
            StatusCode::REQUEST_TIMEOUT => {
                HttpError::Server { host, status, message, after: after() }
            }
            _ if status.is_server_error() => {
                HttpError::Server { host, status, message, after: after() }
            }
            _ => HttpError::Status { address: without_query(address), status, message },
        })
    }
}

fn is_certificate(error: &ureq::Error) -> bool {
    let text = error.to_string();
    matches!(error, ureq::Error::Tls(_) | ureq::Error::Rustls(_))
        || (matches!(error, ureq::Error::Io(_)) && text.contains("certificate"))
}

/// Host and port of an address.
pub fn host(address: &Uri) -> String {
    address.authority().map_or_else(String::new, |authority| {
        // Without the user and password that an address may have.
        let text = authority.as_str();
        text.rsplit_once('@').map_or(text, |(_, host)| host).to_owned()
    })
}

/// Addresses of content have signatures behind the question mark.
fn without_query(address: &Uri) -> String {
    let text = address.to_string();
    text.split_once('?').map_or(text.clone(), |(path, _)| path.to_owned())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn text_of(headers: &HeaderMap, name: &str) -> String {
    text(headers, name).unwrap_or_default().to_owned()
}

/// An entity tag without the mark of a weak one and without quotes.
fn plain_tag(tag: &str) -> &str {
    tag.trim().trim_start_matches("W/").trim_matches('"')
}

/// The tag becomes the name of a blob.
fn is_file_name(tag: &str) -> bool {
    const LONGEST: usize = 128;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !tag.is_empty() && tag.len() <= LONGEST && tag.bytes().all(plain)
}

/// A part of a path as addresses write it.
fn percent_encoded(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    part.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_lose_their_quotes_and_never_become_paths() {
        assert_eq!(plain_tag("\"abc\""), "abc");
        assert_eq!(plain_tag("W/\"abc\""), "abc");
        assert!(is_file_name("abc-1"));
        for tag in ["", "../x", "a/b", ".", &"a".repeat(129)] {
            assert!(!is_file_name(tag), "{tag}");
        }
    }

    #[test]
    fn paths_are_encoded_and_signatures_not_shown() {
        assert_eq!(percent_encoded("größe 1#?.json"), "gr%C3%B6%C3%9Fe%201%23%3F.json");
        let address: Uri = "https://cdn.example/x?Signature=secret".parse().expect("address");
        assert_eq!(without_query(&address), "https://cdn.example/x");
        let address: Uri = "http://me:secret@mirror:80/x".parse().expect("address");
        assert_eq!(host(&address), "mirror:80");
    }
}
