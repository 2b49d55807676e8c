//! Which hub is asked, as whom, and through what: the environment variables of Python's `huggingface_hub`.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use ureq::Proxy;
use ureq::http::Uri;

use super::cache::{Lookup, home_of_hub};

/// The variable that forbids the network.
pub const OFFLINE: &str = "HF_HUB_OFFLINE";
/// The variable with the address of the hub, or of a mirror.
const ENDPOINT: &str = "HF_ENDPOINT";
const DEFAULT_ENDPOINT: &str = "https://huggingface.co";
/// In the order in which they are asked for.
const TOKENS: [&str; 2] = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"];
const PROXIES: [&str; 6] =
    ["ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];

/// A hub and the way to it.
#[derive(Clone, Debug)]
pub struct Hub {
    /// Address, without a slash at the end.
    pub endpoint: String,
    pub token: Option<Token>,
    /// The network must not be used.
    pub offline: bool,
    pub proxy: Option<Proxy>,
}

/// What tells the hub who asks. Never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn header(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(...)")
    }
}

/// Why the environment names no hub.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    #[error("{ENDPOINT} is '{found}'; an address such as {DEFAULT_ENDPOINT} is needed")]
    Endpoint { found: String },
    #[error("{variable} is '{found}', which is no address of a proxy, such as http://proxy:3128")]
    Proxy { variable: &'static str, found: String },
    #[error("{variable} has characters that no token has")]
    Token { variable: String },
}

impl Hub {
    /// The hub that this process' environment names.
    ///
    /// # Errors
    /// A variable that is not understood.
    pub fn from_env() -> Result<Self, HubError> {
        let hub = Self::of(&|name| std::env::var_os(name))?;
        // Also reads NO_PROXY.
        Ok(Self { proxy: Proxy::try_from_env(), ..hub })
    }

    /// As [`Hub::from_env`], with the proxies checked but left out.
    ///
    /// # Errors
    /// A variable that is not understood.
    pub fn of(lookup: Lookup<'_>) -> Result<Self, HubError> {
        let text = |name: &str| {
            let value = lookup(name)?.to_string_lossy().trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        for variable in PROXIES {
            if let Some(found) = text(variable).filter(|found| Proxy::new(found).is_err()) {
                return Err(HubError::Proxy { variable, found });
            }
        }
        let found = text(ENDPOINT).unwrap_or_else(|| DEFAULT_ENDPOINT.to_owned());
        let refused = || HubError::Endpoint { found: found.clone() };
        let address: Uri = found.parse().map_err(|_| refused())?;
        if !matches!(address.scheme_str(), Some("http" | "https")) || address.query().is_some() {
            return Err(refused());
        }
        let endpoint = found.trim_end_matches('/').to_owned();
        let offline = text(OFFLINE).is_some_and(|value| is_yes(&value));
        Ok(Self { endpoint, token: token(lookup, &text)?, offline, proxy: None })
    }
}

/// The token of a variable, else of the file that logging in has written.
fn token(
    lookup: Lookup<'_>,
    text: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Token>, HubError> {
    let given = TOKENS.into_iter().find_map(|name| Some((name.to_owned(), text(name)?)));
    let stored = || {
        if text("HF_HUB_DISABLE_IMPLICIT_TOKEN").is_some_and(|value| is_yes(&value)) {
            return None;
        }
        let path = text("HF_TOKEN_PATH").map(PathBuf::from);
        let path = path.unwrap_or_else(|| home_of_hub(lookup).join("token"));
        let token = fs::read_to_string(&path).ok()?.trim().to_owned();
        (!token.is_empty()).then(|| (path.display().to_string(), token))
    };
    let Some((variable, token)) = given.or_else(stored) else { return Ok(None) };
    if token.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(Some(Token(token)))
    } else {
        Err(HubError::Token { variable })
    }
}

/// What Python's library takes for yes.
fn is_yes(text: &str) -> bool {
    ["1", "on", "yes", "true"].iter().any(|yes| yes.eq_ignore_ascii_case(text))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn hub(variables: &[(&str, &str)]) -> Result<Hub, HubError> {
        Hub::of(&|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn without_variables_it_is_the_public_hub() {
        let hub = hub(&[("HF_HOME", "/no/such/folder")]).expect("hub");
        assert_eq!(hub.endpoint, "https://huggingface.co");
        assert!(!hub.offline && hub.token.is_none());
    }

    #[test]
    fn variables_are_understood_as_python_does() {
        let mirror = hub(&[
            ("HF_ENDPOINT", "http://mirror:8080/hf/"),
            ("HF_HUB_OFFLINE", "True"),
            ("HF_TOKEN", " hf_abc\n"),
        ]);
        let mirror = mirror.expect("hub");
        assert_eq!(mirror.endpoint, "http://mirror:8080/hf");
        assert!(mirror.offline);
        assert_eq!(mirror.token.as_ref().map(Token::header).as_deref(), Some("Bearer hf_abc"));
        assert!(!format!("{mirror:?}").contains("hf_abc"));
        let online = hub(&[("HF_HUB_OFFLINE", "0"), ("HF_HOME", "/no/such")]).expect("hub");
        assert!(!online.offline);
    }

    #[test]
    fn the_stored_token_is_used_unless_it_is_forbidden() {
        let folder = tempfile::tempdir().expect("folder");
        fs::write(folder.path().join("token"), "hf_stored\n").expect("token");
        let home = folder.path().to_str().expect("path");
        let found = hub(&[("HF_HOME", home)]).expect("hub").token;
        assert_eq!(found, Some(Token::new("hf_stored")));
        let forbidden = hub(&[("HF_HOME", home), ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")]);
        assert_eq!(forbidden.expect("hub").token, None);
        let first = hub(&[("HF_HOME", home), ("HF_TOKEN", "hf_first")]).expect("hub").token;
        assert_eq!(first, Some(Token::new("hf_first")));
    }

    #[test]
    fn variables_that_are_wrong_are_named() {
        for (name, value) in [
            ("HF_ENDPOINT", "huggingface.co"),
            ("HF_ENDPOINT", "ftp://hub"),
            ("HF_ENDPOINT", "http://a b"),
            ("HTTPS_PROXY", "http://[broken"),
            ("HF_TOKEN", "two words"),
        ] {
            let error = hub(&[(name, value)]).expect_err(value).to_string();
            assert!(error.contains(name), "{error}");
        }
    }
}
