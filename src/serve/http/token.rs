//! The secret that clients show.

use axum::http::{HeaderMap, header};

/// A token, kept as its hash.
#[derive(Clone)]
pub struct Token(blake3::Hash);

impl Token {
    pub fn new(secret: &str) -> Self {
        Self(blake3::hash(secret.as_bytes()))
    }

    /// Whether a text is the secret. Hashes are compared in constant time.
    pub fn is(&self, given: &[u8]) -> bool {
        blake3::hash(given) == self.0
    }

    /// Whether a request shows it, as `Authorization: Bearer SECRET`.
    pub fn is_shown(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
        let secret = shown.and_then(|value| {
            let (scheme, secret) = value.split_at_checked("Bearer ".len())?;
            scheme.eq_ignore_ascii_case(b"Bearer ").then_some(secret)
        });
        secret.is_some_and(|secret| self.is(secret))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(...)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_itself_is_let_in() {
        let token = Token::new("pear");
        for (shown, expected) in [
            ("Bearer pear", true),
            ("bearer pear", true),
            ("Bearer pea", false),
            ("Bearer  pear", false),
            ("Basic pear", false),
            ("pear", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, shown.parse().unwrap())]);
            assert_eq!(token.is_shown(&headers), expected, "{shown}");
        }
        assert!(!token.is_shown(&HeaderMap::new()));
    }
}
