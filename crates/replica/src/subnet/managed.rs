//! What the management canister keeps of a canister: settings, history, log, chunks, snapshots.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ic_management_canister_types::{
    CanisterLogFilter, CanisterLogRecord, LogVisibility, SnapshotVisibility, StatusVisibility,
};
use serde::{Deserialize, Serialize};

use super::contexts::Origin;
use super::management::metadata::{Global, GlobalTimer, HookStatus};
use super::management::types::{Change, ChangeDetails, ChangeOrigin};
use super::trace::Cause;
use crate::execution::Execution;
use crate::fault::Fault;
use crate::limits::{LOG_RECORD_OVERHEAD, MAX_FETCHED_LOG, MAX_HISTORY, MAX_LOG};
use crate::module::Module;
use crate::state::State;
use crate::units::{Bytes, Cycles};

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
