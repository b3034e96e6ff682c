//! The description of a snapshot, which goes with its data when it is read or uploaded.
//!
//! [`SnapshotMetadata`] is the reply of `read_canister_snapshot_metadata`. Its JSON is that of
//! `metadata.json`, in which a PocketIC server stores a snapshot that it downloads:
//!
//! ```text
//! source              { "taken_from_canister": null } or { "metadata_upload": null }
//! globals             [{ "i32": 1 }, …]
//! wasm_chunk_store    [{ "hash": [bytes] }, …]
//! certified_data      [bytes]
//! global_timer        null, "inactive" or { "active": nanoseconds }
//! on_low_wasm_memory_hook_status
//!                     null, "condition_not_satisfied", "ready" or "executed"
//! the others          numbers
//! ```
//!
//! Source: `rs/types/management_canister_types/src/lib.rs` and
//! `rs/replicated_state/src/canister_state/canister_snapshots.rs` of the replica.

use candid::{CandidType, Principal};
use ic_management_canister_types::ChunkHash;
use serde::{Deserialize, Serialize};
use wasmparser::ValType;

use super::types::SnapshotSource;
use crate::allocation::GLOBAL_SIZE;
use crate::limits::MAX_CERTIFIED_DATA;
use crate::rules::Rules;
use crate::state::GlobalValue;
use crate::units::{Bytes, WASM_PAGE};

/// Most bytes of a module.
const MAX_MODULE: u64 = 100 << 20;

/// The description of a snapshot.
#[derive(CandidType, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotMetadata {
    /// Where the snapshot comes from.
    pub source: SnapshotSource,
    /// The time at which it was taken or its metadata were uploaded, in nanoseconds since 1970.
    pub taken_at_timestamp: u64,
    /// Bytes of the module.
    pub wasm_module_size: u64,
    /// The exported globals.
    pub globals: Vec<Global>,
    /// Bytes of the heap.
    pub wasm_memory_size: u64,
    /// Bytes of stable memory.
    pub stable_memory_size: u64,
    /// The hashes of the chunks.
    pub wasm_chunk_store: Vec<ChunkHash>,
    /// The version of the canister at that time.
    pub canister_version: u64,
    /// Certified data.
    pub certified_data: Vec<u8>,
    /// The global timer.
    pub global_timer: Option<GlobalTimer>,
    /// The state of `canister_on_low_wasm_memory`.
    pub on_low_wasm_memory_hook_status: Option<HookStatus>,
}

/// The value of a global.
#[derive(CandidType, Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Global {
    /// `i32`
    #[serde(rename = "i32")]
    I32(i32),
    /// `i64`
    #[serde(rename = "i64")]
    I64(i64),
    /// `f32`
    #[serde(rename = "f32")]
    F32(f32),
    /// `f64`
    #[serde(rename = "f64")]
    F64(f64),
    /// `v128`
    #[serde(rename = "v128")]
    V128(u128),
}

impl From<GlobalValue> for Global {
    fn from(value: GlobalValue) -> Self {
        match value {
            GlobalValue::I32(value) => Self::I32(value),
            GlobalValue::I64(value) => Self::I64(value),
            GlobalValue::F32(bits) => Self::F32(f32::from_bits(bits)),
            GlobalValue::F64(bits) => Self::F64(f64::from_bits(bits)),
            GlobalValue::V128(bits) => Self::V128(bits),
        }
    }
}

impl Global {
    /// The value bit for bit.
    pub(crate) fn value(self) -> GlobalValue {
        match self {
            Self::I32(value) => GlobalValue::I32(value),
            Self::I64(value) => GlobalValue::I64(value),
            Self::F32(value) => GlobalValue::F32(value.to_bits()),
            Self::F64(value) => GlobalValue::F64(value.to_bits()),
            Self::V128(value) => GlobalValue::V128(value),
        }
    }

    pub(super) fn ty(self) -> ValType {
        self.value().ty()
    }
}

/// The global timer of a canister.
#[derive(CandidType, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GlobalTimer {
    /// It is off.
    #[serde(rename = "inactive")]
    Inactive,
    /// It is due at this time, in nanoseconds since 1970.
    #[serde(rename = "active")]
    Active(u64),
}

impl GlobalTimer {
    /// The timer of a state, which is 0 when it is off.
    pub(super) fn of(at: u64) -> Self {
        match at {
            0 => Self::Inactive,
            at => Self::Active(at),
        }
    }

