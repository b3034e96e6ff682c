//! Calls of the management canister: code, snapshots.

use candid::utils::{ArgumentDecoder, ArgumentEncoder};
use candid::{Principal, decode_args, encode_args};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, ChunkHash, InstallChunkedCodeArgs, InstallCodeArgs,
    LoadCanisterSnapshotArgs, ProvisionalCreateCanisterWithCyclesArgs, Snapshot as SnapshotInfo,
    TakeCanisterSnapshotArgs, UploadChunkArgs, UploadChunkResult,
};
use sha2::{Digest, Sha256};

use crate::client::{Call, Effective};
use crate::error::{Error, Reject};
use crate::instance::Instance;

/// A module and its argument that are together larger go in chunks: an ingress
/// message to an application subnet has 2 MiB, its envelope included.
const CHUNKED_FROM: usize = 1_900_000;
/// Bytes of a chunk. Source: the Interface Specification, `upload_chunk`.
const CHUNK: usize = 1 << 20;
/// Cycles of a new canister: enough that no benchmark runs out.
const CYCLES: u128 = 1_000_000_000_000_000;

/// How code is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Into an empty canister.
    Install,
    /// Everything that was there is dropped.
    Reinstall,
    /// Stable memory stays.
    Upgrade,
}

/// A canister's whole state, kept by the replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot(Vec<u8>);

impl Instance {
    /// A canister without code, controlled by `controller`, with 1 000 T cycles.
    ///
    /// # Errors
    ///
    /// If the server failed or refused.
    pub fn create_canister(&self, controller: Principal) -> Result<Principal, Error> {
        let arguments = ProvisionalCreateCanisterWithCyclesArgs {
            amount: Some(candid::Nat::from(0_u8)),
            ..Default::default()
        };
        let method = "provisional_create_canister_with_cycles";
        let created = self.manage(Effective::None, controller, method, (arguments,))?;
        let (CanisterIdRecord { canister_id },) = expected(method, created)?;
        // As the recorded cases were: created with nothing, then given cycles.
        self.add_cycles(canister_id, CYCLES)?;
        Ok(canister_id)
    }

    /// Installs a module, in chunks if it is large.
    ///
    /// # Errors
    ///
    /// The outer error if the server failed, the inner one if the module was refused.
    pub fn install(
        &self,
        canister: Principal,
        caller: Principal,
        mode: Mode,
        wasm: &[u8],
        argument: &[u8],
    ) -> Result<Result<(), Reject>, Error> {
        let at = Effective::Canister(canister);
        let mode = match mode {
            Mode::Install => CanisterInstallMode::Install,
            Mode::Reinstall => CanisterInstallMode::Reinstall,
            Mode::Upgrade => CanisterInstallMode::Upgrade(None),
        };
        if wasm.len() + argument.len() < CHUNKED_FROM {
            let code = InstallCodeArgs {
                mode,
                canister_id: canister,
                wasm_module: wasm.to_vec(),
                arg: argument.to_vec(),
                sender_canister_version: None,
            };
            return self.manage(at, caller, "install_code", (code,));
        }
        let mut chunk_hashes_list = Vec::new();
        for chunk in wasm.chunks(CHUNK) {
            let chunk = UploadChunkArgs { canister_id: canister, chunk: chunk.to_vec() };
            match self.manage(at, caller, "upload_chunk", (chunk,))? {
                Ok((UploadChunkResult { hash },)) => chunk_hashes_list.push(ChunkHash { hash }),
                Err(reject) => return Ok(Err(reject)),
            }
        }
        let code = InstallChunkedCodeArgs {
            mode,
            target_canister: canister,
            store_canister: None,
            chunk_hashes_list,
            wasm_module_hash: Sha256::digest(wasm).to_vec(),
            arg: argument.to_vec(),
            sender_canister_version: None,
        };
        self.manage(at, caller, "install_chunked_code", (code,))
    }

    /// Keeps the canister's whole state, in place of `replaced` if one is given: a
    /// canister has ten snapshots at the most.
    ///
    /// # Errors
    ///
    /// If the server failed or refused.
    pub fn take_snapshot(
        &self,
        canister: Principal,
        caller: Principal,
        replaced: Option<&Snapshot>,
    ) -> Result<Snapshot, Error> {
        let arguments = TakeCanisterSnapshotArgs {
            canister_id: canister,
            replace_snapshot: replaced.map(|snapshot| snapshot.0.clone()),
            uninstall_code: None,
            sender_canister_version: None,
        };
        let method = "take_canister_snapshot";
        let taken = self.manage(Effective::Canister(canister), caller, method, (arguments,))?;
        let (SnapshotInfo { id, .. },) = expected(method, taken)?;
        Ok(Snapshot(id))
    }

    /// Puts the canister back to what it was.
    ///
    /// # Errors
    ///
    /// If the server failed or refused.
    pub fn load_snapshot(
        &self,
        canister: Principal,
        caller: Principal,
        snapshot: &Snapshot,
    ) -> Result<(), Error> {
        let arguments = LoadCanisterSnapshotArgs {
            canister_id: canister,
            snapshot_id: snapshot.0.clone(),
            sender_canister_version: None,
        };
        let method = "load_canister_snapshot";
        let loaded = self.manage(Effective::Canister(canister), caller, method, (arguments,))?;
        expected(method, loaded)
    }

    fn manage<A: ArgumentEncoder, R: for<'a> ArgumentDecoder<'a>>(
        &self,
        effective: Effective,
        caller: Principal,
        method: &str,
        arguments: A,
    ) -> Result<Result<R, Reject>, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::Failed {
            during: method.to_owned(),
            message: error.to_string(),
        };
        let argument = encode_args(arguments).map_err(|error| failed(&error))?;
        let call = Call {
            canister: Principal::management_canister(),
            effective,
            caller,
            method,
            argument: &argument,
        };
        match self.send(&call)? {
            Ok(reply) => Ok(Ok(decode_args(&reply).map_err(|error| failed(&error))?)),
            Err(reject) => Ok(Err(reject)),
        }
    }
}

/// A refusal of what must work is the server's fault.
fn expected<T>(method: &str, answered: Result<T, Reject>) -> Result<T, Error> {
    answered
        .map_err(|reject| Error::Failed { during: method.to_owned(), message: reject.to_string() })
}
