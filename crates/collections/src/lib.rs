//! The jobs of the suite collections, their keys, and the model that checks them.
//!
//! Two canisters do these jobs: one in Rust, and one in Motoko, which decodes the same Candid.
//!
//! They are not in the crates of the other suites: what those contain decides the order of functions
//! in the modules of all canisters, and so their hashes.

pub mod model;

use candid::CandidType;
use serde::{Deserialize, Serialize};
use stablebench_protocol::{Engine, Error, Part, Result, SuiteJob};

/// The most operations of a job.
pub const MAX_COUNT: u64 = 10_000_000;

/// Bytes of a value.
pub const VALUE_BYTES: u64 = 8;

/// A job of the suite collections: a task on a map from numbers to numbers. Each key is its own value.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collections {
    /// The map.
    pub engine: Engine,
    /// The number of entries that it is created for.
    pub entries: u64,
    /// The task.
    pub task: CollectionsTask,
}

impl SuiteJob for Collections {
    const SUITE: &'static str = "collections";
}

/// A task on a map. Its operations follow one of the two sequences of keys.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionsTask {
    /// Adds the generated keys.
    #[serde(rename = "generate")]
    Generate,
    /// Looks up other keys, of which few exist.
    #[serde(rename = "get")]
    Get,
    /// Looks up generated keys.
    #[serde(rename = "get_existing")]
    GetExisting,
    /// Adds other keys.
    #[serde(rename = "put")]
    Put,
    /// Removes generated keys.
    #[serde(rename = "remove")]
    Remove,
}

impl CollectionsTask {
    /// Returns the keys of the operations after the first `skipped` ones.
    pub fn keys(self, skipped: u64) -> Keys {
        let seed = match self {
            Self::Generate | Self::GetExisting | Self::Remove => 1,
            Self::Get | Self::Put => 42,
        };
        Keys::after(seed, skipped)
    }

    /// Returns `true` if it changes the map.
    pub fn writes(self) -> bool {
        match self {
            Self::Generate | Self::Put | Self::Remove => true,
            Self::Get | Self::GetExisting => false,
        }
    }
}

/// Checks a part.
///
/// # Errors
///
/// If it has no operations or too many, or each of them is to be measured.
pub fn check(job: &Collections, part: &Part) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `minstd_rand` of C++: 48271 is its first number from the seed 1, and 399268537 its 10 000th.
    #[test]
    fn the_generator_is_the_known_one() {
        assert_eq!(Keys::after(1, 0).next(), Some(48_271 >> 4));
        assert_eq!(Keys::after(1, 9_999).next(), Some(399_268_537 >> 4));
    }

    #[test]
    fn keys_can_be_skipped() {
        let all: Vec<u64> = CollectionsTask::Put.keys(0).take(100).collect();
        for skipped in [0, 1, 2, 37, 99] {
            let rest: Vec<u64> = CollectionsTask::Get.keys(skipped).take(100).collect();
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
            let job = stablebench_protocol::Job::new(&job);
            check(
                &Collections { engine: Engine::BTREE, ..job.decode().unwrap() },
                &Part { job, seed: 1, from, count, each },
            )
        };
        assert_eq!(part(0, MAX_COUNT, false), Ok(()));
        assert_eq!(part(0, 0, false), Err(Error::NoRows));
        assert_eq!(part(MAX_COUNT + 1, 1, false), Err(Error::TooManyRows { limit: MAX_COUNT }));
        assert!(matches!(part(0, 1, true), Err(Error::Unsupported { .. })));
    }
}
