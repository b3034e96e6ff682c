//! Files against a model, and LevelDB on them against another.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]

mod files;
mod store;

use ic_stable_structures::VectorMemory;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A runner whose cases are the same each time.
fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn memory() -> VectorMemory {
    VectorMemory::default()
}
