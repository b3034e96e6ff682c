//! What the work must find.
//!
//! Which items there are follows from how many there are: nothing is kept but that
//! number and the digest of the rows.

use super::items::{self, ITEM_BYTES, Items};
use crate::sql::{ValueRef, add_row};
use crate::{ContentDigest, Expected, Tables};
use stablebench_protocol::{CuckooTask, Digest, Job, Part};

/// A store that was built up to some item.
#[derive(Clone, Debug, Default)]
pub struct CuckooModel {
    items: u64,
    content: ContentDigest,
}

impl CuckooModel {
    fn build(&mut self, keys: &[u64]) -> Expected {
        for key in keys {
            add_item(&mut self.content, *key, &items::value(*key));
            self.items += 1;
        }
        let rows = keys.len() as u64;
        Expected { rows, bytes: rows * ITEM_BYTES, results: None }
    }

    fn look_up(&self, keys: &[u64], items: &Items) -> Expected {
        let mut expected = Expected::default();
        let mut results = ContentDigest::default();
        for key in keys {
            let index = items.index(*key);
            if index < self.items && items.key(index) == *key {
                add_found(&mut results, expected.rows, &items::value(*key));
                expected.rows += 1;
                expected.bytes += 4;
            }
        }
        Expected { results: Some(results.value()), ..expected }
    }
}

/// Adds a row to the digest of a store's content.
pub fn add_item(digest: &mut ContentDigest, key: u64, value: &[u8]) {
    add_row(digest, 0, [ValueRef::Integer(key as i64), ValueRef::Blob(value)]);
}

/// Adds a value that was looked up to the digest of what was found.
pub fn add_found(digest: &mut ContentDigest, place: u64, value: &[u8]) {
    add_row(digest, place, [ValueRef::Blob(value)]);
}

impl Tables for CuckooModel {
    fn perform(&mut self, part: &Part) -> Expected {
        let Job::Cuckoo(job) = &part.job else {
            return Expected::default();
        };
        let keys = super::keys(part, job);
        match job.task {
            CuckooTask::Build => self.build(&keys),
            CuckooTask::Hit(_) | CuckooTask::Miss(_) => {
                self.look_up(&keys, &Items::new(job, part.seed))
            }
        }
    }

    fn content(&self) -> Digest {
        self.content.value()
    }

    fn fork(&self) -> Box<dyn Tables> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_protocol::{Cuckoo, CuckooKeys, Lookups, PointStore};

    fn part(keys: CuckooKeys, task: CuckooTask, from: u64, count: u64) -> Part {
        let job = Cuckoo { store: PointStore::Btree, keys, buckets: 1 << 10, items: 700, task };
        Part { job: Job::Cuckoo(job), seed: 9, from, count, each: false }
    }

    const HIT: CuckooTask = CuckooTask::Hit(Lookups::Single);
    const MISS: CuckooTask = CuckooTask::Miss(Lookups::Single);

    #[test]
    fn the_content_does_not_depend_on_how_it_was_cut() {
        for keys in [CuckooKeys::Sequential, CuckooKeys::Scattered] {
            let mut at_once = CuckooModel::default();
            at_once.perform(&part(keys, CuckooTask::Build, 0, 700));
            let mut in_parts = CuckooModel::default();
            for from in (0..700).step_by(70) {
                in_parts.perform(&part(keys, CuckooTask::Build, from, 70));
            }
            assert_eq!(at_once.content(), in_parts.content());
            assert_eq!(at_once.content().rows, 700);
        }
    }

    #[test]
    fn hits_are_found_and_misses_are_not() {
        for keys in [CuckooKeys::Sequential, CuckooKeys::Scattered] {
            let mut model = CuckooModel::default();
            let built = model.perform(&part(keys, CuckooTask::Build, 0, 700));
            assert_eq!(built, Expected { rows: 700, bytes: 8_400, results: None });
            let hit = model.perform(&part(keys, HIT, 0, 700));
            assert_eq!((hit.rows, hit.bytes), (700, 2_800));
            assert_ne!(hit.results, model.perform(&part(keys, HIT, 1, 700)).results);
            let miss = model.perform(&part(keys, MISS, 0, 700));
            assert_eq!(miss, Expected { results: Some(Digest::default()), ..miss });
            assert_eq!((miss.rows, miss.bytes), (0, 0));
        }
    }

    #[test]
    fn what_is_not_built_yet_is_not_found() {
        let mut model = CuckooModel::default();
        model.perform(&part(CuckooKeys::Scattered, CuckooTask::Build, 0, 350));
        let found = model.perform(&part(CuckooKeys::Scattered, HIT, 0, 700));
        assert_eq!(found.rows, 350);
    }

    /// The script of a part has its operations, and no others.
    #[test]
    fn a_script_says_the_same() {
        let build = part(CuckooKeys::Sequential, CuckooTask::Build, 3, 2);
        let Job::Cuckoo(job) = &build.job else { panic!() };
        let script = super::super::script(&build, job);
        assert!(script.writes);
        assert_eq!(script.statements.len(), 1);
        let keys: Vec<_> = script
            .operations
            .iter()
            .map(|calls| (calls.len(), calls[0].statement, calls[0].parameters.clone()))
            .collect();
        let row = |key: i64| {
            use crate::sql::Value::{Blob, Integer};
            (1, 0, vec![Integer(key), Blob((key as u32).to_le_bytes().to_vec())])
        };
        assert_eq!(keys, [row(6), row(8)]);
        let miss = part(CuckooKeys::Sequential, MISS, 0, 5);
        let Job::Cuckoo(job) = &miss.job else { panic!() };
        let script = super::super::script(&miss, job);
        assert!(!script.writes);
        assert!(script.operations.iter().all(|calls| calls[0].parameters.len() == 1));
    }
}
