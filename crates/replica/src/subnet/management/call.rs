//! Calls of the management canister: their arguments, their rejects and their answers.
//!
//! Arguments and answers that are not here have the types of `ic-management-canister-types`. Others
//! are, for three reasons. Large bytes are decoded one by one there, which takes ten milliseconds for a
//! megabyte. The replica bounds some lists while it decodes them. And the size of a reply decides what
//! its callback costs, so answers have the fields of the replica's.

use std::fmt;
use std::marker::PhantomData;

use candid::types::{Serializer, Type};
use candid::utils::{ArgumentDecoder, ArgumentEncoder};
use candid::{CandidType, Nat, Principal, Reserved};
use ic_management_canister_types::{
    CanisterInstallMode, CanisterStatusResult, CanisterStatusType, EnvironmentVariable, HttpHeader,
    HttpRequestArgs, HttpRequestResult, LogVisibility, QueryStats, SnapshotDataOffset, SnapshotId,
};
use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::decoding::{MANAGEMENT, decode_argument};
use crate::execution::Cause;
use crate::fault::{ErrorCode, Help, HostError, Reject, RejectCode, grouped};
use crate::rules::Rules;
use crate::subnet::messages::Origin;
use crate::units::Cycles;

/// A call of the management canister.
#[derive(Clone, Debug)]
pub struct ManagementCall {
    /// The source of the call.
    pub origin: Origin,
    /// The part of the subnet in which it creates canisters.
    pub part: usize,
    /// The method.
    pub method: String,
    /// The argument.
    pub argument: Vec<u8>,
    /// Cycles that came with the call and were not taken.
    pub cycles: Cycles,
    /// The execution that made it.
    pub cause: Cause,
}

impl ManagementCall {
    pub fn caller(&self) -> Principal {
        self.origin.caller()
    }

    /// The source of a change.
    pub fn change_origin(&self, canister_version: Option<u64>) -> ChangeOrigin {
        match self.origin {
            Origin::Canister { caller: canister_id, .. } => {
                ChangeOrigin::Canister { canister_id, canister_version }
            }
            _ => ChangeOrigin::User { user_id: self.caller() },
        }
    }

    pub fn decode<T: CandidType + DeserializeOwned>(&self) -> Result<T, Reject> {
        decode(&self.argument)
    }

    /// Takes a fee from the cycles that came with the call.
    pub fn pay(&mut self, fee: Cycles) -> Result<(), Reject> {
        if self.cycles < fee {
            let message = format!(
                "{} request sent with {} cycles, but {} cycles are required.",
                self.method,
                grouped(self.cycles),
                grouped(fee)
            );
            return Err(invalid(ErrorCode::CanisterRejectedMessage, message));
        }
        self.cycles = self.cycles - fee;
        Ok(())
    }
}

/// The result of a method: a reject, or a host without memory.
pub enum Failed {
    Reject(Reject),
    Host(HostError),
}

impl From<Reject> for Failed {
    fn from(reject: Reject) -> Self {
        Self::Reject(reject)
    }
}

