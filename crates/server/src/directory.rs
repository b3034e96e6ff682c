//! The subnets that clients see, with their ids, keys and ranges of canister ids.
//!
//! All of them are one subnet of the embedded replica, and the key of the first is the root key, which
//! signs all certificates.

use candid::Principal;

/// A subnet that clients see.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The id.
    pub id: Principal,
    /// The public key in DER.
    pub key: Vec<u8>,
    /// The first and the last canister id of each range.
    pub ranges: Vec<(Principal, Principal)>,
}

impl Listed {
    /// Returns `true` if a canister id is in one of the ranges.
    pub fn hosts(&self, id: &Principal) -> bool {
        self.ranges.iter().any(|(first, last)| first <= id && id <= last)
    }
}

/// The subnets. The first has the root key.
#[derive(Clone, Debug)]
pub struct Directory(pub Vec<Listed>);

impl Directory {
    /// Returns `true` if a canister id is in a range of a subnet.
    pub fn hosts(&self, id: &Principal) -> bool {
        self.0.iter().any(|subnet| subnet.hosts(id))
    }

    /// Returns `true` if a subnet has this id.
    pub fn contains(&self, id: &Principal) -> bool {
        self.0.iter().any(|subnet| subnet.id == *id)
    }
}
