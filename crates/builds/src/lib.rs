//! The computations of the suite builds, and the model that checks them.
//!
//! They are not in the crates of the other suites: what those contain decides the order of functions
//! in the modules of all canisters, and so their hashes.

pub mod model;
mod transfer;

use candid::CandidType;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use stablebench_protocol::{Engine, Error, Part, Result, SuiteJob};

pub use transfer::{Account, Transfer, from_candid, from_cbor, to_candid, to_cbor};

/// The engine of rows in a `std::collections::BTreeMap` on the heap.
pub const HEAP: Engine = Engine::named("heap");

/// The most bytes or values of an operation.
pub const MAX_SIZE: u32 = 1 << 20;

/// A computation. Each operation of a part does the same work.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builds {
    /// Decodes so many transfers from Candid.
    #[serde(rename = "candid")]
    Candid(u32),
    /// Encodes so many transfers in CBOR, and decodes them.
    #[serde(rename = "cbor")]
    Cbor(u32),
    /// The SHA-256 of so many bytes.
    #[serde(rename = "sha256")]
    Sha256(u32),
}

impl SuiteJob for Builds {
    const SUITE: &'static str = "builds";
}

impl Builds {
    /// Returns the number of transfers or bytes of an operation.
    pub fn size(self) -> u32 {
        match self {
            Self::Candid(size) | Self::Cbor(size) | Self::Sha256(size) => size,
        }
    }
}

/// Checks a part.
///
/// # Errors
///
/// If an operation is larger than [`MAX_SIZE`].
pub fn check(job: Builds, part: &Part) -> Result<()> {
    if job.size() > MAX_SIZE {
        return Err(Error::TooManyRows { limit: MAX_SIZE.into() });
    }
    match part.count {
        0 => Err(Error::NoRows),
        _ => Ok(()),
    }
}

/// Returns the bytes that are hashed: they count up, 0, 1, … 250, 0, …
pub fn hashed(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

/// Returns the SHA-256 of bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
