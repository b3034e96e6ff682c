//! Any replica by its URL: one of dfx or icp-cli, `stablebench serve`, the mainnet.
//!
//! ```text
//!   link.rs      the agent with blocking calls
//!   sending.rs   a call that is executed once, even if answers are lost
//!   slot.rs      a canister that contains the module that is needed; a fixture in it, and its forks
//! ```
//!
//! The caller's key is in a PEM file:
//!
//! ```text
//!   PRIVATE KEY       PKCS#8: Ed25519, secp256k1     dfx before 0.12, icp-cli, openssl genpkey
//!   EC PRIVATE KEY    SEC1: secp256k1                dfx, openssl ecparam
//! ```

mod link;
mod sending;
mod slot;

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use candid::Principal;
use ic_agent::identity::{AnonymousIdentity, BasicIdentity, PemError, Secp256k1Identity};
use stablebench_replica::files;

use super::options::Address;
use super::{Balance, Canister, Identity, Replica};
use crate::canisters::Built;
use link::Link;
use slot::{Installed, Slot, slots};

/// A replica by its URL, and the canisters there that may be measured in.
pub struct Network {
    slots: Vec<Arc<Slot>>,
    identity: Identity,
}

impl Network {
    /// Connects, and finds a canister for each module of `needed`. Changes nothing.
    ///
    /// # Errors
    ///
    /// [`NetworkError`](sending::NetworkError) if that is impossible.
    pub fn connect(access: Access<'_>, needed: &[Built]) -> Result<Self> {
        let caller = identity(access.identity)?;
        let (link, version) = Link::connect(access.address.clone(), caller, access.root_key)?;
        let link = Arc::new(link);
        let slots = slots(&link, needed, access.canisters)?;
        let subnet = match slots.first() {
            Some(slot) => link.subnet(slot.canister)?,
            None => None,
        };
        let unknown = || "unknown".to_owned();
        let identity = Identity {
            kind: "network".to_owned(),
            version: version.unwrap_or_else(unknown),
            subnet: subnet.map_or_else(unknown, |subnet| subnet.to_text()),
            rules: unknown(),
        };
        Ok(Self { slots, identity })
    }

    /// Asks for the canisters' balances.
    pub fn balances(&self) -> Result<Vec<Balance>> {
        let balance = |slot: &Arc<Slot>| {
            let (name, canister) = (slot.module.name.clone(), slot.canister);
            Ok(Balance { name, canister, cycles: slot.balance()? })
        };
        self.slots.iter().map(balance).collect()
    }
}

impl Replica for Network {
    fn identity(&self) -> Identity {
        self.identity.clone()
    }

    /// Empties the canister that has the module.
    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>> {
        let slot = self.slots.iter().find(|slot| slot.module.is(wasm));
        let slot = slot.context("no canister of the network has that module")?;
        Ok(Box::new(Installed::new(slot.clone())?))
    }
}

/// The access to a network.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    pub address: &'a Address,
    /// The canisters that may be used.
    pub canisters: &'a [Principal],
    /// The file with the caller's key.
    pub identity: Option<&'a Path>,
    /// The network's public key in DER.
    pub root_key: Option<&'a [u8]>,
}

/// The maximum size of a file with a key, in bytes.
const MAX_FILE: u64 = 1 << 16;

/// The object identifier of Ed25519 in a PKCS#8 key: 1.3.101.112.
const ED25519: [u8; 5] = [6, 3, 43, 101, 112];
/// The lengths of an Ed25519 key in PKCS#8: without and with its public key, which old versions of
/// dfx wrote.
const ED25519_LENGTHS: [usize; 2] = [48, 85];

/// The errors of an identity.
#[derive(Debug, thiserror::Error)]
enum IdentityError {
    #[error("cannot read the identity {}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error(
        "the identity {} is locked by a password; export it: dfx identity export NAME, or icp \
         identity export NAME",
        path.display()
    )]
    Locked { path: PathBuf },
    #[error(
        "the identity {} is no private key in PEM: Ed25519 in PKCS#8 or secp256k1 is needed, such as \
         dfx identity export NAME and icp identity export NAME print",
        path.display()
    )]
    Kind { path: PathBuf },
    #[error("the identity {} cannot be used", path.display())]
    Key { path: PathBuf, source: PemError },
}

/// Reads the identity in a file, or returns the anonymous one.
///
/// # Errors
///
/// If the file cannot be read or contains no supported key.
fn identity(path: Option<&Path>) -> Result<Arc<dyn ic_agent::Identity>, IdentityError> {
    let Some(path) = path else {
        return Ok(Arc::new(AnonymousIdentity));
    };
    let path = path.to_owned();
    // It may be a pipe, from the program that keeps the key.
    match files::read_stream(&path, MAX_FILE) {
        Ok(text) => parse(&text, path),
        Err(source) => Err(IdentityError::Read { path, source }),
    }
}

/// Returns a warning if other users can read the file.
pub fn exposed(path: &Path) -> Option<String> {
    let metadata = std::fs::metadata(path).ok().filter(Metadata::is_file)?;
    (metadata.mode() & 0o044 != 0).then(|| {
        format!(
            "other users of this machine can read the key in {0}; forbid it: chmod 600 {0}",
            path.display()
        )
    })
}