    /// The timer as a state has it.
    pub(super) fn at(self) -> u64 {
        match self {
            Self::Inactive => 0,
            Self::Active(at) => at.max(1),
        }
    }
}

/// The state of `canister_on_low_wasm_memory`, which runs once each time memory becomes low.
#[derive(CandidType, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HookStatus {
    /// There is enough memory.
    #[default]
    #[serde(rename = "condition_not_satisfied")]
    ConditionNotSatisfied,
    /// The function is due.
    #[serde(rename = "ready")]
    Ready,
    /// It has run since memory became low.
    #[serde(rename = "executed")]
    Executed,
}

impl HookStatus {
    /// Returns true if a canister can have this state with memory that is low or not.
    pub(super) fn fits(self, is_low: bool) -> bool {
        is_low != (self == Self::ConditionNotSatisfied)
    }
}

/// The argument of `upload_canister_snapshot_metadata`.
#[derive(CandidType, Clone, Debug, Serialize, Deserialize)]
pub(super) struct UploadMetadataArgs {
    pub canister_id: Principal,
    pub replace_snapshot: Option<Vec<u8>>,
    pub wasm_module_size: u64,
    pub globals: Vec<Global>,
    pub wasm_memory_size: u64,
    pub stable_memory_size: u64,
    pub certified_data: Vec<u8>,
    pub global_timer: Option<GlobalTimer>,
    pub on_low_wasm_memory_hook_status: Option<HookStatus>,
}

/// A rule that uploaded metadata break, named as the replica prints it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Invalid {
    WasmModuleEmpty,
    WasmModuleTooLarge,
    WasmMemoryNotPageAligned,
    WasmMemoryTooLarge,
    StableMemoryNotPageAligned,
    StableMemoryTooLarge,
    ExportedGlobalsTooLarge,
    CertifiedDataTooLarge,
}

impl UploadMetadataArgs {
    /// Checks the sizes. `wasm64` is true if the canister's heap addresses have 64 bits.
    pub fn check(&self, rules: Rules, wasm64: bool) -> Result<(), Invalid> {
        let limits = &rules.set().memory;
        let heap = if wasm64 { limits.heap64 } else { limits.heap32 };
        let most_globals = rules.set().module.globals;
        let aligned = |bytes: u64| bytes.is_multiple_of(WASM_PAGE);
        let rules = [
            (self.wasm_module_size > 0, Invalid::WasmModuleEmpty),
            (self.wasm_module_size <= MAX_MODULE, Invalid::WasmModuleTooLarge),
            (aligned(self.wasm_memory_size), Invalid::WasmMemoryNotPageAligned),
            (Bytes(self.wasm_memory_size) <= Bytes::from(heap), Invalid::WasmMemoryTooLarge),
            (aligned(self.stable_memory_size), Invalid::StableMemoryNotPageAligned),
            (
                Bytes(self.stable_memory_size) <= Bytes::from(limits.stable),
                Invalid::StableMemoryTooLarge,
            ),
            (self.globals.len() <= most_globals, Invalid::ExportedGlobalsTooLarge),
            (
                self.certified_data.len() as u64 <= MAX_CERTIFIED_DATA.get(),
                Invalid::CertifiedDataTooLarge,
            ),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            Some((_, invalid)) => Err(invalid),
            None => Ok(()),
        }
    }

    /// Bytes that the canister pays for, without chunks.
    pub fn bytes(&self) -> Bytes {
        let globals = self.globals.len() as u64 * GLOBAL_SIZE.get();
        let certified = self.certified_data.len() as u64;
        Bytes(
            self.wasm_module_size
                + self.wasm_memory_size
                + self.stable_memory_size
                + certified
                + globals,
        )
    }
}

#[cfg(test)]
mod tests {
    use candid::Reserved;

    use super::*;

