//! The content that a map must have.

use std::collections::BTreeSet;

use stablebench_protocol::{Digest, Part, Result};
use stablebench_workload::{ContentDigest, Expected, Model};

use crate::{Collections, CollectionsTask, VALUE_BYTES, check};

/// The model: the keys, which are their own values.
#[derive(Clone, Debug, Default)]
pub struct CollectionsModel {
    keys: BTreeSet<u64>,
    digest: ContentDigest,
}

impl CollectionsModel {
    fn insert(&mut self, key: u64) {
        if self.keys.insert(key) {
            self.digest.add(key, &key.to_le_bytes());
        }
    }

    fn remove(&mut self, key: u64) -> bool {
        let removed = self.keys.remove(&key);
        if removed {
            self.digest.remove(key, &key.to_le_bytes());
        }
        removed
    }
}

impl Model for CollectionsModel {
    fn execute(&mut self, part: &Part) -> Result<Expected> {
        let job: Collections = part.job.decode()?;
        check(&job, part)?;
        let keys = job.task.keys(part.from).take(part.count as usize);
        let mut results = None;
        let rows = match job.task {
            CollectionsTask::Generate | CollectionsTask::Put => {
                keys.for_each(|key| self.insert(key));
                part.count
            }
            CollectionsTask::Remove => keys.filter(|key| self.remove(*key)).count() as u64,
            CollectionsTask::Get | CollectionsTask::GetExisting => {
                let mut found = ContentDigest::default();
                for key in keys.filter(|key| self.keys.contains(key)) {
                    found.add(key, &key.to_le_bytes());
                }
                results = Some(found.value());
                found.value().rows
            }
        };
        Ok(Expected { rows, bytes: rows * VALUE_BYTES, results })
    }

    fn content(&self) -> Digest {
        self.digest.value()
    }

    fn fork(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use stablebench_protocol::{Engine, Job};

    use super::*;

    fn part(task: CollectionsTask, from: u64, count: u64) -> Part {
        let job = Collections { engine: Engine::BTREE, entries: 1_000, task };
        Part { job: Job::new(&job), seed: 7, from, count, each: false }
    }

    #[test]
    fn tasks_follow_their_sequences() {
        let mut model = CollectionsModel::default();
        let mut rows = |task, from, count| model.execute(&part(task, from, count)).unwrap();
        assert_eq!(rows(CollectionsTask::Generate, 0, 600).rows, 600);
        assert_eq!(rows(CollectionsTask::Generate, 600, 400).rows, 400);
        assert_eq!(rows(CollectionsTask::GetExisting, 0, 50).rows, 50);
        // Published look-ups find next to nothing.
        let missing = rows(CollectionsTask::Get, 0, 50);
        assert_eq!((missing.rows, missing.results), (0, Some(Digest::default())));
        assert_eq!(rows(CollectionsTask::Put, 0, 50).bytes, 400);
        assert_eq!(rows(CollectionsTask::Get, 0, 50).results.unwrap().rows, 50);
        assert_eq!(rows(CollectionsTask::Remove, 0, 50).rows, 50);
        assert_eq!(rows(CollectionsTask::Remove, 0, 51).rows, 1);
    }

    #[test]
    fn the_digest_is_that_of_the_entries() {
        let mut model = CollectionsModel::default();
        model.execute(&part(CollectionsTask::Generate, 0, 1_000)).unwrap();
        model.execute(&part(CollectionsTask::Remove, 0, 500)).unwrap();
        model.execute(&part(CollectionsTask::Put, 0, 500)).unwrap();
        let mut digest = ContentDigest::default();
        for key in &model.keys {
            digest.add(*key, &key.to_le_bytes());
        }
        assert_eq!(model.content(), digest.value());
    }
}
