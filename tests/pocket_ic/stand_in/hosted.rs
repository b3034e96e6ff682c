//! A canister of the stand-in's: the embedded replica's, its chunks and snapshots.

use candid::Principal;
use sha2::{Digest, Sha256};
use stablebench_replica::{Bytes, Canister, Cycles, Execution, Settings};

use super::json::{Blob, Outcome, Reject};

/// Heap of an update, as the replica limits it by default.
const HEAP: Bytes = Bytes(3 << 30);
/// Snapshots of one canister. Source: `MAX_NUMBER_OF_SNAPSHOTS_PER_CANISTER` in the
/// replica's `rs/config/src/execution_environment.rs`.
const MAX_SNAPSHOTS: usize = 10;

/// A canister.
pub struct Hosted {
    canister: Canister,
    /// Cycles that it has beyond those that `canister` knows of.
    beside: i128,
    /// Whether nothing is paid for here.
    free: bool,
    chunks: Vec<(Vec<u8>, Vec<u8>)>,
    snapshots: Vec<(Vec<u8>, Canister)>,
    /// Snapshots taken, those replaced included.
    taken: u64,
}

impl Hosted {
    /// Without code or cycles.
    pub fn new(id: Principal, controller: Principal, free: bool) -> Self {
        let settings = Settings {
            id,
            controllers: vec![controller],
            balance: Cycles(FUNDS),
            heap_limit: HEAP,
        };
        Self {
            canister: Canister::new(settings).unwrap(),
            beside: -(FUNDS as i128),
            free,
            chunks: Vec::new(),
            snapshots: Vec::new(),
            taken: 0,
        }
    }

    pub fn balance(&self) -> u128 {
        let balance = self.canister.balance().get() as i128 + self.beside;
        u128::try_from(balance).unwrap_or(0)
    }

    pub fn add_cycles(&mut self, amount: u128) {
        self.beside += amount as i128;
    }

    pub fn is_empty(&self) -> bool {
        self.canister.module().is_none()
    }

    /// Does something that takes rounds. Answers how many instructions it was charged.
    pub fn execute(&mut self, message: impl FnOnce(&mut Canister) -> Execution) -> (Outcome, u64) {
        let before = self.canister.balance().get();
        let execution = message(&mut self.canister);
        if self.free {
            self.beside += (before - self.canister.balance().get()) as i128;
        }
        (execution.outcome.map(Blob).map_err(Reject::from), execution.charge.get())
    }

    pub fn query(&self, caller: Principal, method: &str, argument: &[u8]) -> Outcome {
        let execution = self.canister.query(caller, method, argument).unwrap();
        execution.outcome.map(Blob).map_err(Reject::from)
    }

    /// Keeps a part of a module; answers its hash.
    pub fn upload(&mut self, chunk: Vec<u8>) -> Vec<u8> {
        let hash = Sha256::digest(&chunk).to_vec();
        self.chunks.push((hash.clone(), chunk));
        hash
    }

    /// Forgets all parts.
    pub fn clear(&mut self) {
        self.chunks.clear();
    }

    /// The module of these parts.
    pub fn assemble<'a>(&self, hashes: impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
        let mut module = Vec::new();
        for hash in hashes {
            let (_, chunk) = self.chunks.iter().find(|(there, _)| there == hash)?;
            module.extend_from_slice(chunk);
        }
        Some(module)
    }

    /// Takes a snapshot, in place of another if one is named; answers its id.
    pub fn take(&mut self, replaced: Option<&[u8]>) -> Result<Vec<u8>, Reject> {
        self.snapshots.retain(|(id, _)| Some(id.as_slice()) != replaced);
        if self.snapshots.len() >= MAX_SNAPSHOTS {
            return Err(Reject::new(
                "CanisterRejectedMessage",
                format!("the canister has {MAX_SNAPSHOTS} snapshots, which is the most"),
            ));
        }
        self.taken += 1;
        let id = [&self.taken.to_be_bytes(), self.canister.id().as_slice()].concat();
        self.snapshots.push((id.clone(), self.canister.fork()));
        Ok(id)
    }

    /// Becomes what a snapshot keeps. Cycles are no part of it.
    pub fn load(&mut self, id: &[u8]) -> Result<(), Reject> {
        let found = self.snapshots.iter().find(|(there, _)| there == id);
        let Some((_, snapshot)) = found else {
            return Err(Reject::new("CanisterSnapshotNotFound", "no such snapshot"));
        };
        let (now, then) = (self.canister.balance().get(), snapshot.balance().get());
        self.beside += now as i128 - then as i128;
        self.canister = snapshot.fork();
        Ok(())
    }
}

/// Cycles that the embedded replica's canister is made with; `beside` takes them away.
const FUNDS: u128 = 1_000_000_000_000_000;
