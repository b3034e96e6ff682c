//! A canister with the state that the management canister keeps of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candid::{Nat, Principal};
use ic_management_canister_types::{CanisterLogRecord, DefiniteCanisterSettings};
use stablebench_replica::{Canister, CustomSection, EntryPoint, ErrorCode, Execution, HostError};

use crate::clock;
use crate::outcome::{Outcome, Reject, outcome};

/// The default freezing threshold, in seconds.
const FREEZING_THRESHOLD: u64 = 2_592_000;
/// The default limit of reserved cycles.
const RESERVED_CYCLES: u64 = 5_000_000_000_000;
/// The size limit of a log in bytes, as on the IC.
const MAX_LOG: usize = 4 << 10;
/// Bytes of a record in addition to its content.
const RECORD_OVERHEAD: usize = 40;

/// A canister and its management state.
pub struct Hosted {
    /// The canister.
    pub canister: Canister,
    /// The settings that the management canister reports. Controllers and heap limit are those of
    /// `canister`.
    pub settings: DefiniteCanisterSettings,
    /// `false` if the canister is stopped.
    pub running: bool,
    /// `true` if the canister is deleted. Messages that still wait for it are rejected.
    pub deleted: bool,
    /// Snapshots by their ids.
    pub snapshots: BTreeMap<Vec<u8>, Snapshot>,
    /// The number of snapshots that were ever taken.
    pub snapshots_taken: u64,
    /// The log.
    pub log: Log,
    /// A copy of the canister during long work.
    pub backup: Backup,
}

/// A snapshot of a canister.
pub struct Snapshot {
    /// A fork of the canister.
    pub canister: Canister,
    /// The time of the snapshot, in nanoseconds since 1970.
    pub taken_at: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The part of a canister's state that is readable while the canister executes a message.
#[derive(Clone, Debug, Default)]
pub struct Info {
    /// The controllers.
    pub controllers: Vec<Principal>,
    /// The module, unless the canister is empty.
    pub module: Option<ModuleInfo>,
    /// `false` if the canister is stopped.
    pub running: bool,
    /// A number that grows with each change of the canister.
    pub version: u64,
}

/// The readable part of a module.
#[derive(Clone, Debug)]
pub struct ModuleInfo {
    /// The SHA-256 of the installed file.
    pub hash: [u8; 32],
    /// `true` if it inspects messages before they are admitted.
    pub inspects: bool,
    /// The custom sections `icp:public …` and `icp:private …` by name.
    pub sections: Arc<BTreeMap<String, CustomSection>>,
}

impl Hosted {
    /// Wraps a canister, which is running.
    pub fn new(canister: Canister) -> Self {
        Self {
            canister,
            settings: DefiniteCanisterSettings {
                freezing_threshold: Nat::from(FREEZING_THRESHOLD),
                reserved_cycles_limit: Nat::from(RESERVED_CYCLES),
                ..DefiniteCanisterSettings::default()
            },
            running: true,
            deleted: false,
            snapshots: BTreeMap::new(),
            snapshots_taken: 0,
            log: Log::default(),
            backup: Backup::default(),
        }
    }

    /// Logs the output of an executed message, and returns its outcome.
    pub fn finish(&mut self, executed: Result<Execution, HostError>) -> Outcome {
        if let Ok(execution) = &executed {
            self.log.add(&self.canister.id(), clock::now(), execution);
        }
        outcome(executed)
    }

    /// Returns the readable part of the state.
    pub fn info(&self) -> Info {
        let module = self.canister.module().map(|module| ModuleInfo {
            hash: module.hash(),
            inspects: module.info().has(EntryPoint::InspectMessage),
            sections: Arc::new(module.info().custom_sections.clone()),
        });
        Info {
            controllers: self.canister.settings().controllers.clone(),
            module,
            running: self.running,
            version: self.canister.version(),
        }
    }

    /// Returns an error if the canister does not accept messages.
    pub fn check_running(&self) -> Result<(), Reject> {
        let id = self.canister.id();
        if self.deleted {
            Err(Reject::not_found(&id))
        } else if self.running {
            Ok(())
        } else {
            Err(Reject::stopped(&id))
        }
    }
}

/// A copy of a canister, held during work that may take very long and that does not change the
/// canister before its end.
#[derive(Clone, Default)]
pub struct Backup(Arc<Mutex<Option<Canister>>>);

impl Backup {
    /// Does such work.
    pub fn during<T>(&self, canister: &Canister, work: impl FnOnce() -> T) -> T {
        *self.lock() = Some(canister.fork());
        let result = work();
        *self.lock() = None;
        result
    }

    /// Locks the copy.
    pub fn lock(&self) -> MutexGuard<'_, Option<Canister>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The newest log records of a canister, the oldest first.
///
/// Updates and installs write to it, queries do not. A trap adds its text after `[TRAP]: `.
#[derive(Default)]
pub struct Log {
    records: VecDeque<CanisterLogRecord>,
    bytes: usize,
    next: u64,
}

impl Log {
    /// Adds the output of a message that `canister` executed at `time`, in nanoseconds since 1970.
    pub fn add(&mut self, canister: &Principal, time: u64, execution: &Execution) {
        for text in &execution.printed {
            self.push(time, text.as_bytes());
        }
        if let Err(reject) = &execution.outcome
            && let Some(text) = trap_text(canister, reject)
        {
            self.push(time, format!("[TRAP]: {text}").as_bytes());
        }
    }

    fn push(&mut self, timestamp_nanos: u64, content: &[u8]) {
        let content = content[..content.len().min(MAX_LOG - RECORD_OVERHEAD)].to_vec();
        self.bytes += content.len() + RECORD_OVERHEAD;
        self.records.push_back(CanisterLogRecord { idx: self.next, timestamp_nanos, content });
        self.next += 1;
        while self.bytes > MAX_LOG
            && let Some(oldest) = self.records.pop_front()
        {
            self.bytes -= oldest.content.len() + RECORD_OVERHEAD;
        }
    }

    /// Returns the records, the oldest first.
    pub fn records(&self) -> impl Iterator<Item = &CanisterLogRecord> {
        self.records.iter()
    }
}

/// Returns the text of a trap.
fn trap_text<'a>(canister: &Principal, reject: &'a stablebench_replica::Reject) -> Option<&'a str> {
    let message = reject.message.strip_prefix(&format!("Error from Canister {canister}: "))?;
    match reject.code {
        ErrorCode::CanisterCalledTrap => {
            let text = message.strip_prefix("Canister called `ic0.trap` with message: '")?;
            Some(text.rsplit_once('\'')?.0)
        }
        ErrorCode::CanisterTrapped => message.strip_prefix("Canister trapped: ")?.lines().next(),
        _ => None,
    }
}

/// Chunks by their SHA-256.
type ByHash = BTreeMap<[u8; 32], Arc<Vec<u8>>>;

/// The chunk store of a canister. Modules of other canisters can be assembled from it too.
#[derive(Clone, Default)]
pub struct Chunks(Arc<Mutex<ByHash>>);

impl Chunks {
    /// Reads or changes the chunks.
    pub fn with<T>(&self, work: impl FnOnce(&mut ByHash) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the bytes of all chunks.
    pub fn bytes(&self) -> u64 {
        self.with(|chunks| chunks.values().map(|chunk| chunk.len() as u64).sum())
    }
}
