//! Answers of the management canister, whose Candid types have the fields of the replica's: the size
//! of a reply decides what its callback costs.
//!
//! Answers that are not here have the types of `ic-management-canister-types`.

use candid::{CandidType, Nat, Principal, Reserved};
use ic_management_canister_types::{CanisterStatusType, EnvironmentVariable, LogVisibility};
use serde::Deserialize;

/// `canister_status`.
#[derive(CandidType)]
pub struct StatusReply {
    pub status: CanisterStatusType,
    pub ready_for_migration: bool,
    pub version: u64,
    pub module_hash: Option<Vec<u8>>,
    pub controller: Principal,
    pub settings: SettingsReply,
    pub memory_size: Nat,
    pub memory_metrics: MemoryReply,
    pub cycles: Nat,
    pub balance: Vec<(Vec<u8>, Nat)>,
    pub freezing_threshold: Nat,
    pub idle_cycles_burned_per_day: Nat,
    pub reserved_cycles: Nat,
    pub query_stats: QueryReply,
}

/// The settings of a canister.
#[derive(CandidType)]
pub struct SettingsReply {
    pub controller: Principal,
    pub controllers: Vec<Principal>,
    pub compute_allocation: Nat,
    pub memory_allocation: Nat,
    pub freezing_threshold: Nat,
    pub reserved_cycles_limit: Nat,
    pub log_visibility: LogVisibility,
    pub log_memory_limit: Nat,
    pub wasm_memory_limit: Nat,
    pub wasm_memory_threshold: Nat,
    pub environment_variables: Vec<EnvironmentVariable>,
}

/// Bytes of a canister.
#[derive(CandidType)]
pub struct MemoryReply {
    pub wasm_memory_size: Nat,
    pub stable_memory_size: Nat,
    pub global_memory_size: Nat,
    pub wasm_binary_size: Nat,
    pub custom_sections_size: Nat,
    pub canister_history_size: Nat,
    pub wasm_chunk_store_size: Nat,
    pub snapshots_size: Nat,
}

/// Queries of a canister, which are not counted here.
#[derive(CandidType, Default)]
pub struct QueryReply {
    pub num_calls_total: Nat,
    pub num_instructions_total: Nat,
    pub request_payload_bytes_total: Nat,
    pub response_payload_bytes_total: Nat,
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
#[derive(CandidType, Clone, Debug)]
pub struct Change {
    pub timestamp_nanos: u64,
    pub canister_version: u64,
    pub origin: ChangeOrigin,
    pub details: ChangeDetails,
}

/// Who made a change.
#[derive(CandidType, Clone, Debug, Deserialize)]
pub enum ChangeOrigin {
    #[serde(rename = "from_user")]
    User { user_id: Principal },
    #[serde(rename = "from_canister")]
    Canister { canister_id: Principal, canister_version: Option<u64> },
}

/// What changed.
#[derive(CandidType, Clone, Debug, Deserialize)]
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
#[derive(CandidType, Clone, Debug, Deserialize)]
pub struct RenameTo {
    pub canister_id: Principal,
    pub version: u64,
    pub total_num_changes: u64,
}

/// How code was installed.
#[derive(CandidType, Clone, Copy, Debug, Deserialize)]
pub enum Mode {
    #[serde(rename = "install")]
    Install,
    #[serde(rename = "reinstall")]
    Reinstall,
    #[serde(rename = "upgrade")]
    Upgrade,
}

/// The source of a snapshot.
#[derive(CandidType, Clone, Debug, Deserialize)]
pub enum SnapshotSource {
    #[serde(rename = "taken_from_canister")]
    TakenFromCanister(Reserved),
    #[serde(rename = "metadata_upload")]
    MetadataUpload(Reserved),
}
