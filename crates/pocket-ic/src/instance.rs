//! One subnet on a server: messages, rounds, balances, code and snapshots.
//!
//! Time passes only in the rounds that messages need. A message of more than 2 G instructions
//! takes several rounds. A canister that changed much of its memory waits some rounds for its
//! next message (the heap-delta rate limit), and rejects code and snapshots until then. Both are
//! waited for.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use candid::utils::{ArgumentDecoder, ArgumentEncoder};
use candid::{Principal, decode_args, encode_args};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, ChunkHash, InstallChunkedCodeArgs, InstallCodeArgs,
    LoadCanisterSnapshotArgs, ProvisionalCreateCanisterWithCyclesArgs, Snapshot as SnapshotInfo,
    TakeCanisterSnapshotArgs, UpgradeFlags, UploadChunkArgs, UploadChunkResult,
    WasmMemoryPersistence,
};
use sha2::{Digest, Sha256};

use crate::client::{Client, Effective, HttpAnswer, MethodCall, Outcome, Reject, Subnet};
use crate::{Error, Server};

/// The most rounds that a message waits. An install may take 150 slices, and a canister that
/// changed 2 GiB waits 27 more rounds.
const MAX_ROUNDS: u32 = 1_000;
/// Rounds between two attempts after a rate limit.
const RETRY_ROUNDS: u32 = 10;
/// The size of module and argument from which the module is sent in chunks: an ingress message to
/// an application subnet has at most 2 MiB, its envelope included.
const CHUNKED_FROM: usize = 1_900_000;
/// Bytes of a chunk. Source: the Interface Specification, `upload_chunk`.
const CHUNK: usize = 1 << 20;
/// Cycles with which a canister is created, enough for every benchmark. Since 2026 a canister without
/// cycles is refused, because the store of its log costs some.
const CYCLES: u128 = 1_000_000_000_000_000;

/// The mode of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Into an empty canister.
    Install,
    /// Drops the canister's state.
    Reinstall,
    /// Keeps stable memory.
    Upgrade,
    /// Keeps the heap as well, which needs a module with enhanced orthogonal persistence.
    UpgradeKeepingHeap,
}

/// A snapshot of a canister's whole state, which the replica keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot(Vec<u8>);

/// A subnet of its own on a server. It is deleted when it is dropped.
pub struct Instance {
    server: Arc<Server>,
    /// `None` once the instance is deleted.
    client: Option<Box<dyn Client>>,
}

impl Instance {
    /// Creates an instance: one subnet without canisters.
    ///
    /// # Errors
    ///
    /// If the server exited or refused.
    pub fn create(server: &Arc<Server>, subnet: Subnet) -> Result<Self, Error> {
        let client = server.connect(subnet)?;
        Ok(Self { server: Arc::clone(server), client: Some(client) })
    }

