//! Access by web pages: the origins and host names that requests may have.
//!
//! A browser lets any page send requests to this machine. Its requests name the origin of the page
//! (`Origin`) and the name of this machine (`Host`). The page can choose a name that resolves to
//! this machine, so both are checked.

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use axum::http::{HeaderMap, HeaderValue, Uri, header};

use crate::wire::Refusal;

/// The origin of web pages: a scheme, a host, and a port unless it is the default one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    text: String,
    host: String,
}

/// The error of a text that is not an origin.
#[derive(Debug, thiserror::Error)]
#[error("an origin is a scheme, a host and a port, such as http://example.com:3000")]
pub struct NoOrigin;

impl FromStr for Origin {
    type Err = NoOrigin;

    fn from_str(text: &str) -> Result<Self, NoOrigin> {
        let text = text.to_ascii_lowercase();
        let uri: Uri = text.parse().map_err(|_| NoOrigin)?;
        let host = uri.host().ok_or(NoOrigin)?.to_owned();
        let scheme = uri.scheme_str().ok_or(NoOrigin)?;
        let authority = uri.authority().map(|authority| format!("{scheme}://{authority}"));
        if host.is_empty() || authority.as_deref() != Some(text.as_str()) || text.contains('@') {
            return Err(NoOrigin);
        }
        Ok(Self { text, host })
    }
}

/// The origins and host names that are allowed.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Allowed origins besides those of this machine. Their host names are allowed too.
    pub origins: Vec<Origin>,
    /// Allows all origins and host names.
    pub open: bool,
}

impl Access {
    /// Checks the origin and the host name of a request to an endpoint that listens at `address`.
    ///
    /// # Errors
    ///
    /// 403 with the option that would allow the request, or 400 without exactly one `Host`.
    pub fn check(&self, address: IpAddr, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        if self.open {
            return Ok(());
        }
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Refusal::bad_request("A request has one Host header."));
        };
        let host = host.to_str().ok().and_then(|host| host.parse::<Uri>().ok());
        let host = host.as_ref().and_then(Uri::host).unwrap_or_default();
        for name in [Some(host), uri.host()].into_iter().flatten() {
            if !self.is_name(address, name) {
                return Err(Refusal::forbidden(format!(
                    "The Host {name} is not this machine. Call http://localhost, or allow it: \
                     serve --allow-origin http://{name}"
                )));
            }
        }
        match headers.get(header::ORIGIN) {
            Some(origin) if !self.allows(origin) => {
                let origin = origin.to_str().unwrap_or("unreadable");
                Err(Refusal::forbidden(format!(
                    "Pages of the origin {origin} are not allowed to call. Allow them: \
                     serve --allow-origin {origin}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` for origins of this machine and allowed origins.
    pub fn allows(&self, origin: &HeaderValue) -> bool {
        let origin = origin.to_str().ok().and_then(|text| text.parse::<Origin>().ok());
        self.open
            || origin
                .is_some_and(|origin| is_loopback(&origin.host) || self.origins.contains(&origin))
    }

    /// Returns `true` if requests may use that host name. An IP address is allowed if the endpoint
    /// listens to other machines: unlike a name, no page can make it resolve to this machine.
    fn is_name(&self, address: IpAddr, name: &str) -> bool {
        is_loopback(name)
            || (!address.is_loopback() && ip(name).is_some())
            || self.origins.iter().any(|origin| origin.host.eq_ignore_ascii_case(name))
    }
}

fn ip(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => host.parse().ok(),
    }
}

/// Returns `true` if every machine resolves the host to itself.
fn is_loopback(host: &str) -> bool {
    let name = host.to_ascii_lowercase();
    let name = name.strip_suffix('.').unwrap_or(&name);
    name == "localhost"
        || name.ends_with(".localhost")
        || ip(name).is_some_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, Uri};

    use super::*;

    fn status(access: &Access, listens: &str, host: &str, origin: Option<&str>) -> u16 {
        let mut headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let uri = Uri::from_static("/api/v2/status");
        let checked = access.check(listens.parse().unwrap(), &uri, &headers);
        checked.map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_names_of_this_machine_are_allowed() {
        let closed = Access::default();
        for (host, expected) in [
            ("127.0.0.1:4943", 200),
            ("127.9.9.9", 200),
            ("localhost", 200),
            ("LocalHost.:4943", 200),
            ("lxzze-o7777-77777-aaaaa-cai.localhost:4943", 200),
            ("[::1]:4943", 200),
            ("[::ffff:127.0.0.1]:4943", 200),
            ("evil.example:4943", 403),
            ("localhost.evil.example", 403),
            ("127.0.0.1.evil.example", 403),
            ("evillocalhost", 403),
            ("192.168.1.5:4943", 403),
            ("0.0.0.0:4943", 403),
            ("[::2]", 403),
            ("", 403),
        ] {
            assert_eq!(status(&closed, "127.0.0.1", host, None), expected, "{host}");
        }
        // Other machines use an address; a name could be chosen by anybody.
        assert_eq!(status(&closed, "0.0.0.0", "192.168.1.5:4943", None), 200);
        assert_eq!(status(&closed, "192.168.1.5", "192.168.1.5:4943", None), 200);
        assert_eq!(status(&closed, "0.0.0.0", "evil.example:4943", None), 403);
        let headers = HeaderMap::new();
        let uri = Uri::from_static("http://localhost/");
        assert!(closed.check("127.0.0.1".parse().unwrap(), &uri, &headers).is_err());
        let two = [("localhost", header::HOST), ("evil.example", header::HOST)];
        let mut headers = HeaderMap::new();
        for (value, name) in two {
            headers.append::<HeaderName>(name, value.parse().unwrap());
        }
        assert!(closed.check("127.0.0.1".parse().unwrap(), &uri, &headers).is_err());
    }

    #[test]
    fn only_pages_of_this_machine_and_allowed_origins_may_call() {
        let closed = Access::default();
        let some =
            Access { origins: vec!["https://app.example".parse().unwrap()], ..Access::default() };
        let open = Access { open: true, ..Access::default() };
        for (origin, of_closed, of_some) in [
            ("http://localhost:3000", 200, 200),
            ("http://127.0.0.1", 200, 200),
            ("https://app.example", 403, 200),
            ("http://app.example", 403, 403),
            ("https://app.example:444", 403, 403),
            ("https://evil.example", 403, 403),
            ("http://localhost.evil.example", 403, 403),
            ("http://localhost@evil.example", 403, 403),
            ("null", 403, 403),
        ] {
            let status = |access| status(access, "127.0.0.1", "127.0.0.1:4943", Some(origin));
            assert_eq!(
                (status(&closed), status(&some), status(&open)),
                (of_closed, of_some, 200),
                "{origin}"
            );
        }
        assert_eq!(status(&some, "0.0.0.0", "app.example:4943", None), 200);
        assert_eq!(status(&open, "127.0.0.1", "evil.example", None), 200);
    }

    #[test]
    fn other_texts_are_not_origins() {
        for text in ["", "*", "example.com", "http://", "http://a/b", "http://a/", "http://u@a"] {
            assert!(text.parse::<Origin>().is_err(), "{text}");
        }
        let same: [Origin; 2] =
            ["http://A.example", "http://a.example"].map(|t| t.parse().unwrap());
        assert_eq!(same[0], same[1]);
    }
}
