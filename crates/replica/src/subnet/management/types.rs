//! Answers of the management canister, whose Candid types have the fields of the replica's: the size
//! of a reply decides what its callback costs.
//!
//! Answers that are not here have the types of `ic-management-canister-types`.

use candid::{CandidType, Nat, Principal, Reserved};
use ic_management_canister_types::{
    CanisterStatusResult, CanisterStatusType, EnvironmentVariable, LogVisibility, QueryStats,
};
use serde::{Deserialize, Serialize};

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

/// Who made a change.
#[derive(CandidType, Clone, Debug, Serialize, Deserialize)]
pub enum ChangeOrigin {
    #[serde(rename = "from_user")]
    User { user_id: Principal },
    #[serde(rename = "from_canister")]
    Canister { canister_id: Principal, canister_version: Option<u64> },
}

/// What changed.
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

/// How code was installed.
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