    /// Sends an update and executes rounds until it is answered.
    ///
    /// # Errors
    ///
    /// The outer error if the server failed; the inner one is the canister's reject.
    pub fn update(
        &self,
        canister: Principal,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Outcome, Error> {
        self.update_with_outcalls(canister, caller, method, argument, &[])
    }

    /// Sends an update and executes rounds until it is answered. HTTPS outcalls get these answers,
    /// in order.
    ///
    /// # Errors
    ///
    /// The outer error if the server failed; the inner one is the canister's reject.
    pub fn update_with_outcalls(
        &self,
        canister: Principal,
        caller: Principal,
        method: &str,
        argument: &[u8],
        outcalls: &[HttpAnswer],
    ) -> Result<Outcome, Error> {
        let effective = Effective::Canister(canister);
        self.send(&MethodCall { canister, effective, caller, method, argument, outcalls })
    }

    /// Sends a message to the management canister about `canister`, and executes rounds until it is
    /// answered.
    ///
    /// # Errors
    ///
    /// The outer error if the server failed; the inner one is the reject.
    pub fn manage(
        &self,
        canister: Principal,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Outcome, Error> {
        let effective = Effective::Canister(canister);
        let canister = Principal::management_canister();
        self.send(&MethodCall { canister, effective, caller, method, argument, outcalls: &[] })
    }

    /// Sends a query.
    ///
    /// # Errors
    ///
    /// The outer error if the server failed; the inner one is the canister's reject.
    pub fn query(
        &self,
        canister: Principal,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Outcome, Error> {
        let effective = Effective::Canister(canister);
        let call = MethodCall { canister, effective, caller, method, argument, outcalls: &[] };
        self.request(method, |client| client.query(&call))
    }

    /// Returns the time of the last round, in nanoseconds since 1970.
    ///
    /// # Errors
    ///
    /// If the server failed.
    pub fn time(&self) -> Result<u64, Error> {
        self.request("reading the time", |client| client.time())
    }

    /// Returns the canister's cycles.
    ///
    /// # Errors
    ///
    /// If the server failed.
    pub fn balance(&self, canister: Principal) -> Result<u128, Error> {
        self.request("reading a balance", |client| client.balance(canister))
    }

    /// Adds cycles to the canister.
    ///
    /// # Errors
    ///
    /// If the server failed.
    pub fn add_cycles(&self, canister: Principal, amount: u128) -> Result<(), Error> {
        self.request("adding cycles", |client| client.add_cycles(canister, amount))
    }

    /// Executes one round.
    ///
    /// # Errors
    ///
    /// If the server failed.
    pub fn round(&self) -> Result<(), Error> {
        self.request("a round", |client| client.round())
    }

    /// Advances the time of the next round.
    ///
    /// # Errors
    ///
    /// If the server failed.
    pub fn advance(&self, by: Duration) -> Result<(), Error> {
        self.request("advancing the time", |client| client.advance(by))
    }

    /// Creates a canister without code, controlled by `controller`, with 1 000 T cycles.
    ///
    /// # Errors
    ///
    /// If the server failed or refused.
    pub fn create_canister(&self, controller: Principal) -> Result<Principal, Error> {
        let arguments = ProvisionalCreateCanisterWithCyclesArgs {
            amount: Some(candid::Nat::from(CYCLES)),
            ..Default::default()
        };
        let method = "provisional_create_canister_with_cycles";
        let created = self.call_management(Effective::None, controller, method, (arguments,))?;
        let (CanisterIdRecord { canister_id },) = expected(method, created)?;
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
            Mode::UpgradeKeepingHeap => CanisterInstallMode::Upgrade(Some(UpgradeFlags {
                wasm_memory_persistence: Some(WasmMemoryPersistence::Keep),
                skip_pre_upgrade: None,
            })),
        };
        if wasm.len() + argument.len() < CHUNKED_FROM {
            let code = InstallCodeArgs {
                mode,
                canister_id: canister,
                wasm_module: wasm.to_vec(),
                arg: argument.to_vec(),
                sender_canister_version: None,
            };
            return self.call_management(at, caller, "install_code", (code,));
        }
        let mut chunk_hashes_list = Vec::new();
        for chunk in wasm.chunks(CHUNK) {
            let chunk = UploadChunkArgs { canister_id: canister, chunk: chunk.to_vec() };
            match self.call_management(at, caller, "upload_chunk", (chunk,))? {
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
        self.call_management(at, caller, "install_chunked_code", (code,))
    }

    /// Takes a snapshot of the canister's whole state, in place of `replaced` if that is given: a
    /// canister has at most ten snapshots.
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
        let taken =
            self.call_management(Effective::Canister(canister), caller, method, (arguments,))?;
        let (SnapshotInfo { id, .. },) = expected(method, taken)?;
        Ok(Snapshot(id))
    }

    /// Restores the canister from a snapshot.
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
        let loaded =
            self.call_management(Effective::Canister(canister), caller, method, (arguments,))?;
        expected(method, loaded)
    }

    fn call_management<A: ArgumentEncoder, R: for<'a> ArgumentDecoder<'a>>(
        &self,
        effective: Effective,
        caller: Principal,
        method: &str,
        arguments: A,
    ) -> Result<Result<R, Reject>, Error> {
        let failed = |error: &dyn fmt::Display| Error::Failed {
            during: method.to_owned(),
            message: error.to_string(),
        };
        let argument = encode_args(arguments).map_err(|error| failed(&error))?;
        let call = MethodCall {
            canister: Principal::management_canister(),
            effective,
            caller,
            method,
            argument: &argument,
            outcalls: &[],
        };
        #[expect(clippy::disallowed_methods, reason = "the server's management canister replies")]
        match self.send(&call)? {
            Ok(reply) => Ok(Ok(decode_args(&reply).map_err(|error| failed(&error))?)),
            Err(reject) => Ok(Err(reject)),
        }
    }

    /// Sends a message, and sends it again while a rate limit rejects it.
    fn send(&self, call: &MethodCall<'_>) -> Result<Outcome, Error> {
        let mut waited = 0;
        loop {
            let answer = self.request(call.method, |client| client.update(call, MAX_ROUNDS))?;
            let outcome = answer.ok_or_else(|| Error::Unanswered {
                during: call.method.to_owned(),
                rounds: MAX_ROUNDS,
            })?;
            match outcome {
                Err(reject) if is_rate_limit(&reject.code) && waited < MAX_ROUNDS => {
                    for _ in 0..RETRY_ROUNDS {
                        self.round()?;
                    }
                    waited += RETRY_ROUNDS;
                }
                outcome => return Ok(outcome),
            }
        }
    }

    fn request<T>(&self, name: &str, request: impl FnOnce(&dyn Client) -> T) -> Result<T, Error> {
        match &self.client {
            Some(client) => self.server.request(name, || request(&**client)),
            None => Err(Error::Failed {
                during: name.to_owned(),
                message: "the instance was deleted".to_owned(),
            }),
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            // If the server has exited, there is no instance left to delete.
            let _ = self.server.request("the deletion of an instance", || client.delete());
        }
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").field("server", &self.server).finish_non_exhaustive()
    }
}

/// Returns `true` if the message would be accepted some rounds later.
fn is_rate_limit(code: &str) -> bool {
    matches!(code, "CanisterInstallCodeRateLimited" | "CanisterHeapDeltaRateLimited")
}

/// Turns the reject of a call that must succeed into an error of the server.
fn expected<T>(method: &str, result: Result<T, Reject>) -> Result<T, Error> {
    result
        .map_err(|reject| Error::Failed { during: method.to_owned(), message: reject.to_string() })
}
