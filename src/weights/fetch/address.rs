//! Where redirects lead.

use ureq::http::Uri;

/// The address that `location` names, as seen from `base`; `None` if it is none, or leads from an encrypted connection to a plain
/// one.
pub fn follow(base: &Uri, location: &str) -> Option<Uri> {
    let (scheme, authority) = (base.scheme_str()?, base.authority()?);
    let text = match location {
        "" => return None,
        _ if location.starts_with("http://") || location.starts_with("https://") => {
            location.to_owned()
        }
        _ if location.starts_with("//") => format!("{scheme}:{location}"),
        _ if location.starts_with('/') => format!("{scheme}://{authority}{location}"),
        // Another scheme than those of the web.
        _ if location.split('/').next().is_some_and(|first| first.contains(':')) => return None,
        _ => {
            let folder = base.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{scheme}://{authority}{folder}/{location}")
        }
    };
    let address: Uri = text.parse().ok()?;
    let exposed = scheme == "https" && address.scheme_str() != Some("https");
    (address.authority().is_some() && !exposed).then_some(address)
}

/// Whether two addresses are of the same scheme, host and port, so that what one may know the other may, too.
pub fn same_origin(one: &Uri, other: &Uri) -> bool {
    let port = |address: &Uri| match (address.port_u16(), address.scheme_str()) {
        (None, Some("https")) => Some(443),
        (None, Some("http")) => Some(80),
        (port, _) => port,
    };
    let host = |address: &Uri| address.host().map(str::to_ascii_lowercase);
    one.scheme_str() == other.scheme_str() && host(one) == host(other) && port(one) == port(other)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(text: &str) -> Uri {
        text.parse().expect(text)
    }

    #[test]
    fn redirects_lead_where_browsers_go() {
        let base = address("https://hub:8/a/b?q=1");
        for (location, expected) in [
            ("https://cdn/x?y=z", "https://cdn/x?y=z"),
            ("//cdn/x", "https://cdn/x"),
            ("/c/d", "https://hub:8/c/d"),
            ("c", "https://hub:8/a/c"),
        ] {
            assert_eq!(follow(&base, location), Some(address(expected)), "{location}");
        }
        for location in ["", "ftp://x/y", "javascript:x", "http://", "https://", "http://cdn/x"] {
            assert_eq!(follow(&base, location), None, "{location}");
        }
    }

    proptest! {
        #[test]
        fn any_location_is_followed_or_refused(location in any::<String>()) {
            if let Some(address) = follow(&address("https://hub/a/b"), &location) {
                prop_assert!(address.authority().is_some());
                prop_assert_eq!(address.scheme_str(), Some("https"));
            }
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let hub = address("https://hub/x");
        assert!(same_origin(&hub, &address("https://HUB:443/y")));
        for other in ["http://hub/x", "https://hub:444/x", "https://hub.evil/x", "https://evil/hub"]
        {
            assert!(!same_origin(&hub, &address(other)), "{other}");
        }
    }
}
