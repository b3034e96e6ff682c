//! State of a canister that the management canister keeps: settings, history, log, chunk store, and
//! snapshots with their metadata.
//!
//! [`SnapshotMetadata`], the description that goes with the data of a snapshot when it is read or
//! uploaded, is the reply of `read_canister_snapshot_metadata`. Its JSON is that of `metadata.json`, in
//! which a PocketIC server stores a snapshot that it downloads:
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

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use candid::{CandidType, Principal};
use ic_management_canister_types::{
    CanisterLogFilter, CanisterLogRecord, ChunkHash, LogVisibility, SnapshotVisibility,
    StatusVisibility,
};
use serde::{Deserialize, Serialize};
use wasmparser::ValType;

use super::management::call::{Change, ChangeDetails, ChangeOrigin, SnapshotSource};
use super::messages::Origin;
use crate::canister::GLOBAL_SIZE;
use crate::execution::{Cause, Execution};
use crate::fault::Fault;
use crate::module::Module;
use crate::rules::{
    LOG_RECORD_OVERHEAD, MAX_CERTIFIED_DATA, MAX_FETCHED_LOG, MAX_HISTORY, MAX_LOG, Rules,
};
use crate::state::{GlobalValue, State};
use crate::units::{Bytes, Cycles, WASM_PAGE};

/// Bytes that a chunk occupies, whatever its size.
pub const CHUNK: Bytes = Bytes(1 << 20);
/// The default limit of reserved cycles.
const RESERVED_CYCLES: u128 = 5_000_000_000_000;
/// More changes, snapshots and records than a canister can have.
const MAX_COUNT: u64 = u64::MAX / 2;

/// The state of a canister that only the management canister knows.
///
/// The fields that are skipped in files are saved apart, with the exception of calls that wait.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Managed {
    /// The most cycles that the canister wants to reserve for storage.
    pub reserved_cycles_limit: Cycles,
    /// Who may read the log.
    pub log_visibility: LogVisibility,
    /// Who may list the snapshots.
    pub snapshot_visibility: SnapshotVisibility,
    /// Who may ask for the status.
    pub status_visibility: StatusVisibility,
    /// The log.
    pub log: Log,
    /// Uploaded chunks by their SHA-256.
    #[serde(skip)]
    pub chunks: BTreeMap<[u8; 32], Arc<Vec<u8>>>,
    /// Snapshots by their ids.
    #[serde(skip)]
    pub snapshots: BTreeMap<Vec<u8>, Arc<Snapshot>>,
    /// Number of snapshots that were ever taken.
    pub snapshots_taken: u64,
    /// The last changes.
    pub changes: VecDeque<Change>,
    /// Number of all changes.
    pub total_changes: u64,
    /// Calls that wait until the canister has stopped.
    #[serde(skip)]
    pub stops: Vec<Stop>,
}

/// A snapshot of a canister.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The module.
    pub code: Code,
    /// Memories, globals, and certified data.
    pub state: State,
    /// The version of the canister.
    pub version: u64,
    /// The global timer, unless an upload did not say.
    pub timer: Option<GlobalTimer>,
    /// The state of the hook for low memory, unless an upload did not say.
    pub hook: Option<HookStatus>,
    /// The chunks.
    pub chunks: BTreeMap<[u8; 32], Arc<Vec<u8>>>,
    /// The time of the snapshot, in nanoseconds since 1970.
    pub taken_at: u64,
    /// Its size.
    pub bytes: Bytes,
    /// True if it was loaded.
    pub loaded: bool,
}

/// The module of a snapshot, which tells where the snapshot comes from.
#[derive(Clone, Debug)]
pub enum Code {
    /// The module of the canister of which the snapshot was taken.
    Taken(Module),
    /// Uploaded bytes, and the uploaded values of the globals that the module exports.
    Uploaded(Vec<u8>, Vec<Global>),
}

impl Code {
    /// The module as it was uploaded.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Taken(module) => module.uploaded(),
            Self::Uploaded(bytes, _) => bytes,
        }
    }
}

/// A call that waits until a canister has stopped.
#[derive(Clone, Debug)]
pub struct Stop {
    /// The source of the call.
    pub origin: Origin,
    /// Its cycles, which are returned.
    pub cycles: Cycles,
    /// Its cause.
    pub cause: Cause,
    /// The time of the call.
    pub since: u64,
}

impl Managed {
    /// The state of a canister with nothing but a history of this length.
    pub fn new(changes: usize) -> Self {
        Self {
            reserved_cycles_limit: Cycles(RESERVED_CYCLES),
            log_visibility: LogVisibility::default(),
            snapshot_visibility: SnapshotVisibility::default(),
            status_visibility: StatusVisibility::default(),
            log: Log::default(),
            chunks: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            snapshots_taken: 0,
            changes: VecDeque::new(),
            total_changes: changes as u64,
            stops: Vec::new(),
        }
    }

    /// Returns true if messages can rely on what was read from a file.
    pub fn is_valid(&self) -> bool {
        let counts = [self.snapshots_taken, self.total_changes, self.log.next];
        counts.iter().all(|count| *count <= MAX_COUNT)
            && self.changes.len() <= MAX_HISTORY
            && self.log.is_valid()
    }

