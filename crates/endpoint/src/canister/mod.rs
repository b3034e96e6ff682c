//! A canister with what the management canister keeps of it, and the thread that it runs on.

mod chunks;
mod log;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;

use candid::{Nat, Principal};
use ic_management_canister_types::DefiniteCanisterSettings;
use stablebench_replica::{Canister, CustomSection, EntryPoint, Execution, HostError};

use crate::clock;
use crate::outcome::{Outcome, outcome};

pub use chunks::Chunks;
pub use log::Log;
pub use worker::{Aside, Full, Handle, Work};

/// Seconds that a canister's cycles should last, where nothing else is set.
const FREEZING_THRESHOLD: u64 = 2_592_000;
/// Cycles that memory may set aside, where nothing else is set.
const RESERVED_CYCLES: u64 = 5_000_000_000_000;

/// A canister and what is kept of it outside of its own memories.
pub struct Hosted {
    /// The canister.
    pub canister: Canister,
    /// Its settings, as the management canister tells them. Controllers and the limit of the
    /// heap are the canister's own.
    pub settings: DefiniteCanisterSettings,
    /// Whether it takes messages.
    pub running: bool,
    /// Whether it is gone: what still waits for it is refused.
    pub deleted: bool,
    /// Snapshots by their ids.
    pub snapshots: BTreeMap<Vec<u8>, Snapshot>,
    /// How many snapshots there ever were.
    pub snapshots_taken: u64,
    /// What it printed.
    pub log: Log,
    /// What it was before work that takes long.
    pub aside: Aside,
}

/// What a canister was when the snapshot was taken.
pub struct Snapshot {
    /// The canister, then.
    pub canister: Canister,
    /// Nanoseconds since 1970.
    pub taken_at: u64,
    /// Bytes that it holds.
    pub bytes: u64,
}

/// What others may know of a canister while it is at work.
#[derive(Clone, Debug, Default)]
pub struct Info {
    /// Who may manage it.
    pub controllers: Vec<Principal>,
    /// Its module: the hash of the file that was installed, and the sections for clients.
    pub module: Option<ModuleInfo>,
    /// Whether it takes messages.
    pub running: bool,
    /// Grows with each change of the canister.
    pub version: u64,
}

/// What others may know of a module.
#[derive(Clone, Debug)]
pub struct ModuleInfo {
    /// SHA-256 of the file.
    pub hash: [u8; 32],
    /// Whether it looks at messages before they are let in.
    pub inspects: bool,
    /// Custom sections `icp:public …` and `icp:private …` by name.
    pub sections: Arc<BTreeMap<String, CustomSection>>,
}

impl Hosted {
    /// A canister that runs.
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
            aside: Aside::default(),
        }
    }

    /// What a message of the canister came to; what it printed is kept.
    pub fn ran(&mut self, executed: Result<Execution, HostError>) -> Outcome {
        if let Ok(execution) = &executed {
            self.log.add(&self.canister.id(), clock::now(), execution);
        }
        outcome(executed)
    }

    /// What others may know.
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
}