impl From<HostError> for Failed {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

pub type Outcome = Result<Vec<u8>, Failed>;

/// The reject of most methods about a canister that does not exist.
pub fn canister_not_found(id: &Principal) -> Reject {
    let message = format!("Canister {id} not found.");
    Reject { code: ErrorCode::CanisterNotFound, message }
}

/// The reject of the others, with a suggestion.
pub fn canister_not_found_anywhere(rules: Rules, reject: Reject) -> Reject {
    match reject.code {
        ErrorCode::CanisterNotFound => refusal(
            rules,
            reject.code,
            reject.message,
            "Check the ICP dashboard to ensure the canister exists.",
            "canister-not-found",
        ),
        _ => reject,
    }
}

/// A reject with a suggestion in its second line, which links to the page of the rules.
pub fn refusal(
    rules: Rules,
    code: ErrorCode,
    text: impl Into<String>,
    suggestion: &'static str,
    section: &'static str,
) -> Reject {
    let help = Help { suggestion, section }.line(rules);
    Reject { code, message: format!("{}\n{help}", text.into()) }
}

/// A reject because of an argument.
pub fn invalid(code: ErrorCode, message: impl Into<String>) -> Reject {
    Reject { code, message: message.into() }
}

pub fn decode<T: CandidType + DeserializeOwned>(argument: &[u8]) -> Result<T, Reject> {
    decode_all::<(T,)>(argument).map(|(one,)| one)
}

pub fn decode_all<'a, T: ArgumentDecoder<'a>>(argument: &'a [u8]) -> Result<T, Reject> {
    decode_argument(argument, MANAGEMENT).map_err(|error| {
        invalid(ErrorCode::InvalidManagementPayload, format!("Error decoding candid: {error:#}"))
    })
}

/// Encodes the reply of a method.
pub fn encode(values: impl ArgumentEncoder) -> Result<Vec<u8>, Reject> {
    candid::encode_args(values).map_err(|error| {
        invalid(ErrorCode::CanisterWasmEngineError, format!("cannot encode the reply: {error}"))
    })
}

/// The outcome of a method with this reply.
pub fn reply(values: impl ArgumentEncoder) -> Outcome {
    Ok(encode(values)?)
}

/// An HTTPS outcall that waits for its answer.
#[derive(Clone, Debug)]
pub struct HttpRequest {
    /// The number of the outcall.
    pub id: u64,
    /// The canister that made it.
    pub canister: Principal,
    /// The request.
    pub request: HttpRequestArgs,
    pub(super) call: ManagementCall,
    /// The time of the request, in nanoseconds since 1970.
    pub(super) since: u64,
}

/// The answer to an HTTPS outcall, or the code and the text of a reject.
pub type HttpResponse = Result<HttpRequestResult, (RejectCode, String)>;

/// The argument of `install_code`.
#[derive(CandidType, Deserialize)]
pub struct InstallCodeArgs {
    pub mode: CanisterInstallMode,
    pub canister_id: Principal,
    #[serde(with = "serde_bytes")]
    pub wasm_module: Vec<u8>,
    #[serde(with = "serde_bytes")]
    pub arg: Vec<u8>,
    pub sender_canister_version: Option<u64>,
}

/// The argument of `upload_canister_snapshot_data`.
#[derive(CandidType, Deserialize)]
pub struct UploadCanisterSnapshotDataArgs {
    pub canister_id: Principal,
    pub snapshot_id: SnapshotId,
    pub kind: SnapshotDataOffset,
    #[serde(with = "serde_bytes")]
    pub chunk: Vec<u8>,
}

/// A list of at most `COUNT` items, of at most `BYTES` bytes in all.
#[derive(Clone, Debug)]
pub struct Bounded<T, const COUNT: usize, const BYTES: usize>(pub Vec<T>);

/// An item that has a size.
pub trait Measured {
    /// Its bytes.
    fn bytes(&self) -> usize;
}

impl Measured for Vec<u8> {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl Measured for HttpHeader {
    fn bytes(&self) -> usize {
        self.name.len() + self.value.len()
    }
}

impl<T: CandidType, const COUNT: usize, const BYTES: usize> CandidType
    for Bounded<T, COUNT, BYTES>
{
    fn _ty() -> Type {
        Vec::<T>::ty()
    }

    fn idl_serialize<S: Serializer>(&self, serializer: S) -> Result<(), S::Error> {
        self.0.idl_serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de> + Measured, const COUNT: usize, const BYTES: usize> Deserialize<'de>
    for Bounded<T, COUNT, BYTES>
{
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Items(PhantomData))
    }
}

/// Reads the items.
struct Items<T, const COUNT: usize, const BYTES: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Measured, const COUNT: usize, const BYTES: usize> Visitor<'de>
    for Items<T, COUNT, BYTES>
{
    type Value = Bounded<T, COUNT, BYTES>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {COUNT} items")
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut items: S) -> Result<Self::Value, S::Error> {
        let (mut list, mut bytes) = (Vec::new(), 0);
        while let Some(item) = items.next_element::<T>()? {
            if list.len() == COUNT {
                let text = format!("The number of elements exceeds maximum allowed {COUNT}");
                return Err(S::Error::custom(text));
            }
            bytes += item.bytes();
            if bytes > BYTES {
                let text = format!("The total data size exceeds maximum allowed {BYTES}");
                return Err(S::Error::custom(text));
            }
            list.push(item);
        }
        Ok(Bounded(list))
    }
}

/// The controller in the answer for a canister with several.
const SEVERAL_CONTROLLERS: &str = "ifxlm-aqaaa-multi-pleco-ntrol-lersa-h3ae";
/// The controller in the answer for a canister without one.
const NO_CONTROLLERS: &str = "zrl4w-cqaaa-nocon-troll-eraaa-d5qc";

/// `canister_status` in 2025.
#[derive(CandidType)]
pub struct StatusReply {
    status: CanisterStatusType,
    ready_for_migration: bool,
    version: u64,
    module_hash: Option<Vec<u8>>,
    controller: Principal,
    settings: SettingsReply,
    memory_size: Nat,
    memory_metrics: MemoryReply,
    cycles: Nat,
    balance: Vec<(Vec<u8>, Nat)>,
    freezing_threshold: Nat,
    idle_cycles_burned_per_day: Nat,
    reserved_cycles: Nat,
    query_stats: QueryStats,
}

/// The settings of a canister in 2025.
#[derive(CandidType)]
struct SettingsReply {
    controller: Principal,
    controllers: Vec<Principal>,
    compute_allocation: Nat,
    memory_allocation: Nat,
    freezing_threshold: Nat,
    reserved_cycles_limit: Nat,
    log_visibility: LogVisibility,
    log_memory_limit: Nat,
    wasm_memory_limit: Nat,
    wasm_memory_threshold: Nat,
    environment_variables: Vec<EnvironmentVariable>,
}

/// Bytes of a canister in 2025.
#[derive(CandidType)]
struct MemoryReply {
    wasm_memory_size: Nat,
    stable_memory_size: Nat,
    global_memory_size: Nat,
    wasm_binary_size: Nat,
    custom_sections_size: Nat,
    canister_history_size: Nat,
    wasm_chunk_store_size: Nat,
    snapshots_size: Nat,
}

impl StatusReply {
    /// The parts of today's status that there were in 2025, and those that were dropped since then.
    pub fn new(today: CanisterStatusResult) -> Self {
        let CanisterStatusResult { settings, memory_metrics: memory, cycles, .. } = today;
        let controller = match settings.controllers.as_slice() {
            [] => NO_CONTROLLERS.parse(),
            [controller] => Ok(*controller),
            _ => SEVERAL_CONTROLLERS.parse(),
        };
        let controller = controller.unwrap_or(Principal::anonymous());
        Self {
            status: today.status,
            ready_for_migration: today.ready_for_migration,
            version: today.version,
            module_hash: today.module_hash,
            controller,
            memory_size: today.memory_size,
            memory_metrics: MemoryReply {
                wasm_memory_size: memory.wasm_memory_size,
                stable_memory_size: memory.stable_memory_size,
                global_memory_size: memory.global_memory_size,
                wasm_binary_size: memory.wasm_binary_size,
                custom_sections_size: memory.custom_sections_size,
                canister_history_size: memory.canister_history_size,
                wasm_chunk_store_size: memory.wasm_chunk_store_size,
                snapshots_size: memory.snapshots_size,
            },
            balance: vec![(vec![0], cycles.clone())],
            cycles,
            freezing_threshold: settings.freezing_threshold.clone(),
            idle_cycles_burned_per_day: today.idle_cycles_burned_per_day,
            reserved_cycles: today.reserved_cycles,
            query_stats: today.query_stats,
            settings: SettingsReply {
                controller,
                controllers: settings.controllers,
                compute_allocation: settings.compute_allocation,
                memory_allocation: settings.memory_allocation,
                freezing_threshold: settings.freezing_threshold,
                reserved_cycles_limit: settings.reserved_cycles_limit,
                log_visibility: settings.log_visibility,
                log_memory_limit: settings.log_memory_limit,
                wasm_memory_limit: settings.wasm_memory_limit,
                wasm_memory_threshold: settings.wasm_memory_threshold,
                environment_variables: settings.environment_variables,
            },
        }
    }
}

/// `canister_info`.
#[derive(CandidType)]
pub struct InfoReply {
    pub total_num_changes: u64,
    pub recent_changes: Vec<Change>,
    pub module_hash: Option<Vec<u8>>,
    pub controllers: Vec<Principal>,
}

/// A change in the history of a canister.
#[derive(CandidType, Clone, Debug, Serialize, Deserialize)]
pub struct Change {
    pub timestamp_nanos: u64,
    pub canister_version: u64,
    pub origin: ChangeOrigin,
    pub details: ChangeDetails,
}

/// Origin of a change: a user or a canister.
#[derive(CandidType, Clone, Debug, Serialize, Deserialize)]
pub enum ChangeOrigin {
    #[serde(rename = "from_user")]
    User { user_id: Principal },
    #[serde(rename = "from_canister")]
    Canister { canister_id: Principal, canister_version: Option<u64> },
}

/// Details of a change.
#[derive(CandidType, Clone, Debug, Serialize, Deserialize)]
pub enum ChangeDetails {
    #[serde(rename = "creation")]
    Creation { controllers: Vec<Principal>, environment_variables_hash: Option<Vec<u8>> },
    #[serde(rename = "code_uninstall")]
    CodeUninstall,
    #[serde(rename = "code_deployment")]
    CodeDeployment { mode: Mode, module_hash: Vec<u8> },
    #[serde(rename = "controllers_change")]
    ControllersChange { controllers: Vec<Principal> },
    #[serde(rename = "load_snapshot")]
    LoadSnapshot {
        canister_version: u64,
        snapshot_id: Vec<u8>,
        taken_at_timestamp: u64,
        source: SnapshotSource,
        from_canister_id: Option<Principal>,
    },
    #[serde(rename = "settings_change")]
    SettingsChange {
        controllers: Option<Vec<Principal>>,
        environment_variables_hash: Option<Vec<u8>>,
    },
    #[serde(rename = "rename_canister")]
    Rename { canister_id: Principal, total_num_changes: u64, rename_to: RenameTo },
}

/// The new name of a canister.
#[derive(CandidType, Clone, Debug, Serialize, Deserialize)]
pub struct RenameTo {
    pub canister_id: Principal,
    pub version: u64,
    pub total_num_changes: u64,
}

/// Mode of an installation.
#[derive(CandidType, Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Mode {
    #[serde(rename = "install")]
    Install,
    #[serde(rename = "reinstall")]
    Reinstall,
    #[serde(rename = "upgrade")]
    Upgrade,
}

