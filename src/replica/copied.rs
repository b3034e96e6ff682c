//! A copy of a canister on the embedded replica, to look at its content.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use candid::Principal;

use super::{Answer, Cost, Messages};

/// A difference between two canisters: a page of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Page {
    Heap(usize),
    Stable(usize),
    /// None: the size of a memory differs.
    Size,
}

/// A copy of a canister. It remembers which stable pages its queries read.
pub struct Copied {
    canister: stablebench_replica::Canister,
    read: BTreeSet<usize>,
}

impl Copied {
    /// Empties the heap as an upgrade does that skips `canister_pre_upgrade`: what remains is in
    /// stable memory.
    pub fn empty_heap(&mut self) -> Result<()> {
        let module = self.canister.module().context("there is no module")?.clone();
        let (caller, argument) = (Principal::anonymous(), candid::encode_args(())?);
        let upgraded = self.canister.upgrade_without_pre_upgrade(&module, caller, &argument)?;
        super::embedded::answer(upgraded).outcome.context("upgrading failed").map(drop)
    }

    /// Returns the stable pages that queries have read since this was last asked.
    pub fn take_read(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.read)
    }

    /// Returns the pages that differ from those of another copy, or `None` if the two differ in
    /// more than pages.
    pub fn differing(&self, other: &Self) -> Result<Option<BTreeSet<Page>>> {
        let differing = self.canister.differing_pages(&other.canister)?;
        Ok(differing.map(|pages| {
            let size = pages.size.then_some(Page::Size);
            let heap = pages.heap.into_iter().flatten().map(Page::Heap);
            let stable = pages.stable.into_iter().flatten().map(Page::Stable);
            size.into_iter().chain(heap).chain(stable).collect()
        }))
    }
}

impl From<stablebench_replica::Canister> for Copied {
    fn from(canister: stablebench_replica::Canister) -> Self {
        Self { canister, read: BTreeSet::new() }
    }
}

impl Messages for Copied {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::update(&mut self.canister, method, argument)
    }

    fn call_id(&mut self) -> u64 {
        Messages::call_id(&mut self.canister)
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let caller = Principal::anonymous();
        let execution = self.canister.query(caller, method, argument)?;
        self.read.extend(execution.stable_pages.iter().cloned().flatten());
        Ok(super::embedded::answer(execution))
    }

    fn upgrade(&mut self) -> Result<Cost> {
        Messages::upgrade(&mut self.canister)
    }
}
