//! A connection to a replica by its URL: the agent with blocking calls, and the methods of the
//! management canister.
//!
//! The agent verifies every certificate with the root key, and signatures of queries if the
//! replica is not on this machine.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use candid::utils::{ArgumentDecoder, ArgumentEncoder};
use candid::{CandidType, Nat, Principal, encode_args};
use ic_agent::agent::{CallResponse, RequestStatusResponse};
use ic_agent::export::reqwest;
use ic_agent::hash_tree::Label;
use ic_agent::{Agent, AgentError, Identity, NonceFactory};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterInstallMode, ChunkHash, DeleteCanisterSnapshotArgs,
    InstallChunkedCodeArgs, InstallCodeArgs, LoadCanisterSnapshotArgs, TakeCanisterSnapshotArgs,
    UpgradeFlags, UploadChunkArgs, UploadChunkResult, WasmMemoryPersistence,
};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;

use super::sending::{
    self, Call, EXPIRY, NetworkError, Outcome, Retry, Signed, Submitted, Wire, is_passing, now,
    reject, rising, submitted,
};
use crate::canisters::keeps_heap;
use crate::interrupt;
use crate::replica::Reject;
use crate::replica::decoding::decode_args;
use crate::replica::options::Address;

/// The maximum number of repetitions of a query without an answer.
const MAX_REPETITIONS: u32 = 5;
/// The time limit for a replica's status.
const STATUS: Duration = Duration::from_secs(10);
/// The time limit of one request: more than a replica's limit for a query. A call may take longer,
/// because its status is polled.
const REQUEST: Duration = Duration::from_secs(180);
/// The time limit for connecting.
const CONNECT: Duration = Duration::from_secs(20);
/// The maximum size of a response, in bytes: more than the largest reply and its certificate.
const MAX_RESPONSE: usize = 16 << 20;
/// The delay by which a node that answers a query may lag behind the one that executed the last
/// update.
const BEHIND: Duration = Duration::from_secs(3);

/// The size from which a module is uploaded in chunks: an ingress message has 2 MiB, including its
/// envelope.
const CHUNKED_FROM: usize = 1_900_000;
/// The size of a chunk in bytes. Source: the Interface Specification, `upload_chunk`.
const CHUNK: usize = 1 << 20;

/// A mode of installing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InstallMode {
    /// Everything is dropped.
    Reinstall,
    /// Stable memory stays, and the heap if the module has enhanced orthogonal persistence.
    Upgrade,
}

/// A snapshot's id.
pub(super) type Snapshot = Vec<u8>;

/// The part of `canister_status` that is used here.
#[derive(CandidType, Deserialize, Debug)]
pub(super) struct Status {
    pub status: RunState,
    pub cycles: Nat,
}

/// The state of a canister.
#[derive(CandidType, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunState {
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

/// A connection to a replica with an identity.
pub(super) struct Link {
    runtime: Runtime,
    agent: Agent,
    address: Address,
    caller: Principal,
}