/// The source of a snapshot.
#[derive(CandidType, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SnapshotSource {
    /// It was taken.
    #[serde(rename = "taken_from_canister")]
    TakenFromCanister(Reserved),
    /// It was uploaded.
    #[serde(rename = "metadata_upload")]
    MetadataUpload(Reserved),
}

#[cfg(test)]
mod tests {
    use crate::decoding::{MANAGEMENT, decode_argument};
    use candid::Encode;
    use candid::utils::ArgumentDecoder;
    use ic_management_canister_types as published;
    use std::time::{Duration, Instant};

    use super::*;

    fn decoded<'a, T: ArgumentDecoder<'a>>(argument: &'a [u8]) -> (T, Duration) {
        let began = Instant::now();
        let decoded = decode_argument(argument, MANAGEMENT).unwrap();
        (decoded, began.elapsed())
    }

    #[test]
    fn large_bytes_are_decoded_at_once() {
        let bytes: Vec<u8> = (0..2 << 20).map(|at: u32| at as u8).collect();
        let argument = Encode!(&published::InstallCodeArgs {
            mode: CanisterInstallMode::Reinstall,
            canister_id: Principal::anonymous(),
            wasm_module: bytes.clone(),
            arg: vec![7],
            sender_canister_version: Some(3),
        })
        .unwrap();
        let ((args,), took) = decoded::<(InstallCodeArgs,)>(&argument);
        assert!(args.wasm_module == bytes && args.mode == CanisterInstallMode::Reinstall);
        assert_eq!((args.canister_id, args.arg), (Principal::anonymous(), vec![7]));
        assert_eq!(args.sender_canister_version, Some(3));
        let (_, one_by_one) = decoded::<(published::InstallCodeArgs,)>(&argument);
        assert!(took < one_by_one / 4, "{took:?} {one_by_one:?}");

        let argument = Encode!(&published::UploadCanisterSnapshotDataArgs {
            canister_id: Principal::anonymous(),
            snapshot_id: vec![1],
            kind: SnapshotDataOffset::WasmModule { offset: 5 },
            chunk: bytes.clone(),
        })
        .unwrap();
        let ((args,), took) = decoded::<(UploadCanisterSnapshotDataArgs,)>(&argument);
        assert!(args.chunk == bytes && args.snapshot_id == [1]);
        assert!(matches!(args.kind, SnapshotDataOffset::WasmModule { offset: 5 }));
        assert!(took < one_by_one / 4, "{took:?} {one_by_one:?}");
    }
}
