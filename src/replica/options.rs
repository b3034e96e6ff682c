//! Command-line definitions of the replica that canisters run on, its address and its cache.
//!
//! A replica on this machine is trusted: its root key is fetched from it, and nobody pays for
//! messages to it. Every other replica has to sign with a key that is known in advance.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use candid::Principal;
use clap::{Args, ValueEnum};
use stablebench_replica::Rules;
use url::Url;

/// The environment variable with the default of `--cache-limit`.
pub const LIMIT: &str = "STABLEBENCH_CACHE_LIMIT";

/// Options of the embedded replica.
#[derive(Clone, Debug, Args)]
pub struct ReplicaArgs {
    /// Rules by which the embedded replica charges.
    #[arg(long, value_name = "RULES", help = format!(
        "Rules by which the embedded replica charges: {} [default: {}]. A PocketIC server has its own",
        rule_sets(), Rules::today()
    ))]
    pub rules: Option<Rules>,
    /// Kind of subnet, of the embedded replica and of a PocketIC server.
    #[arg(long, value_enum, default_value_t = SubnetKind::Application)]
    pub subnet: SubnetKind,
    #[command(flatten)]
    pub cache: CacheUseArgs,
}

impl ReplicaArgs {
    /// Returns the rules with the kind of subnet.
    pub fn rules(&self) -> Rules {
        self.rules.unwrap_or_default().on(match self.subnet {
            SubnetKind::Application => stablebench_replica::SubnetKind::Application,
            SubnetKind::System => stablebench_replica::SubnetKind::System,
            SubnetKind::Benchmarking => stablebench_replica::SubnetKind::Benchmarking,
        })
    }
}

/// All rule sets, for a help text.
pub fn rule_sets() -> String {
    let newest = format!("{}, today's network", Rules::today());
    let older = Rules::SETS.iter().rev().skip(1).map(|name| (*name).to_owned());
    [newest].into_iter().chain(older).collect::<Vec<_>>().join("; ")
}

/// Kinds of subnets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SubnetKind {
    /// Production limits and prices of 13 nodes.
    Application,
    /// Larger limits; nothing is paid for.
    System,
    /// An application subnet without practical instruction limits.
    Benchmarking,
}

/// Options of the cache, which changes no result, and of its use.
#[derive(Clone, Debug, Args)]
pub struct CacheUseArgs {
    #[command(flatten)]
    pub folder: CacheFolderArgs,
    /// Neither use nor fill the cache of earlier runs.
    #[arg(long)]
    pub no_cache: bool,
}

/// Options of the cache.
#[derive(Clone, Debug, Args)]
pub struct CacheFolderArgs {
    /// Folder for compiled modules and populated canisters
    /// [default: $XDG_CACHE_HOME/stablebench].
    #[arg(long, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    /// Maximum size of the cache on disk; beyond it, the least recently used entries are
    /// dropped [default: $STABLEBENCH_CACHE_LIMIT, else 8].
    #[arg(long, value_name = "GIB", value_parser = limit)]
    pub cache_limit: Option<f64>,
}

/// Parses a number of GiB: `8` or `0.5`.
pub fn limit(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(limit) if limit.is_finite() && limit >= 0.0 => Ok(limit),
        _ => Err("a limit is a number of GiB, such as 8 or 0.5".to_owned()),
    }
}

/// Options of the replica that a suite runs on.
#[derive(Clone, Debug, Args)]
pub struct TargetArgs {
    /// Replica to run on: `embedded`, in this process; `pocket-ic`, the server that POCKET_IC_BIN
    /// names, else one that is downloaded; or the URL of any replica. `ic` is the mainnet.
    #[arg(long, value_name = "R", default_value_t = ReplicaArg::Embedded)]
    pub replica: ReplicaArg,
    /// Id of a benchmark canister on the replica at a URL, which is emptied. Repeat it for more;
    /// they are recognised by their modules.
    #[arg(long, value_name = "ID", value_parser = canister)]
    pub canister: Vec<Principal>,
    #[command(flatten)]
    pub access: AccessArgs,
}

/// Options of the access to a replica, and of the comparison of its answers. They change no result.
#[derive(Clone, Debug, Args)]
pub struct AccessArgs {
    /// File with the key of a controller of those canisters [default: anonymous].
    #[arg(long, value_name = "PEM")]
    pub identity: Option<PathBuf>,
    /// Allow spending cycles on another machine's replica.
    #[arg(long)]
    pub yes: bool,
    /// Public key of the network at a URL, if that is neither on this machine nor the mainnet:
    /// its DER in hexadecimal digits.
    #[arg(long, value_name = "HEX")]
    pub root_key: Option<RootKey>,
    /// Send every message to the embedded replica too, and stop at the first difference.
    #[arg(long)]
    pub verify_embedded: bool,
}

/// A replica to run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaArg {
    /// The replica in this process.
    Embedded,
    /// A PocketIC server.
    PocketIc,
    /// The replica at this address.
    At(Address),
}

impl FromStr for ReplicaArg {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text {
            "embedded" => Ok(Self::Embedded),
            "pocket-ic" => Ok(Self::PocketIc),
            url => url.parse().map(Self::At),
        }
    }
}

impl fmt::Display for ReplicaArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Embedded => f.write_str("embedded"),
            Self::PocketIc => f.write_str("pocket-ic"),
            Self::At(address) => address.fmt(f),
        }
    }
}

fn canister(text: &str) -> Result<Principal, String> {
    Principal::from_text(text).map_err(|error| {
        format!("this is no canister id, such as rrkah-fqaaa-aaaaa-aaaaq-cai: {error}")
    })
}

/// The public key of a network, in DER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootKey(pub Vec<u8>);

/// The error for a text that is no root key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a root key is 266 hexadecimal digits that begin with 308182")]
pub struct RootKeyError;

impl FromStr for RootKey {
    type Err = RootKeyError;

    fn from_str(text: &str) -> Result<Self, RootKeyError> {
        const BYTES: usize = 133;
        let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
        let digits = digits.ok_or(RootKeyError)?;
        let byte = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]);
        match digits.chunks_exact(2).map(byte).collect::<Result<Vec<u8>, _>>() {
            Ok(bytes) if digits.len() == 2 * BYTES && bytes.starts_with(&[0x30, 0x81, 0x82]) => {
                Ok(Self(bytes))
            }
            _ => Err(RootKeyError),
        }
    }
}

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

    #[test]
    fn a_replica_is_named_or_has_a_url() {
        for text in ["embedded", "pocket-ic", "ic", "http://127.0.0.1:4943"] {
            assert_eq!(text.parse::<ReplicaArg>().unwrap().to_string(), text);
        }
        assert_eq!("embedded".parse(), Ok(ReplicaArg::Embedded));
        assert_eq!("mainnet".parse::<ReplicaArg>(), Err(AddressError::Scheme));
    }

    #[test]
    fn a_root_key_has_its_length() {
        let key = format!("308182{}", "0f".repeat(130));
        assert_eq!(key.parse::<RootKey>().unwrap().0[3], 15);
        for wrong in [&key[2..], &key[..265], &format!("{key}00"), "", &"zz".repeat(133)] {
            assert_eq!(wrong.parse::<RootKey>(), Err(RootKeyError), "{wrong}");
        }
    }

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
