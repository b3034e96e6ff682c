//! The jobs of the suite.

use std::hint::black_box;

use stablebench_collections::{Collections, CollectionsTask, VALUE_BYTES, check};
use stablebench_harness::{Staged, Suite, measure};
use stablebench_protocol::{Digest, Inspected, Part, Result};
use stablebench_workload::{Amount, ContentDigest};

use crate::Bench;
use crate::collection::Collection;

impl Suite<Bench> for Collections {
    fn stage(self, part: &Part) -> Result<Staged<Bench>> {
        check(&self, part)?;
        let (from, count) = (part.from, part.count);
        Ok(Staged::new(self.task.writes(), move |canister: &mut Bench| {
            let collection = canister.collection(&self)?;
            let done = measure(|| {
                let rows = work(collection, self.task, from, count);
                Ok(Amount { rows, bytes: rows * VALUE_BYTES })
            });
            Ok(done?.into())
        }))
    }

    fn results(&self, canister: &mut Bench, part: &Part) -> Result<Option<Digest>> {
        check(self, part)?;
        if self.task.writes() {
            return Ok(None);
        }
        let collection = canister.collection(self)?;
        let mut digest = ContentDigest::default();
        for key in self.task.keys(part.from).take(part.count as usize) {
            if let Some(value) = collection.get(key) {
                digest.add(key, &value.to_le_bytes());
            }
        }
        Ok(Some(digest.value()))
    }

    fn content(
        &self,
        canister: &mut Bench,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        Ok(canister.collection(self)?.add_to(digest, position, limit))
    }

    fn inspect(&self, canister: &mut Bench) -> Result<Inspected> {
        let collection = canister.collection(self)?;
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
fn work(collection: &mut Collection, task: CollectionsTask, from: u64, count: u64) -> u64 {
    let keys = task.keys(from).take(count as usize);
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