impl Link {
    /// Connects, and returns the replica's version too if it reports one.
    ///
    /// The root key is `root_key`, else fetched from a replica on this machine, else the
    /// mainnet's.
    pub fn connect(
        address: Address,
        identity: Arc<dyn Identity>,
        root_key: Option<&[u8]>,
    ) -> Result<(Self, Option<String>)> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let caller = identity.sender().map_err(AgentError::SigningError)?;
        let agent = {
            let _inside = runtime.enter();
            Agent::builder()
                .with_url(address.url())
                .with_arc_identity(identity)
                // Requests differ by their expiry; the bytes of a nonce would cost cycles.
                .with_nonce_factory(NonceFactory::empty())
                .with_verify_query_signatures(!address.is_local())
                .with_http_client(client()?)
                .with_max_response_body_size(MAX_RESPONSE)
                .build()?
        };
        let link = Self { runtime, agent, address, caller };
        let asked = async { tokio::time::timeout(STATUS, link.agent.status()).await };
        let answered = link.runtime.block_on(asked);
        let answered = answered.unwrap_or(Err(AgentError::TimeoutWaitingForResponse()));
        let status = answered.map_err(|source| NetworkError::Unreachable {
            url: link.address.to_string(),
            source,
        })?;
        match (root_key, status.root_key) {
            (Some(key), _) => link.agent.set_root_key(key.to_vec()),
            (None, Some(key)) if link.is_local() => link.agent.set_root_key(key),
            (None, None) if link.is_local() => {
                return Err(NetworkError::NoRootKey { url: link.address.to_string() }.into());
            }
            (None, _) => {}
        }
        Ok((link, status.impl_version))
    }

    pub fn is_local(&self) -> bool {
        self.address.is_local()
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    pub fn caller(&self) -> Principal {
        self.caller
    }

    /// Sends an update and waits for its answer.
    pub fn update(&self, call: &Call<'_>, retry: Retry) -> Result<Outcome> {
        fatal_as_error(sending::send(self, call, retry)?, call.effective, self.caller)
    }

    /// Sends a query.
    pub fn query(&self, call: &Call<'_>) -> Result<Outcome> {
        let mut repeated = 0;
        loop {
            let query = self
                .agent
                .query(&call.canister, call.method)
                .with_effective_canister_id(call.effective)
                .with_arg(call.argument);
            let answer = match self.runtime.block_on(query.call()) {
                Ok(reply) => Ok(reply),
                Err(
                    AgentError::UncertifiedReject { reject: response, .. }
                    | AgentError::CertifiedReject { reject: response, .. },
                ) => Err(reject(response)),
                Err(error) if is_passing(&error) && repeated < MAX_REPETITIONS => {
                    repeated += 1;
                    self.check()?;
                    self.pause(Duration::from_millis(200) * repeated);
                    continue;
                }
                Err(source) => {
                    let (method, url) = (call.method.to_owned(), self.address.to_string());
                    return Err(NetworkError::Failed { method, url, source }.into());
                }
            };
            return fatal_as_error(answer, call.effective, self.caller);
        }
    }

    /// Waits until all nodes have executed the last update, before queries.
    pub fn settle(&self) {
        if !self.is_local() {
            self.pause(BEHIND);
        }
    }

    /// Returns the certified hash of the canister's module, if it has one.
    pub fn module_hash(&self, canister: Principal) -> Result<Option<Vec<u8>>> {
        self.certified(canister, || self.agent.read_state_canister_module_hash(canister))
    }

    /// Returns the certified controllers of the canister, if it exists.
    pub fn controllers(&self, canister: Principal) -> Result<Option<Vec<Principal>>> {
        self.certified(canister, || self.agent.read_state_canister_controllers(canister))
    }

    /// Returns the id of the canister's subnet, if the replica has more than one.
    pub fn subnet(&self, canister: Principal) -> Result<Option<Principal>> {
        let path = || vec![vec![Label::from("time")]];
        let read = || self.agent.read_state_raw(path(), canister);
        let delegation = self.certified(canister, read)?.and_then(|found| found.delegation);
        Ok(delegation.map(|found| Principal::try_from_slice(&found.subnet_id)).transpose()?)
    }

    /// Reads certified data, if it exists.
    fn certified<T, F: Future<Output = Result<T, AgentError>>>(
        &self,
        canister: Principal,
        read: impl Fn() -> F,
    ) -> Result<Option<T>> {
        let url = self.address.to_string();
        let mut repeated = 0;
        loop {
            let error = match self.runtime.block_on(read()) {
                Ok(found) => return Ok(Some(found)),
                Err(AgentError::LookupPathAbsent(_)) => return Ok(None),
                Err(error) => error,
            };
            if !is_passing(&error) || repeated >= MAX_REPETITIONS {
                return Err(match error {
                    source @ AgentError::CertificateVerificationFailed() => {
                        NetworkError::ForeignKey { url, source }
                    }
                    // No subnet of the replica has that id.
                    source
                    @ (AgentError::CertificateNotAuthorized() | AgentError::HttpError(_)) => {
                        NetworkError::NoCanister { canister, url, source: Some(source) }
                    }
                    source => NetworkError::Failed { method: "read_state".to_owned(), url, source },
                }
                .into());
            }
            repeated += 1;
            self.check()?;
            self.pause(Duration::from_millis(200) * repeated);
        }
    }

    /// Installs a module in place of another, without Candid arguments.
    pub fn install(
        &self,
        canister: Principal,
        mode: InstallMode,
        wasm: &[u8],
    ) -> Result<Result<(), Reject>> {
        let mode = match mode {
            InstallMode::Reinstall => CanisterInstallMode::Reinstall,
            InstallMode::Upgrade if keeps_heap(wasm) => {
                CanisterInstallMode::Upgrade(Some(UpgradeFlags {
                    wasm_memory_persistence: Some(WasmMemoryPersistence::Keep),
                    skip_pre_upgrade: None,
                }))
            }
            InstallMode::Upgrade => CanisterInstallMode::Upgrade(None),
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
            return self.manage(canister, "install_code", (code,), Retry::Idempotent);
        }
        let mut chunk_hashes_list = Vec::new();
        for chunk in wasm.chunks(CHUNK) {
            let chunk = UploadChunkArgs { canister_id: canister, chunk: chunk.to_vec() };
            let uploaded = self.manage(canister, "upload_chunk", (chunk,), Retry::Idempotent)?;
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
        self.manage(canister, "install_chunked_code", (code,), Retry::Idempotent)
    }

    /// Takes a snapshot of the canister, in place of `replaced` if given.
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
        // A repetition would take a second snapshot, or not find the replaced one.
        let taken: Result<(TakenSnapshot,), _> =
            self.manage(canister, "take_canister_snapshot", (arguments,), Retry::Never)?;
        Ok(taken.map(|(snapshot,)| snapshot.id))
    }

    /// Restores the canister from a snapshot.
    pub fn load_snapshot(&self, canister: Principal, snapshot: &Snapshot) -> Result<()> {
        let arguments = LoadCanisterSnapshotArgs {
            canister_id: canister,
            snapshot_id: snapshot.clone(),
            sender_canister_version: None,
        };
        let method = "load_canister_snapshot";
        expected(method, self.manage(canister, method, (arguments,), Retry::Idempotent)?)
    }

    /// Deletes a snapshot, whose storage costs cycles.
    pub fn delete_snapshot(&self, canister: Principal, snapshot: Snapshot) -> Result<()> {
        let arguments = DeleteCanisterSnapshotArgs { canister_id: canister, snapshot_id: snapshot };
        let method = "delete_canister_snapshot";
        expected(method, self.manage(canister, method, (arguments,), Retry::Never)?)
    }

    /// Returns the canister's status.
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
            Asking::Update => self.manage(canister, method, arguments, Retry::Idempotent)?,
        };
        let (status,): (Status,) = expected(method, answered)?;
        Ok(status)
    }

    fn manage<A: ArgumentEncoder, R: for<'a> ArgumentDecoder<'a>>(
        &self,
        canister: Principal,
        method: &str,
        arguments: A,
        retry: Retry,
    ) -> Result<Result<R, Reject>> {
        let argument = encode_args(arguments)?;
        match self.update(&managing(canister, method, &argument), retry)? {
            Ok(reply) => Ok(Ok(decode_args(&reply)?)),
            Err(reject) => Ok(Err(reject)),
        }
    }
}

