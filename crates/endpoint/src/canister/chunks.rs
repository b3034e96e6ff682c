//! Chunks of modules: a canister keeps them, and other canisters' modules can be made of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Chunks by their SHA-256.
type ByHash = BTreeMap<[u8; 32], Arc<Vec<u8>>>;

/// The chunks of a canister.
#[derive(Clone, Default)]
pub struct Chunks(Arc<Mutex<ByHash>>);

impl Chunks {
    /// Looks at them, or changes them.
    pub fn with<T>(&self, work: impl FnOnce(&mut ByHash) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> u64 {
        self.with(|chunks| chunks.values().map(|chunk| chunk.len() as u64).sum())
    }
}
