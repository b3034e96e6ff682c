//! Jobs of the suite on the wire.

use candid::CandidType;
use serde::{Deserialize, Serialize};
use stablebench_protocol::{Engine, SuiteJob};

/// The engine of rows in a `std::collections::BTreeMap` on the heap.
pub const HEAP: Engine = Engine::named("heap");

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
