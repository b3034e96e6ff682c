//! The access to a network. The caller's key is in a PEM file:
//!
//! ```text
//!   PRIVATE KEY       PKCS#8: Ed25519, secp256k1     dfx before 0.12, icp-cli, openssl genpkey
//!   EC PRIVATE KEY    SEC1: secp256k1                dfx, openssl ecparam
//! ```

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use candid::Principal;
use ic_agent::Identity;
use ic_agent::identity::{AnonymousIdentity, BasicIdentity, PemError, Secp256k1Identity};
use stablebench_replica::files;

use crate::replica::address::Address;

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
pub enum IdentityError {
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
pub fn identity(path: Option<&Path>) -> Result<Arc<dyn Identity>, IdentityError> {
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

fn parse(pem: &str, path: PathBuf) -> Result<Arc<dyn Identity>, IdentityError> {
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
    use super::*;

    /// Keys that were made for this test and are used nowhere else.
    const ED25519_PEM: &str = include_str!("testdata/ed25519.pem");
    const SECP256K1_SEC1: &str = include_str!("testdata/secp256k1_sec1.pem");
    const SECP256K1_PKCS8: &str = include_str!("testdata/secp256k1_pkcs8.pem");
    const PRIME256V1: &str = include_str!("testdata/prime256v1.pem");

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
