//! Signatures of certified data, which queries can read.

use std::fmt;
use std::sync::Arc;

use ic_principal::Principal;

use crate::system_api::message::Certificate;

/// A function that signs the certified data of a canister at a time.
pub type Sign = dyn Fn(Principal, &[u8], u64) -> Vec<u8> + Send + Sync;

/// A function that signs certified data.
#[derive(Clone)]
pub struct Certifier(pub Arc<Sign>);

impl Certifier {
    /// Returns the certificate of a canister's data, which is signed when it is first read.
    pub fn certificate(&self, canister: Principal, data: &[u8], time: u64) -> Certificate {
        let (sign, data) = (Arc::clone(&self.0), data.to_vec());
        Certificate::new(move || sign(canister, &data, time))
    }
}

impl fmt::Debug for Certifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certifier")
    }
}
