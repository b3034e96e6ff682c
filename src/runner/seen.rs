//! What was read back from forks of a populated canister: none is read back twice.
//!
//! What a canister answers follows from its module, from what it keeps, and from the message
//! alone. So a fork that differs from the populated canister as one did whose rows were read
//! back, byte for byte, holds the same rows.

use std::collections::BTreeMap;

use anyhow::Result;
use stablebench_protocol::Digest;

use crate::cache::Digests;
use crate::replica::{Difference, Messages};

/// Most digests that are kept; beyond, those of this run.
const MOST: usize = 4_096;

/// Digests of forks of a populated canister, by what makes them differ from it.
#[derive(Default)]
pub(super) struct Seen {
    /// By the whole difference: of earlier runs and of this one.
    earlier: Digests,
    here: Digests,
    /// By the difference of stable memory alone; of this run.
    stable: BTreeMap<[u8; 32], Digest>,
    /// How many forks were not read back because an earlier run had done that.
    pub known: u64,
    /// How many forks of cases were looked at.
    pub asked: u64,
}

/// What two forks must have in common to hold the same rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alike {
    /// Everything.
    Whole,
    /// Stable memory: they did the same work, of which one kept a record on its heap.
    Stable,
}

impl Seen {
    /// With what earlier runs have read back.
    pub(super) fn with(earlier: Digests) -> Self {
        Self { earlier, ..Self::default() }
    }

    /// Reads a fork back, unless one like it was read back with the digest `expected`.
    pub(super) fn read_back(
        &mut self,
        fork: &mut dyn Messages,
        alike: Alike,
        expected: Digest,
        read_back: impl FnOnce(&mut dyn Messages) -> Result<Digest>,
    ) -> Result<Digest> {
        let Some(Difference { state, stable }) = fork.difference()? else {
            return read_back(fork);
        };
        let state: String = state.iter().map(|byte| format!("{byte:02x}")).collect();
        let is_it = |known: Option<&Digest>| known == Some(&expected);
        if alike == Alike::Stable && is_it(self.stable.get(&stable)) {
            return Ok(expected);
        }
        self.asked += 1;
        if is_it(self.earlier.get(&state)) {
            self.known += 1;
        } else if !is_it(self.here.get(&state)) {
            read_back(fork)?;
        }
        self.stable.insert(stable, expected);
        self.here.insert(state, expected);
        Ok(expected)
    }

    /// The canister is another one from here on.
    pub(super) fn forget(&mut self) {
        *self = Self { known: self.known, asked: self.asked, ..Self::default() };
    }

    /// What is to be kept for later runs; nothing if they know it.
    pub(super) fn news(&self) -> Option<Digests> {
        let new = self.here.iter().any(|(state, digest)| self.earlier.get(state) != Some(digest));
        let all = self.earlier.len() + self.here.len() <= MOST;
        let earlier = self.earlier.iter().filter(|_| all);
        new.then(|| earlier.chain(&self.here).map(|(key, digest)| (key.clone(), *digest)).collect())
    }
}