    /// Bytes of chunks.
    pub fn chunk_bytes(&self) -> Bytes {
        Bytes(self.chunks.len() as u64 * CHUNK.get())
    }

    /// Bytes of snapshots.
    pub fn snapshot_bytes(&self) -> Bytes {
        self.snapshots.values().map(|snapshot| snapshot.bytes).sum()
    }

    /// Adds a change to the history.
    pub fn add_change(
        &mut self,
        timestamp_nanos: u64,
        canister_version: u64,
        origin: ChangeOrigin,
        details: ChangeDetails,
    ) {
        if self.changes.len() == MAX_HISTORY {
            self.changes.pop_front();
        }
        self.changes.push_back(Change { timestamp_nanos, canister_version, origin, details });
        self.total_changes += 1;
    }
}

/// The newest records of a log, the oldest first. A trap adds its text after `[TRAP]: `.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    records: VecDeque<CanisterLogRecord>,
    bytes: usize,
    next: u64,
}

impl Log {
    /// Adds the output of an execution, and the trap that ended it. The log keeps `most` bytes.
    pub fn add(&mut self, time: u64, execution: &Execution, fault: Option<&Fault>, most: Bytes) {
        let trap = fault.and_then(trap_text).map(|text| format!("[TRAP]: {text}"));
        let texts: Vec<&str> = execution.printed.iter().chain(&trap).map(String::as_str).collect();
        // The number of a record that is not kept is not used again.
        self.next += execution.printed_before + texts.len() as u64;
        let overhead = LOG_RECORD_OVERHEAD.get() as usize;
        let Some(longest) = (most.get() as usize).checked_sub(overhead) else { return };
        let size = |text: &str| text.len().min(longest) + overhead;
        // The newest texts of a message displace older ones, and then records of earlier messages.
        let (mut left, mut first) = (most.get() as usize, texts.len());
        while let Some(text) = first.checked_sub(1).map(|at| texts[at])
            && let Some(rest) = left.checked_sub(size(text))
        {
            (left, first) = (rest, first - 1);
        }
        self.shrink(Bytes(left as u64));
        let texts = &texts[first..];
        let first = self.next - texts.len() as u64;
        for (idx, text) in (first..).zip(texts) {
            let content = text.as_bytes()[..text.len().min(longest)].to_vec();
            self.bytes += size(text);
            self.records.push_back(CanisterLogRecord { idx, timestamp_nanos: time, content });
        }
    }

    /// Removes all records. The next one has the next number.
    pub fn clear(&mut self) {
        self.records.clear();
        self.bytes = 0;
    }

    /// Returns true if its size is that of its records.
    fn is_valid(&self) -> bool {
        self.bytes == self.records.iter().map(size).sum::<usize>()
            && self.bytes <= MAX_LOG.get() as usize
    }

    /// The records that a filter selects, the oldest first, as many as may be returned at once:
    /// without a filter the newest, otherwise the oldest, up to the first that is not selected.
    ///
    /// Source: `RingBuffer::records` in `log_memory_store/ring_buffer.rs` of the replica.
    pub fn fetch(&self, filter: Option<&CanisterLogFilter>) -> Vec<CanisterLogRecord> {
        let mut left = MAX_FETCHED_LOG.get() as usize;
        let fits = |record: &&CanisterLogRecord| {
            let rest = left.checked_sub(size(record));
            left = rest.unwrap_or(0);
            rest.is_some()
        };
        let Some(filter) = filter else {
            let newest = self.records.iter().rev().take_while(fits).count();
            return self.records.range(self.records.len() - newest..).cloned().collect();
        };
        let selected = |record: &&CanisterLogRecord| match *filter {
            CanisterLogFilter::ByIdx { start, end } => (start..end).contains(&record.idx),
            CanisterLogFilter::ByTimestampNanos { start, end } => {
                (start..end).contains(&record.timestamp_nanos)
            }
        };
        let records = self.records.iter().skip_while(|record| !selected(record));
        records.take_while(selected).take_while(fits).cloned().collect()
    }

    /// Drops the oldest records until `most` bytes are left.
    pub fn shrink(&mut self, most: Bytes) {
        while self.bytes > most.get() as usize
            && let Some(oldest) = self.records.pop_front()
        {
            self.bytes -= size(&oldest);
        }
    }
}

/// The bytes of a record in the log.
fn size(record: &CanisterLogRecord) -> usize {
    record.content.len() + LOG_RECORD_OVERHEAD.get() as usize
}

/// The text of a trap, with its backtrace.
fn trap_text(fault: &Fault) -> Option<String> {
    match fault {
        Fault::CalledTrap(text) => Some(text.clone()),
        Fault::Trapped(trap) => Some(trap.to_string()),
        Fault::Traced { fault, backtrace } => {
            trap_text(fault).map(|text| format!("{text}\n{backtrace}"))
        }
        _ => None,
    }
}

/// Most bytes of a module.
const MAX_MODULE: u64 = 100 << 20;

/// The description of a snapshot.
#[derive(CandidType, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotMetadata {
    /// Source of the snapshot.
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
