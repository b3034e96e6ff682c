//! The suite collections in a canister.

use std::hint::black_box;

use crate::job::{Collections, CollectionsTask};
use crate::work::{VALUE_BYTES, check, keys};
use stablebench_harness::{Canister, Staged, Suite, measure};
use stablebench_protocol::{Digest, Inspected, JobPart, Result};
use stablebench_workload::{Amount, ContentDigest};

/// A map from numbers to numbers.
pub trait Map {
    /// Work: sets the value of a key.
    fn put(&mut self, key: u64, value: u64);

    /// Work: returns the value of a key.
    fn get(&self, key: u64) -> Option<u64>;

    /// Work: removes a key, and returns whether it was there.
    fn remove(&mut self, key: u64) -> bool;

    /// Adds at most `limit` entries to a digest, starting at a position. Returns the position of the
    /// next entry, if there is one.
    fn add_to(&self, digest: &mut ContentDigest, position: u64, limit: u64) -> Option<u64>;

    /// Returns the bytes of its entries.
    fn bytes(&self) -> u64;

    /// Returns `true` if it is in stable memory.
    fn is_stable(&self) -> bool;
}

/// A canister with a map.
pub trait HasMap: Canister {
    /// The map.
    type Map: Map;

    /// Returns the map of a job, which is created if there is none.
    ///
    /// # Errors
    ///
    /// If there is another map, or the canister does not have this one.
    fn map(&mut self, job: &Collections) -> Result<&mut Self::Map>;
}

impl<C: HasMap> Suite<C> for Collections {
    fn stage(self, part: &JobPart) -> Result<Staged<C>> {
        check(&self, part)?;
        let (from, count) = (part.from, part.count);
        Ok(Staged::new(self.task.writes(), move |canister: &mut C| {
            let collection = canister.map(&self)?;
            let done = measure(|| {
                let rows = work(collection, self.task, from, count);
                Ok(Amount { rows, bytes: rows * VALUE_BYTES })
            });
            Ok(done?.into())
        }))
    }

    fn results(&self, canister: &mut C, part: &JobPart) -> Result<Option<Digest>> {
        check(self, part)?;
        if self.task.writes() {
            return Ok(None);
        }
        let collection = canister.map(self)?;
        let mut digest = ContentDigest::default();
        for key in keys(self.task, part.from).take(part.count as usize) {
            if let Some(value) = collection.get(key) {
                digest.add(key, &value.to_le_bytes());
            }
        }
        Ok(Some(digest.value()))
    }

    fn content(
        &self,
        canister: &mut C,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        Ok(canister.map(self)?.add_to(digest, position, limit))
    }

    fn inspect(&self, canister: &mut C) -> Result<Inspected> {
        let collection = canister.map(self)?;
        Ok(Inspected {
            stored_bytes: collection.bytes(),
            virtual_bytes: if collection.is_stable() { collection.bytes() } else { 0 },
            cache_bytes: 0,
            sqlite: None,
            objects: Vec::new(),
        })
    }
}

/// Does a part. Returns the number of entries.
fn work(collection: &mut impl Map, task: CollectionsTask, from: u64, count: u64) -> u64 {
    let keys = keys(task, from).take(count as usize);
    match task {
        CollectionsTask::Generate | CollectionsTask::Put => {
            keys.for_each(|key| collection.put(key, key));
            count
        }
        CollectionsTask::Get | CollectionsTask::GetExisting => {
            keys.filter(|key| black_box(collection.get(*key)).is_some()).count() as u64
        }
        CollectionsTask::Remove => {
            keys.filter(|key| black_box(collection.remove(*key))).count() as u64
        }
    }
}
