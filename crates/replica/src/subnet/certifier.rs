//! Signatures of certified data, which queries can read.

use std::fmt;
use std::sync::Arc;

use ic_principal::Principal;

/// A function that signs the certified data of a canister at a time.
pub type Sign = dyn Fn(Principal, &[u8], u64) -> Vec<u8> + Send + Sync;

/// A function that signs certified data.
#[derive(Clone)]
pub struct Certifier(pub Arc<Sign>);

impl fmt::Debug for Certifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certifier")
    }
}
