//! The address of a replica.
//!
//! A replica on this machine is trusted: its root key is fetched from it, and nobody pays for
//! messages to it. Every other replica has to sign with a key that is known in advance.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use url::Url;

/// The name of the mainnet.
const MAINNET: &str = "ic";
/// The URL at which the mainnet accepts messages.
const MAINNET_URL: &str = "https://icp-api.io";

/// The URL of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    url: Url,
    /// The text from the command line.
    typed: String,
}

/// The errors of a text that is no address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error(
        "a replica is embedded, pocket-ic, ic (the mainnet), or a URL that begins with http:// or \
         https://, such as http://127.0.0.1:4943"
    )]
    Scheme,
    #[error("this is no URL: {0}")]
    Url(String),
    #[error("a replica's URL ends after host and port: {0}")]
    More(String),
}

impl Address {
    /// Returns the URL.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Returns `true` if only this machine can have this address.
    pub fn is_local(&self) -> bool {
        let Some(host) = self.url.host_str() else {
            return false;
        };
        let number = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = number.parse::<IpAddr>() {
            return address.to_canonical().is_loopback();
        }
        let name = host.trim_end_matches('.').to_ascii_lowercase();
        name == "localhost" || name.ends_with(".localhost")
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(typed: &str) -> Result<Self, AddressError> {
        let text = if typed == MAINNET { MAINNET_URL } else { typed };
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        if !matches!(scheme.as_deref(), Some("http" | "https")) {
            return Err(AddressError::Scheme);
        }
        let url = Url::parse(text).map_err(|error| AddressError::Url(error.to_string()))?;
        let more = url.path() != "/"
            || url.query().is_some()
            || url.fragment().is_some()
            || !url.username().is_empty()
            || url.password().is_some();
        if more {
            return Err(AddressError::More(typed.to_owned()));
        }
        Ok(Self { url, typed: typed.to_owned() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.typed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_local(text: &str, expected: bool) {
        let address: Address = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(address.is_local(), expected, "{text}");
        assert_eq!(address.to_string(), text);
    }

    #[test]
    fn addresses_of_this_machine() {
        for text in [
            "http://localhost:4943",
            "http://LOCALHOST",
            "http://localhost.:8000/",
            "http://bench.localhost:8000",
            "http://127.0.0.1:4943",
            "http://127.255.255.254",
            // As browsers read it: 127.0.0.1.
            "http://2130706433",
            "http://[::1]:4943",
            "http://[::ffff:127.0.0.1]",
            "https://localhost",
        ] {
            is_local(text, true);
        }
    }

    #[test]
    fn addresses_of_other_machines() {
        for text in [
            "ic",
            "https://icp-api.io",
            "https://ic0.app",
            "http://192.168.0.7:4943",
            "http://0.0.0.0:4943",
            "http://128.0.0.1",
            "http://[::2]",
            "http://localhost.example.com",
            "http://notlocalhost",
            "http://127.0.0.1.example.com",
        ] {
            is_local(text, false);
        }
        assert_eq!("ic".parse::<Address>().unwrap().url(), "https://icp-api.io/");
    }

    #[test]
    fn invalid_addresses_are_refused() {
        for text in ["mainnet", "localhost:4943", "127.0.0.1:4943", "ftp://localhost", ""] {
            assert_eq!(text.parse::<Address>(), Err(AddressError::Scheme), "{text}");
        }
        for text in ["http://", "http://[::1", "https://a:b"] {
            assert!(matches!(text.parse::<Address>(), Err(AddressError::Url(_))), "{text}");
        }
        for text in
            ["http://localhost/api", "http://me@localhost", "http://localhost/?canisterId=a"]
        {
            assert!(matches!(text.parse::<Address>(), Err(AddressError::More(_))), "{text}");
        }
    }
}
