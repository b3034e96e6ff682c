//! Where canisters run. A suite does not know which replica it runs on.

pub mod embedded;

use anyhow::{Context, Result, bail};
use candid::utils::ArgumentEncoder;
use candid::{CandidType, encode_args};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Something that canisters run on.
pub trait Replica: Sync {
    /// What it is and in which version.
    fn identity(&self) -> Identity;

    /// A canister with that module installed, controlled by the caller of all
    /// messages.
    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>>;
}

/// Which replica it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// `embedded`.
    pub kind: String,
    /// Its version.
    pub version: String,
}

/// A canister with a module.
pub trait Canister: Send {
    /// Sends an update and waits for its reply.
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Reply>;

    /// Asks a query.
    fn query(&self, method: &str, argument: &[u8]) -> Result<Reply>;

    /// A second canister with the same content.
    fn fork(&self) -> Result<Box<dyn Canister>>;
}

/// A reply and what it cost outside of what the canister can see.
#[derive(Clone, Debug)]
pub struct Reply {
    pub bytes: Vec<u8>,
    pub cost: Cost,
}

/// What a message cost the canister.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// What the instruction counter read when the message ended.
    pub instructions: u64,
    /// Instructions paid for: those, and 1 000 for each heap page changed.
    pub charge: u64,
    /// Cycles paid.
    pub cycles: u64,
    /// Heap pages of 4 KiB whose content changed.
    pub heap_pages_changed: u64,
    /// Stable pages of 4 KiB read or written.
    pub stable_pages_accessed: u64,
    /// Stable pages of 4 KiB written.
    pub stable_pages_written: u64,
}

/// Calls an update that answers `variant { Ok : T; Err }`.
pub fn update<T>(
    canister: &mut dyn Canister,
    method: &str,
    arguments: impl ArgumentEncoder,
) -> Result<(T, Cost)>
where
    T: CandidType + DeserializeOwned,
{
    let reply = canister.update(method, &encode_args(arguments)?)?;
    Ok((decode(method, &reply.bytes)?, reply.cost))
}

/// Asks a query that answers `variant { Ok : T; Err }`.
pub fn query<T>(canister: &dyn Canister, method: &str, arguments: impl ArgumentEncoder) -> Result<T>
where
    T: CandidType + DeserializeOwned,
{
    let reply = canister.query(method, &encode_args(arguments)?)?;
    decode(method, &reply.bytes)
}

fn decode<T>(method: &str, bytes: &[u8]) -> Result<T>
where
    T: CandidType + DeserializeOwned,
{
    let answer = candid::decode_one::<stablebench_protocol::Result<T>>(bytes)
        .with_context(|| format!("{method} answered something else than expected"))?;
    match answer {
        Ok(value) => Ok(value),
        Err(error) => bail!("{method}: {error}"),
    }
}