/// Returns an HTTP client with time limits.
fn client() -> Result<reqwest::Client> {
    let client = reqwest::Client::builder().use_rustls_tls();
    Ok(client.connect_timeout(CONNECT).timeout(REQUEST).build()?)
}

impl Wire for Link {
    fn sign(&self, call: &Call<'_>) -> Result<Signed, AgentError> {
        let mut update = self
            .agent
            .update(&call.canister, call.method)
            .with_effective_canister_id(call.effective)
            .with_arg(call.argument);
        let expiry = rising() + u64::try_from(EXPIRY.as_nanos()).unwrap_or_default();
        update.ingress_expiry_datetime = Some(expiry);
        let signed = update.sign()?;
        Ok(Signed {
            id: signed.request_id,
            bytes: signed.signed_update,
            effective: call.effective,
            expiry,
        })
    }

    fn submit(&self, signed: &Signed) -> Result<Submitted, AgentError> {
        let sent = self.agent.update_signed(signed.effective, signed.bytes.clone());
        match self.runtime.block_on(sent) {
            Ok(CallResponse::Response(reply)) => Ok(Submitted::Answered(Ok(reply))),
            Ok(CallResponse::Poll(_)) => Ok(Submitted::Taken),
            Err(error) => submitted(error),
        }
    }

    fn status(&self, signed: &Signed) -> Result<RequestStatusResponse, AgentError> {
        let status = self.agent.request_status_raw(&signed.id, signed.effective);
        Ok(self.runtime.block_on(status)?.0)
    }

    fn now(&self) -> u64 {
        now()
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn check(&self) -> Result<()> {
        Ok(interrupt::check()?)
    }

    fn url(&self) -> &str {
        self.address.url()
    }
}

/// Turns refusals that all further messages would get into errors.
fn fatal_as_error(outcome: Outcome, canister: Principal, caller: Principal) -> Result<Outcome> {
    let Err(reject) = &outcome else {
        return Ok(outcome);
    };
    Err(match reject.code.as_str() {
        "CanisterOutOfCycles" => NetworkError::OutOfCycles { canister },
        "CanisterStopped" | "CanisterStopping" => NetworkError::Stopped { canister },
        "CanisterInvalidController" | "CanisterStatusAccessDenied" => {
            NetworkError::NotController { canister, caller }
        }
        _ => return Ok(outcome),
    }
    .into())
}

/// A way of asking for a canister's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    Query,
    Update,
}

/// Returns a call of the management canister about a canister.
fn managing<'a>(canister: Principal, method: &'a str, argument: &'a [u8]) -> Call<'a> {
    let management = Principal::management_canister();
    Call { canister: management, effective: canister, method, argument }
}

/// Turns a refusal into an error.
fn expected<T>(method: &str, answered: Result<T, Reject>) -> Result<T> {
    let refused = |reject| NetworkError::Refused { method: method.to_owned(), reject };
    Ok(answered.map_err(refused)?)
}
