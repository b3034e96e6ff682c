//! A copy of a canister on the embedded replica, to look at its content.

use std::ops::Range;

use anyhow::{Context, Result};
use candid::Principal;
use fixedbitset::FixedBitSet;

use super::{Answer, Cost, Messages};

/// Pages of 4 KiB in which two canisters differ.
#[derive(Clone, Default)]
pub struct Differing {
    /// True if the sizes of their memories differ.
    pub sizes: bool,
    pub heap: FixedBitSet,
    pub stable: FixedBitSet,
}

impl Differing {
    pub fn is_subset(&self, other: &Self) -> bool {
        self.sizes <= other.sizes
            && self.heap.is_subset(&other.heap)
            && self.stable.is_subset(&other.stable)
    }

    pub fn union_with(&mut self, other: &Self) {
        self.sizes |= other.sizes;
        self.heap.union_with(&other.heap);
        self.stable.union_with(&other.stable);
    }
}

/// A copy of a canister. It remembers which stable pages its queries read.
pub struct Copied {
    canister: stablebench_replica::Canister,
    read: FixedBitSet,
}

impl Copied {
    /// Empties the heap as an upgrade does that skips `canister_pre_upgrade`: what remains is in
    /// stable memory.
    pub fn empty_heap(&mut self) -> Result<()> {
        let module = self.canister.module().context("there is no module")?.clone();
        let (caller, argument) = (Principal::anonymous(), candid::encode_args(())?);
        let upgraded = self.canister.upgrade_without_pre_upgrade(&module, caller, &argument)?;
        super::executed::answer(upgraded).outcome.context("upgrading failed").map(drop)
    }

    /// Returns the stable pages that queries have read since the last call.
    pub fn take_read(&mut self) -> FixedBitSet {
        std::mem::take(&mut self.read)
    }

    /// Returns the pages that differ from those of another copy, or `None` if the two differ in
    /// more than pages.
    pub fn differing(&self, other: &Self) -> Result<Option<Differing>> {
        let differing = self.canister.differing_pages(&other.canister)?;
        Ok(differing.map(|pages| {
            let [mut heap, mut stable] = [FixedBitSet::new(), FixedBitSet::new()];
            insert(&mut heap, pages.heap);
            insert(&mut stable, pages.stable);
            Differing { sizes: pages.size, heap, stable }
        }))
    }
}

fn insert(pages: &mut FixedBitSet, ranges: Vec<Range<usize>>) {
    for range in ranges {
        pages.grow(range.end);
        pages.insert_range(range);
    }
}

impl From<stablebench_replica::Canister> for Copied {
    fn from(canister: stablebench_replica::Canister) -> Self {
        Self { canister, read: FixedBitSet::new() }
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
        let mut execution = self.canister.query(caller, method, argument)?;
        insert(&mut self.read, std::mem::take(&mut execution.stable_pages));
        Ok(super::executed::answer(execution))
    }

    fn upgrade(&mut self) -> Result<Cost> {
        Messages::upgrade(&mut self.canister)
    }
}