    /// As `serde_json` writes the type of the replica.
    const JSON: &str = r#"{
  "source": {
    "taken_from_canister": null
  },
  "taken_at_timestamp": 1620328630000000000,
  "wasm_module_size": 9,
  "globals": [
    {
      "i32": -1
    },
    {
      "i64": -2
    },
    {
      "f32": 1.5
    },
    {
      "f64": 0.1
    },
    {
      "v128": 340282366920938463463374607431768211455
    }
  ],
  "wasm_memory_size": 65536,
  "stable_memory_size": 0,
  "wasm_chunk_store": [
    {
      "hash": [
        1,
        255
      ]
    }
  ],
  "canister_version": 3,
  "certified_data": [
    7
  ],
  "global_timer": {
    "active": 5
  },
  "on_low_wasm_memory_hook_status": "condition_not_satisfied"
}"#;

    #[test]
    fn json_has_the_form_of_a_server() {
        let metadata = SnapshotMetadata {
            source: SnapshotSource::TakenFromCanister(Reserved),
            taken_at_timestamp: 1_620_328_630_000_000_000,
            wasm_module_size: 9,
            globals: vec![
                Global::I32(-1),
                Global::I64(-2),
                Global::F32(1.5),
                Global::F64(0.1),
                Global::V128(u128::MAX),
            ],
            wasm_memory_size: 65_536,
            stable_memory_size: 0,
            wasm_chunk_store: vec![ChunkHash { hash: vec![1, 255] }],
            canister_version: 3,
            certified_data: vec![7],
            global_timer: Some(GlobalTimer::Active(5)),
            on_low_wasm_memory_hook_status: Some(HookStatus::ConditionNotSatisfied),
        };
        assert_eq!(serde_json::to_string_pretty(&metadata).unwrap(), JSON);
        let read: SnapshotMetadata = serde_json::from_str(JSON).unwrap();
        assert_eq!(read, metadata);
        let none = SnapshotMetadata {
            source: SnapshotSource::MetadataUpload(Reserved),
            global_timer: None,
            on_low_wasm_memory_hook_status: None,
            ..metadata
        };
        let text = serde_json::to_string(&none).unwrap();
        assert!(text.contains(r#""source":{"metadata_upload":null}"#), "{text}");
        assert!(text.contains(r#""global_timer":null"#), "{text}");
        assert_eq!(serde_json::from_str::<SnapshotMetadata>(&text).unwrap(), none);
    }

    fn args() -> UploadMetadataArgs {
        UploadMetadataArgs {
            canister_id: Principal::anonymous(),
            replace_snapshot: None,
            wasm_module_size: 1,
            globals: Vec::new(),
            wasm_memory_size: 0,
            stable_memory_size: 0,
            certified_data: Vec::new(),
            global_timer: None,
            on_low_wasm_memory_hook_status: None,
        }
    }

    #[test]
    fn sizes_are_checked_at_their_limits() {
        let rules = Rules::today();
        let checked = |wasm64: bool, change: &dyn Fn(&mut UploadMetadataArgs)| {
            let mut args = args();
            change(&mut args);
            match args.check(rules, wasm64) {
                Ok(()) => "valid".to_owned(),
                Err(invalid) => format!("{invalid:?}"),
            }
        };
        let module = |bytes| checked(false, &|args| args.wasm_module_size = bytes);
        assert_eq!(module(0), "WasmModuleEmpty");
        assert_eq!(module(100 << 20), "valid");
        assert_eq!(module((100 << 20) + 1), "WasmModuleTooLarge");
        let heap = |wasm64, bytes| checked(wasm64, &|args| args.wasm_memory_size = bytes);
        assert_eq!(heap(false, 1), "WasmMemoryNotPageAligned");
        assert_eq!(heap(false, 4 << 30), "valid");
        assert_eq!(heap(false, (4 << 30) + 65_536), "WasmMemoryTooLarge");
        assert_eq!(heap(true, 6 << 30), "valid");
        assert_eq!(heap(true, (6 << 30) + 65_536), "WasmMemoryTooLarge");
        let stable = |bytes| checked(false, &|args| args.stable_memory_size = bytes);
        assert_eq!(stable(65_535), "StableMemoryNotPageAligned");
        assert_eq!(stable(500 << 30), "valid");
        assert_eq!(stable((500 << 30) + 65_536), "StableMemoryTooLarge");
        let globals = |count| checked(false, &|args| args.globals = vec![Global::I32(0); count]);
        assert_eq!(globals(1_000), "valid");
        assert_eq!(globals(1_001), "ExportedGlobalsTooLarge");
        let certified = |count| checked(false, &|args| args.certified_data = vec![0; count]);
        assert_eq!(certified(32), "valid");
        assert_eq!(certified(33), "CertifiedDataTooLarge");
    }

    #[test]
    fn a_hook_is_due_or_done_only_while_memory_is_low() {
        let states = [HookStatus::ConditionNotSatisfied, HookStatus::Ready, HookStatus::Executed];
        assert_eq!(states.map(|it| it.fits(true)), [false, true, true]);
        assert_eq!(states.map(|it| it.fits(false)), [true, false, false]);
    }
}