fn parse(pem: &str, path: PathBuf) -> Result<Arc<dyn ic_agent::Identity>, IdentityError> {
    if pem.contains("ENCRYPTED") {
        return Err(IdentityError::Locked { path });
    }
    if let Some(der) = block(pem, "PRIVATE KEY") {
        // The agent's parser panics at other lengths.
        let ed25519 = der.windows(ED25519.len()).take(16).any(|window| window == ED25519);
        if ed25519 && ED25519_LENGTHS.contains(&der.len()) {
            return match BasicIdentity::from_pem(pem) {
                Ok(identity) => Ok(Arc::new(identity)),
                Err(source) => Err(IdentityError::Key { path, source }),
            };
        }
        if ed25519 {
            return Err(IdentityError::Kind { path });
        }
    } else if block(pem, "EC PRIVATE KEY").is_none() {
        return Err(IdentityError::Kind { path });
    }
    match Secp256k1Identity::from_pem(pem) {
        Ok(identity) => Ok(Arc::new(identity)),
        Err(source) => Err(IdentityError::Key { path, source }),
    }
}

/// Returns the bytes of the block with this label.
fn block(pem: &str, label: &str) -> Option<Vec<u8>> {
    let (_, after) = pem.split_once(&format!("-----BEGIN {label}-----"))?;
    let (text, _) = after.split_once(&format!("-----END {label}-----"))?;
    let text: String = text.split_whitespace().collect();
    STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use ic_agent::Identity as _;

    use super::*;

    /// Keys that were made for this test and are used nowhere else.
    const ED25519_PEM: &str = include_str!("testdata/ed25519.pem");
    const SECP256K1_SEC1: &str = "\
-----BEGIN EC PARAMETERS-----
BgUrgQQACg==
-----END EC PARAMETERS-----
-----BEGIN EC PRIVATE KEY-----
MHQCAQEEICZ1JAk5N8NX6QUSTUhpJlygOv+amUmr/f2ogDMLmctvoAcGBSuBBAAK
oUQDQgAEh2dLxYwExMS7iLJ9AEew90ogA5A2J0KqYwVoLdaB8Jdb2xcJVrsoUlnC
d2aIO0s6ff87WKaheWH08/YBs9XH8A==
-----END EC PRIVATE KEY-----
";
    const SECP256K1_PKCS8: &str = "\
-----BEGIN PRIVATE KEY-----
MIGEAgEAMBAGByqGSM49AgEGBSuBBAAKBG0wawIBAQQgJnUkCTk3w1fpBRJNSGkm
XKA6/5qZSav9/aiAMwuZy2+hRANCAASHZ0vFjATExLuIsn0AR7D3SiADkDYnQqpj
BWgt1oHwl1vbFwlWuyhSWcJ3Zog7Szp9/ztYpqF5YfTz9gGz1cfw
-----END PRIVATE KEY-----
";
    const PRIME256V1: &str = "\
-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIIlhwQ/rnH7t/ZydNri8mZWeG9u8ddszXvUtckffspQhoAoGCCqGSM49
AwEHoUQDQgAElhFopObe/OCAKgBIvuV1nFU+K2V1NUpY808QlJ421RoYD+GXN/rq
RH6gcchzjLZnnEuZs00TY28YG4abWCP+Bg==
-----END EC PRIVATE KEY-----
";

    fn principal(pem: &str) -> Result<String, IdentityError> {
        parse(pem, PathBuf::from("key.pem")).map(|identity| identity.sender().unwrap().to_text())
    }

    #[test]
    fn both_kinds_of_keys_are_read() {
        let ed25519 = principal(ED25519_PEM).unwrap();
        assert_eq!(ed25519.len(), 63);
        let secp256k1 = principal(SECP256K1_SEC1).unwrap();
        assert_eq!(principal(SECP256K1_PKCS8).unwrap(), secp256k1, "the same key");
        assert_ne!(ed25519, secp256k1);
    }

    #[test]
    fn without_a_file_the_caller_is_anonymous() {
        assert_eq!(identity(None).unwrap().sender().unwrap().to_text(), "2vxsx-fae");
    }

    #[test]
    fn a_key_that_others_can_read_is_reported() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        std::fs::write(&path, ED25519_PEM).unwrap();
        for (mode, reported) in [(0o600, false), (0o400, false), (0o640, true), (0o604, true)] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(exposed(&path).is_some(), reported, "{mode:o}");
            assert!(identity(Some(&path)).is_ok());
        }
        assert_eq!(exposed(&folder.path().join("missing")), None);
        assert!(identity(Some(Path::new("/dev/zero"))).is_err(), "it is not read forever");
    }

    #[test]
    fn invalid_identities_are_refused() {
        let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\n-----END ENCRYPTED PRIVATE KEY-----";
        assert!(matches!(principal(locked), Err(IdentityError::Locked { .. })));
        assert!(matches!(principal("no key"), Err(IdentityError::Kind { .. })));
        assert!(matches!(principal(PRIME256V1), Err(IdentityError::Key { .. })));
        // Cut short, but still base64.
        let mut der = block(ED25519_PEM, "PRIVATE KEY").unwrap();
        der.truncate(30);
        let short = STANDARD.encode(der);
        let short = format!("-----BEGIN PRIVATE KEY-----\n{short}\n-----END PRIVATE KEY-----\n");
        assert!(matches!(principal(&short), Err(IdentityError::Kind { .. })));
        let missing = identity(Some(Path::new("missing.pem"))).err().unwrap();
        assert!(matches!(missing, IdentityError::Read { .. }));
    }
}
