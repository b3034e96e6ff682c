//! What can be typed about where a suite runs.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use candid::Principal;
use clap::Args;

use crate::replica::network::{Address, AddressError};

/// Where a suite runs.
#[derive(Clone, Debug, Args)]
pub struct TargetArgs {
    /// What the canisters run on: `embedded`, in this process; `pocket-ic`, the server that
    /// POCKET_IC_BIN names, else one that is downloaded; or the URL of any replica. `ic` is the
    /// mainnet.
    #[arg(long, value_name = "R", default_value_t = ReplicaArg::Embedded)]
    pub replica: ReplicaArg,
    /// A canister of ours on the replica at a URL, which is emptied; again for another. Which is
    /// which is told by their modules.
    #[arg(long, value_name = "ID", value_parser = canister)]
    pub canister: Vec<Principal>,
    /// The key of a controller of those canisters; anonymous without it.
    #[arg(long, value_name = "PEM")]
    pub identity: Option<PathBuf>,
    /// Spend cycles on another machine's replica.
    #[arg(long)]
    pub yes: bool,
    /// The key that the network at a URL signs by, where that is neither on this machine nor the
    /// mainnet: its DER in hexadecimal digits.
    #[arg(long, value_name = "HEX")]
    pub root_key: Option<RootKey>,
    /// Send every message to the embedded replica too, and end at the first difference.
    #[arg(long)]
    pub verify_embedded: bool,
}

/// What canisters run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaArg {
    /// In this process; nothing to install.
    Embedded,
    /// A PocketIC server.
    PocketIc,
    /// Whatever answers there.
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
    Principal::from_text(text)
        .map_err(|error| format!("that is no canister id, as rrkah-fqaaa-aaaaa-aaaaq-cai: {error}"))
}

/// The public key of a network, in DER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootKey(pub Vec<u8>);

/// Why a text is no root key.
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
}
