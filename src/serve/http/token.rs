//! How a request shows the server's token.

use axum::http::{HeaderMap, header};

use crate::serve::Token;

/// Whether a request shows the token, as `Authorization: Bearer SECRET`.
pub fn is_shown(token: &Token, headers: &HeaderMap) -> bool {
    let shown = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes());
    let secret = shown.and_then(|value| {
        let (scheme, secret) = value.split_at_checked("Bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then_some(secret)
    });
    secret.is_some_and(|secret| token.is(secret))
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
            assert_eq!(is_shown(&token, &headers), expected, "{shown}");
        }
        assert!(!is_shown(&token, &HeaderMap::new()));
    }
}
