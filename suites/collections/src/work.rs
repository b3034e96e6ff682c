//! The keys of the operations, and the content that a map must have.
//!
//! Two canisters do these jobs: one in Rust, and one in Motoko, which decodes the same Candid.

use std::collections::BTreeSet;

use stablebench_protocol::{Digest, Error, JobPart, Result};
use stablebench_workload::{ContentDigest, Expected, Model};

use crate::job::{Collections, CollectionsTask};

/// The most operations of a job.
pub const MAX_COUNT: u64 = 10_000_000;

/// Bytes of a value.
pub const VALUE_BYTES: u64 = 8;

/// Returns the keys of a task's operations after the first `skipped` ones.
pub fn keys(task: CollectionsTask, skipped: u64) -> Keys {
    let seed = match task {
        CollectionsTask::Generate | CollectionsTask::GetExisting | CollectionsTask::Remove => 1,
        CollectionsTask::Get | CollectionsTask::Put => 42,
    };
    Keys::after(seed, skipped)
}

/// Checks a part.
///
/// # Errors
///
/// If it has no operations or too many, or each of them is to be measured.
pub fn check(job: &Collections, part: &JobPart) -> Result<()> {
    if part.count == 0 {
        return Err(Error::NoRows);
    }
    if job.entries.max(part.from).max(part.count) > MAX_COUNT {
        return Err(Error::TooManyRows { limit: MAX_COUNT });
    }
    if part.each {
        let operation = "measure each operation".to_owned();
        return Err(Error::Unsupported { engine: job.engine, operation });
    }
    Ok(())
}

/// A sequence of keys: a Lehmer generator with the factor and the seeds of canister-profiling. The
/// upper 27 of its 31 bits are the key, so that some keys occur twice.
#[derive(Clone, Debug)]
pub struct Keys {
    state: u64,
}

impl Keys {
    const FACTOR: u64 = 48_271;
    const MODULUS: u64 = 0x7fff_ffff;

    /// Returns the keys after the first `skipped` ones of a seed, which is below 2^31 - 1.
    pub fn after(seed: u64, skipped: u64) -> Self {
        Self { state: seed * Self::power(skipped) % Self::MODULUS }
    }

    /// Returns the factor to a power, modulo the modulus.
    fn power(mut exponent: u64) -> u64 {
        let (mut product, mut square) = (1, Self::FACTOR);
        while exponent > 0 {
            if exponent & 1 == 1 {
                product = product * square % Self::MODULUS;
            }
            square = square * square % Self::MODULUS;
            exponent >>= 1;
        }
        product
    }
}

impl Iterator for Keys {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        self.state = self.state * Self::FACTOR % Self::MODULUS;
        Some(self.state >> 4)
    }
}

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
    fn execute(&mut self, part: &JobPart) -> Result<Expected> {
        let job: Collections = part.job.decode()?;
        check(&job, part)?;
        let keys = keys(job.task, part.from).take(part.count as usize);
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

    fn part(task: CollectionsTask, from: u64, count: u64) -> JobPart {
        let job = Collections { engine: Engine::BTREE, entries: 1_000, task };
        JobPart { job: Job::new(&job), seed: 7, from, count, each: false }
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

    /// `minstd_rand` of C++: 48271 is its first number from the seed 1, and 399268537 its 10 000th.
    #[test]
    fn the_generator_is_the_known_one() {
        assert_eq!(Keys::after(1, 0).next(), Some(48_271 >> 4));
        assert_eq!(Keys::after(1, 9_999).next(), Some(399_268_537 >> 4));
    }

    #[test]
    fn keys_can_be_skipped() {
        let all: Vec<u64> = keys(CollectionsTask::Put, 0).take(100).collect();
        for skipped in [0, 1, 2, 37, 99] {
            let rest: Vec<u64> = keys(CollectionsTask::Get, skipped).take(100).collect();
            assert_eq!(rest[..100 - skipped as usize], all[skipped as usize..]);
        }
    }

    #[test]
    fn parts_have_limits() {
        let job = Collections {
            engine: Engine::BTREE,
            entries: MAX_COUNT,
            task: CollectionsTask::Generate,
        };
        let part = |from, count, each| {
            let job = Job::new(&job);
            check(
                &Collections { engine: Engine::BTREE, ..job.decode().unwrap() },
                &JobPart { job, seed: 1, from, count, each },
            )
        };
        assert_eq!(part(0, MAX_COUNT, false), Ok(()));
        assert_eq!(part(0, 0, false), Err(Error::NoRows));
        assert_eq!(part(MAX_COUNT + 1, 1, false), Err(Error::TooManyRows { limit: MAX_COUNT }));
        assert!(matches!(part(0, 1, true), Err(Error::Unsupported { .. })));
    }
}
