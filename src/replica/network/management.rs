//! Calls of the management canister: code, snapshots, what a canister has.

use anyhow::Result;
use candid::utils::{ArgumentDecoder, ArgumentEncoder};
use candid::{CandidType, Nat, Principal, encode_args};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, ChunkHash, DeleteCanisterSnapshotArgs,
    InstallChunkedCodeArgs, InstallCodeArgs, LoadCanisterSnapshotArgs, TakeCanisterSnapshotArgs,
    UploadChunkArgs, UploadChunkResult,
};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::call::{Again, Call};
use super::error::NetworkError;
use super::link::Link;
use crate::replica::Reject;
use crate::replica::decoding::decode_args;

/// A module that is larger goes in chunks: an ingress message has 2 MiB, its envelope included.
const CHUNKED_FROM: usize = 1_900_000;
/// Bytes of a chunk. Source: the Interface Specification, `upload_chunk`.
const CHUNK: usize = 1 << 20;

/// How code is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Everything that was there is dropped.
    Reinstall,
    /// Stable memory stays.
    Upgrade,
}

/// A snapshot's name.
pub(super) type Snapshot = Vec<u8>;

/// What of `canister_status` is of use here. Replicas tell more, the newer the more.
#[derive(CandidType, Deserialize, Debug)]
pub(super) struct Status {
    pub status: State,
    pub cycles: Nat,
}

/// Whether a canister takes messages.
#[derive(CandidType, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    #[serde(rename = "running")]
    Running,
    #[serde(rename = "stopping")]
    Stopping,
    #[serde(rename = "stopped")]
    Stopped,
}

#[derive(CandidType, Deserialize)]
struct TakenSnapshot {
    id: Snapshot,
}

impl Link {
    /// Puts a module into a canister that has one, with no Candid arguments.
    pub fn install(
        &self,
        canister: Principal,
        mode: Mode,
        wasm: &[u8],
    ) -> Result<Result<(), Reject>> {
        let mode = match mode {
            Mode::Reinstall => CanisterInstallMode::Reinstall,
            Mode::Upgrade => CanisterInstallMode::Upgrade(None),
        };
        let arg = encode_args(())?;
        if wasm.len() < CHUNKED_FROM {
            let code = InstallCodeArgs {
                mode,
                canister_id: canister,
                wasm_module: wasm.to_vec(),
                arg,
                sender_canister_version: None,
            };
            return self.manage(canister, "install_code", (code,), Again::Harmless);
        }
        let mut chunk_hashes_list = Vec::new();
        for chunk in wasm.chunks(CHUNK) {
            let chunk = UploadChunkArgs { canister_id: canister, chunk: chunk.to_vec() };
            let uploaded = self.manage(canister, "upload_chunk", (chunk,), Again::Harmless)?;
            let (UploadChunkResult { hash },) = expected("upload_chunk", uploaded)?;
            chunk_hashes_list.push(ChunkHash { hash });
        }
        let code = InstallChunkedCodeArgs {
            mode,
            target_canister: canister,
            store_canister: None,
            chunk_hashes_list,
            wasm_module_hash: Sha256::digest(wasm).to_vec(),
            arg,
            sender_canister_version: None,
        };
        self.manage(canister, "install_chunked_code", (code,), Again::Harmless)
    }

    /// Keeps the canister's whole state, in place of `replaced` if one is given.
    pub fn take_snapshot(
        &self,
        canister: Principal,
        replaced: Option<&Snapshot>,
    ) -> Result<Result<Snapshot, Reject>> {
        let arguments = TakeCanisterSnapshotArgs {
            canister_id: canister,
            replace_snapshot: replaced.cloned(),
            uninstall_code: None,
            sender_canister_version: None,
        };
        // A second would be kept beside the first, or would not find what it replaces.
        let taken: Result<(TakenSnapshot,), _> =
            self.manage(canister, "take_canister_snapshot", (arguments,), Again::Never)?;
        Ok(taken.map(|(snapshot,)| snapshot.id))
    }

    /// Puts the canister back to what it was.
    pub fn load_snapshot(&self, canister: Principal, snapshot: &Snapshot) -> Result<()> {
        let arguments = LoadCanisterSnapshotArgs {
            canister_id: canister,
            snapshot_id: snapshot.clone(),
            sender_canister_version: None,
        };
        let method = "load_canister_snapshot";
        expected(method, self.manage(canister, method, (arguments,), Again::Harmless)?)
    }

    /// Drops a snapshot, which would be paid for as long as it is there.
    pub fn delete_snapshot(&self, canister: Principal, snapshot: Snapshot) -> Result<()> {
        let arguments = DeleteCanisterSnapshotArgs { canister_id: canister, snapshot_id: snapshot };
        let method = "delete_canister_snapshot";
        expected(method, self.manage(canister, method, (arguments,), Again::Never)?)
    }

    /// What the canister has. A query where one machine is the whole replica; elsewhere a node
    /// that answers a query may be behind.
    pub fn canister_status(&self, canister: Principal, asking: Asking) -> Result<Status> {
        let method = "canister_status";
        let arguments = (CanisterIdRecord { canister_id: canister },);
        let answered = match asking {
            Asking::Query => {
                let argument = encode_args(arguments)?;
                self.query(&managing(canister, method, &argument))?
                    .map(|reply| decode_args(&reply))
                    .map_or_else(|reject| Ok(Err(reject)), |status| status.map(Ok))?
            }
            Asking::Update => self.manage(canister, method, arguments, Again::Harmless)?,
        };
        let (status,): (Status,) = expected(method, answered)?;
        Ok(status)
    }

    fn manage<A: ArgumentEncoder, R: for<'a> ArgumentDecoder<'a>>(
        &self,
        canister: Principal,
        method: &str,
        arguments: A,
        again: Again,
    ) -> Result<Result<R, Reject>> {
        let argument = encode_args(arguments)?;
        match self.update(&managing(canister, method, &argument), again)? {
            Ok(reply) => Ok(Ok(decode_args(&reply)?)),
            Err(reject) => Ok(Err(reject)),
        }
    }
}

/// How a canister is asked for what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    Query,
    Update,
}

/// A call of the management canister about a canister.
fn managing<'a>(canister: Principal, method: &'a str, argument: &'a [u8]) -> Call<'a> {
    let management = Principal::management_canister();
    Call { canister: management, effective: canister, method, argument }
}

/// A refusal of what must work is an error.
fn expected<T>(method: &str, answered: Result<T, Reject>) -> Result<T> {
    let refused = |reject| NetworkError::Refused { method: method.to_owned(), reject };
    Ok(answered.map_err(refused)?)
}
